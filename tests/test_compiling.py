"""Compiled inner loops: kept where they can be, and working where they cannot."""

from __future__ import annotations

import subprocess
import sys

import numba
import pytest

from datamask.compiling import compiled, keeping_compiled

CODE = "def doubled(x):\n    return 2 * x\n"

LIBRARY = """
import numba

def doubled(x):
    return 2 * x

@numba.njit
def bare(x):
    return x + 1

@numba.njit()
def called(x):
    return x + 2

@numba.njit(["i8(i8)"], fastmath=True)
def signed(x):
    return x + 3

@numba.njit(cache=False)
def unwanted(x):
    return x + 4

named = numba.njit(doubled, nogil=True)
"""
"""A library that uses numba in every form, and keeps nothing."""

ANOTHER_PROCESS = """
from datamask.compiling import keeping_compiled
with keeping_compiled():
    import library
    print(*[f(0) for f in (library.bare, library.called, library.signed, library.unwanted, library.named)])
print(*[sum(f.stats.cache_hits.values()) for f in (library.bare, library.called, library.signed, library.named)])
"""


def test_code_that_cannot_be_kept_is_compiled_all_the_same():
    made: dict = {}
    exec(compile(CODE, "<nowhere>", "exec"), made)
    with pytest.raises(RuntimeError, match="cannot cache"):  # what numba says of code without a file
        numba.njit(cache=True)(made["doubled"])
    assert compiled(made["doubled"])(21) == 42
    with keeping_compiled():
        for decorated in (numba.njit(made["doubled"]), numba.njit()(made["doubled"])):
            assert decorated(21) == 42


def test_what_another_library_compiles_is_found_again_by_the_next_process(tmp_path, monkeypatch):
    (tmp_path / "library.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    printed = [
        subprocess.run([sys.executable, "-c", ANOTHER_PROCESS], check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert [lines.splitlines() for lines in printed] == [["1 2 3 4 0", "0 0 0 0"], ["1 2 3 4 0", "1 1 1 1"]]
    assert not any("unwanted" in path.name for path in (tmp_path / "kept").rglob("*.nbi"))


def test_outside_numba_keeps_what_it_is_told_to():
    plain = numba.njit
    with pytest.raises(LookupError), keeping_compiled():
        assert numba.njit is not plain
        raise LookupError
    assert numba.njit is plain
