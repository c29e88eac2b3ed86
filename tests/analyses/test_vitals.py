"""The small charts: what they say of given metrics, and that live data leave the chart alone."""

import numpy as np
import pandas as pd
import pytest

from datamask.analyses.vitals import tables as view
from datamask.analyses.vitals.chart import vital
from datamask.config import SelectionConfig

NAN = np.nan
METRICS = {
    "step": np.array([1.0, 2, 3, 4]),
    "decided": np.array([NAN, 0.5, NAN, 0.93]),
    "joint": np.array([NAN, 0.4, NAN, 0.6]),
    "changed": np.array([NAN, NAN, NAN, 0.04]),
    "signal": np.array([16.0, 16, 16, 16]),
    "batch_joint_std": np.array([0.2, 0.1, 0.1, 0.05]),
    "share_facility": np.array([0.7, 0.6, NAN, 0.6]),
    "share_quality": np.array([0.3, 0.4, NAN, 0.4]),
    "overlap_quality": np.array([NAN, 0.2, NAN, 0.3]),
    "overlap_facility": np.array([NAN, 0.4, NAN, 0.5]),
    "missed": np.array([NAN, 0.0, NAN, 0.0]),
}
FACTS = {"selected": 300, "n": 1000}


def test_each_sign_has_its_table_and_what_is_not_there_is_left_out():
    config = SelectionConfig.from_options(estimator="counterfactual")
    signs = {sign.name: sign for sign in view.vitals(METRICS, config, FACTS)}
    # nothing was missed, and one look tells no change per step
    assert list(signs) == ["decided", "signal", "spread", "shares", "overlap"]
    assert signs["shares"].table["series"].unique().tolist() == ["quality", "Facility location"]
    assert signs["overlap"].chance == pytest.approx(0.3 / 1.7)
    assert signs["signal"].table["value"].tolist() == [4.0] * 4
    assert "credit" in signs["shares"].help and all(sign.help for sign in signs.values())
    assert view.vitals({}, config, {}) == ()


def test_changes_are_rows_per_step():
    metrics = {
        "step": np.array([1.0, 2, 3, 4, 5, 6]),
        "joint": np.array([NAN, 0.1, NAN, 0.2, NAN, 0.3]),
        "changed": np.array([NAN, NAN, NAN, 0.5, NAN, 0.1]),
    }
    (sign,) = view.vitals(metrics, SelectionConfig.from_options(), FACTS)
    assert sign.table["step"].tolist() == [4, 6] and sign.table["value"].tolist() == pytest.approx([75, 15])


def test_the_chart_does_not_change_with_its_data():
    signs = view.vitals(METRICS, SelectionConfig.from_options(), FACTS)
    for sign in signs:
        more = view.Vital(
            sign.name,
            sign.title,
            sign.help,
            pd.concat([sign.table, sign.table.assign(step=9.0)]),
            sign.shares,
            sign.chance,
        )
        assert vital(sign) == vital(more) and vital(sign) != vital(sign, dark=True)
        assert (vital(sign)["layer"][0]["encoding"]["color"]["legend"] is None) == (sign.table["series"].nunique() == 1)
