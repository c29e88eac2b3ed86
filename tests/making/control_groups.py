"""How much memory there is, as a test says: limits of control groups as files in a folder, and a ledger of its own."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from datamask import memory, process
from datamask.work import ledger as ledger_module
from datamask.work.ledger import Ledger, ledger


def memory_of(monkeypatch: pytest.MonkeyPatch, folder: Path, nbytes: int) -> None:
    """Let this process see a limit of so many bytes, of which nothing is reserved yet."""
    groups = folder / "root/sys/fs/cgroup"
    groups.mkdir(parents=True, exist_ok=True)
    (groups / "memory.max").write_text(f"{nbytes}\n")
    monkeypatch.setattr(memory, "ROOT", str(folder / "root"))
    own_ledger(monkeypatch, Ledger())


def own_ledger(monkeypatch: pytest.MonkeyPatch, its: Ledger) -> Ledger:
    """Give this process another ledger: in its own one the corpora of other tests may stand.

    Where memory is short it collects what this test made: to look through all tests before takes a second each time.
    """
    monkeypatch.setattr(ledger_module, "collect", gc.collect)
    ledger()
    monkeypatch.setitem(process._holder().things, "memory ledger", its)
    return its
