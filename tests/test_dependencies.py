"""What datamask imports is what it says that it needs: a module that another package brings may go with it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRA = [Requirement(line) for lines in PROJECT["optional-dependencies"].values() for line in lines]
PINS = [
    Requirement(line)
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    if re.match(r"[a-z]", line, re.IGNORECASE)
]


def imported(source: str) -> set[str]:
    """The top packages that a source imports, also within functions; without its own package and Python's."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"datamask"}


def names_of(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements}


def test_imports_are_seen_wherever_they_stand():
    source = "import os, a.b\nfrom c.d import e\nfrom . import f\nimport datamask\ndef g():\n    import h as i\n"
    assert imported(source) == {"a", "c", "h"}


def test_every_package_imported_is_a_stated_dependency():
    brought_by = packages_distributions()
    stated = names_of(NEEDED + EXTRA)
    for path in (ROOT / "datamask").rglob("*.py"):
        for package in set(imported(path.read_text())) - {"_typeshed"}:  # types of the standard library, in no package
            distributions = {canonicalize_name(name) for name in brought_by.get(package, [package])}
            assert distributions & stated, f"{path.relative_to(ROOT)} imports {package}, which pyproject.toml lacks"


def test_what_is_needed_is_pinned_and_nothing_else():
    assert names_of(PINS) == names_of(NEEDED)


@pytest.mark.parametrize("pin", PINS, ids=str)
def test_a_pin_lies_within_the_range_that_is_stated(pin):
    (version,) = pin.specifier
    assert version.operator == "=="
    (needed,) = [r for r in NEEDED if canonicalize_name(r.name) == canonicalize_name(pin.name)]
    assert needed.specifier.contains(version.version)
