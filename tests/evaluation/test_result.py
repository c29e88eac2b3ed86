"""The result of a run: its record holds all of it, and is read again as it was."""

import json
import re
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path

import pytest

import datamask
from datamask.evaluation.result import SUMMARY, ProvedBound, RunEffort, RunResult, SelectedSize
from datamask.measured import (
    Anchor,
    Anchors,
    ComponentFacts,
    Estimate,
    GraphFacts,
    RowClasses,
    TermValues,
    WeightTotals,
)
from datamask.runs.status import RunStatus
from datamask.schemas import check

ENDS = {"random": -0.5, "best": 0.25, "best_kind": "best found"}
FULL = {
    "run_id": "20261121-220115-facility-673399bd",
    "status": "done",
    "estimator": "relaxed",
    "n": 600,
    "selected": 60,
    "given": 3,
    "budget": 1000.0,
    "tokens": 999.0,
    "quality": 8.5,
    "diversity": 0.5,
    "joint": 4.5,
    "objectives": {"facility": 0.5, "own:Code": None},
    "components": {"kept": 512, "of": 1024, "share": 0.98, "on_all": {"vendi": 3.5}},
    "values": "estimate",
    "estimate": {"value": 0.55, "low": 0.5, "high": 0.6, "rows": 10_000},
    "calibrated": {"quality": 0.75, "diversity": 0.25, "joint": 0.5},
    "scale": "calibrated",
    "anchors": {"quality": ENDS, "diversity": {"facility": ENDS, "own:Code": ENDS}},
    "upper_bound": 0.625,
    "gap": 0.125,
    "bound_holds_for": "listed",
    "settled": {"inside": 10, "outside": 20, "open": 30},
    "weights": {"sum": 60.0, "samples": 71},
    "steps": 100,
    "warm_from": "20261121-220115-pairwise-cadf0609",
    "seconds": 1.5,
    "seconds_graph": 0.5,
    "seconds_ends": 0.25,
    "seconds_total": 2.5,
    "peak_memory_bytes": 1 << 29,
    "device": "cpu",
    "neighbors": {"kind": "approximate", "k": 64, "recall": 0.97, "recall_rows": 400},
    "unknown_ids": 2,
}
"""A record with every entry that there is."""

SPARSE = {
    **{name: entry for name, entry in FULL.items() if name != "unknown_ids"},
    **dict.fromkeys(("settled", "weights", "estimate", "neighbors", "warm_from", "budget", "tokens")),
}
"""Of a run that has not all of it: what it has not is null."""


@pytest.mark.parametrize(
    "record",
    [
        FULL,
        SPARSE,
    ],
    ids=["full", "sparse"],
)
def test_a_record_is_written_as_it_was_read(record):
    check(record, SUMMARY)
    result = RunResult.from_dict(record)
    assert result.to_dict() == record
    assert RunResult.from_dict(result.to_dict()) == result
    assert json.loads(json.dumps(result.to_dict())) == record


def test_a_full_record_is_written_in_its_order_and_every_field_is_filled():
    result = RunResult.from_dict(FULL)
    assert list(result.to_dict()) == list(FULL) == list(SUMMARY)
    for part in (result, result.size, result.raw, result.certificate, result.effort):
        unset = [f.name for f in fields(part) if getattr(part, f.name) is None]
        assert not unset, (type(part), unset)


def test_its_parts_have_the_types_of_the_field():
    result = RunResult.from_dict(FULL)
    ends = Anchor(-0.5, 0.25, "best found")
    assert result.size == SelectedSize(600, 60, 3, 1000.0, 999.0)
    assert result.raw == TermValues(8.5, 0.5, 4.5) and result.calibrated == TermValues(0.75, 0.25, 0.5)
    assert result.anchors == Anchors(ends, {"facility": ends, "own:Code": ends})
    assert result.estimate == Estimate(0.55, 0.5, 0.6, 10_000)
    assert result.components == ComponentFacts(512, 1024, 0.98, {"vendi": 3.5})
    assert result.graph == GraphFacts("approximate", 64, 0.97, 400) and result.graph.approximate
    assert result.certificate == ProvedBound(0.625, 0.125, "listed") and not result.certificate.exact
    assert result.row_classes == RowClasses(10, 20, 30) and result.row_classes.settled == 30
    assert result.weights == WeightTotals(60.0, 71)
    assert result.effort == RunEffort(100, FULL["warm_from"], 1.5, 0.5, 0.25, 2.5, 1 << 29, "cpu")


def test_a_run_adds_what_a_selection_in_memory_has_not():
    in_memory = RunResult(estimator="greedy", size=SelectedSize(10, 2, 0))
    assert not {"run_id", "steps", "unknown_ids"} & set(in_memory.to_dict())
    assert in_memory.to_dict()["weights"] is None, "null, as where a method has none"
    record = in_memory.of_run("a", RunEffort(steps=3), None).to_dict()
    assert (record["run_id"], record["status"], record["steps"]) == ("a", "done", 3)
    assert record["neighbors"] is record["warm_from"] is None
    assert "unknown_ids" not in record


def test_an_unknown_entry_is_ignored():
    record = {"settled": {"inside": 1, "outside": 2, "open": 3, "newer": 4}, "newer": 5}
    result = RunResult.from_dict(record)
    assert result.to_dict()["settled"] == {"inside": 1, "outside": 2, "open": 3} and "newer" not in result.to_dict()


@pytest.mark.parametrize(
    "name, entry",
    [("n", "many"), ("steps", -1), ("settled", {"inside": 1}), ("anchors", {"quality": {}})],
)
def test_an_entry_of_another_type_is_refused_by_its_name(name, entry):
    with pytest.raises(ValueError, match=name):
        check({name: entry}, SUMMARY)


def test_nothing_of_it_can_be_changed():
    result = RunResult.from_dict(FULL)
    assert all(
        is_dataclass(part)
        for part in (result.size, result.raw, result.anchors, result.estimate, result.graph, result.effort)
    )
    with pytest.raises(FrozenInstanceError):
        result.raw.quality = 1.0


def test_only_the_decoder_looks_into_a_stored_result_by_name():
    root = Path(datamask.__file__).parent
    readers = [
        path
        for room in ("runs", "dashboard", "analyses", "pages", "cli")
        for path in sorted((root / room).rglob("*.py"))
    ]
    looks = re.compile(r"(status\(\)|status|outcome|run|record)\.summary\b|\[\"summary\"\]|get\(\"summary\"\)")
    found = [f"{path.name}: {line.strip()}" for path in readers for line in path.open() if looks.search(line)]
    assert len(readers) > 200 and not found, found
    assert not hasattr(RunStatus, "summary")
