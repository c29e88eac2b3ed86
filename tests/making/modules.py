"""A module loaded a second time, as Streamlit loads an edited one."""

from __future__ import annotations

import importlib
import sys
import types

import pytest


def import_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Load a module again under its name; at the end of the test both its homes hold the first one again.

    A module has two homes: `sys.modules`, and an attribute of its package. A test that restores the first alone leaves
    the others with two modules of one name: they import from one and patch the other.
    """
    package, _, child = name.rpartition(".")
    monkeypatch.setattr(sys.modules[package], child, sys.modules[name])
    monkeypatch.delitem(sys.modules, name)
    return importlib.import_module(name)
