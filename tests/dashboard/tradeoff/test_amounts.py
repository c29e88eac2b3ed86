"""The amount to keep: what is typed as a share, rows or tokens selects just that, under the same rules."""

import numpy as np
import pytest

from datamask.config import Quota, SelectionConfig
from datamask.dashboard.tradeoff.amounts import amount_of, keeping
from datamask.errors import OptionError

ROWS = 5_988


@pytest.mark.parametrize("rows", [1, 7, 1_234, 1_796, 5_987])
def test_typed_rows_are_selected(rows):
    changed = keeping(SelectionConfig.from_options(lamb=0.2), ROWS, f"{rows:,}", "rows")
    assert changed.size(ROWS) == rows and changed.lamb == 0.2 and len(f"{changed.select_ratio!r}") <= 8


def test_another_amount_keeps_the_rest_of_the_problem():
    options = {"objective": "pairwise", "lamb": 0.7, "pin": "a.parquet", "collapse": "exact", "seed": 3}
    before = SelectionConfig.from_options(**options, quotas=(Quota("source", "web", 0.1, 0.5),))
    assert keeping(before, ROWS, "12.5 %", "%") == SelectionConfig.from_options(
        **options, quotas=before.quotas, select_ratio=0.125
    )
    before = SelectionConfig.from_options(**options)
    tokens = keeping(before, ROWS, "270k", "tokens")
    assert tokens == SelectionConfig.from_options(**options, budget=270_000)
    assert keeping(tokens, ROWS, "30", "%") == SelectionConfig.from_options(**options, select_ratio=0.3)


NONE = {
    "%": ("", "0", "100", "0.001", "inf"),
    "rows": ("many", "nan", "0", "5988", "-3", "1e400"),
    "tokens": ("-1", "lots"),
    "None": ("None",),
}


@pytest.mark.parametrize(("amount", "unit"), [(amount, unit) for unit, amounts in NONE.items() for amount in amounts])
def test_what_is_no_amount_is_refused(amount, unit):
    with pytest.raises(OptionError):
        keeping(SelectionConfig.from_options(), ROWS, amount, unit)


def test_the_slider_stands_at_the_share_of_rows_or_of_tokens():
    lengths = np.arange(1.0, 11.0)
    corpus, without = (type("Rows", (), {"lengths": each, "__len__": lambda self: 10})() for each in (lengths, None))
    selected = lengths > 8
    shown = amount_of(SelectionConfig.from_options(select_ratio=0.2), corpus, selected)
    assert shown == {"unit": "rows", "share": 0.2, "rows": 10, "tokens": 55.0, "mean": 9.5, "budget": ""}
    shown = amount_of(SelectionConfig.from_options(budget=11), corpus, None)
    assert shown == {"unit": "tokens", "share": 0.2, "rows": 10, "tokens": 55.0, "mean": 5.5, "budget": "11"}
    shown = amount_of(SelectionConfig.from_options(select_ratio=0.2), without, selected)
    assert (shown["tokens"], shown["mean"]) == (None, None)
