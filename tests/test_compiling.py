"""Compiled inner loops: kept where they can be, and working where they cannot."""

from __future__ import annotations

import numba
import pytest

from datamask.compiling import compiled

CODE = "def doubled(x):\n    return 2 * x\n"


def test_code_that_cannot_be_kept_is_compiled_all_the_same():
    made: dict = {}
    exec(compile(CODE, "<nowhere>", "exec"), made)
    with pytest.raises(RuntimeError, match="cannot cache"):  # what numba says of code without a file
        numba.njit(cache=True)(made["doubled"])
    assert compiled(made["doubled"])(21) == 42
