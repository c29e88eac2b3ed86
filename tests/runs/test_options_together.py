"""Options in all pairs, in memory and on mapped arrays: the same ids, values and bounds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from datamask import open_corpus, select
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.options import Quota
from tests.commands import ROOT
from tests.making.shards import clustered

ROWS = 240
LEVELS: dict[str, dict[str, dict[str, Any]]] = {
    "objective": {
        name: {"objective": name}
        for name in ("facility", "pairwise", "vendi", "disf_fixed", "disf", "pairwise:0.6,facility:0.4")
    }
    | {f"{name} of 6": {"objective": name, "components": 6} for name in ("vendi", "disf_fixed", "disf")},
    "method": {
        "solve": {},
        "reinforce": {"estimator": "reinforce", "n_epochs": 6, "n_rollout": 8, "partial": 1.0},
        "counterfactual": {"estimator": "counterfactual", "n_epochs": 4},
        "greedy": {"estimator": "greedy"},
        "semdedup": {"estimator": "semdedup"},
    },
    "size": {"ratio": {"select_ratio": 0.2}, "budget": {"budget": 4000}},
    "rules": {
        "none": {},
        "pins": {"pin": "some.txt"},
        "bans": {"ban": "some.txt"},
        "given": {"given": "some.txt"},
        "quota": {"quotas": (Quota.parse("source=a:0.3:0.6"),)},
    },
    "rows": {
        "all": {},
        "collapse": {"collapse": "0.98"},
        "prune": {"prune": 0.1},
        "center": {"center": True},
        "approximate": {"neighbors": "approximate"},
    },
}


def options_of(case: tuple[str, ...]) -> dict[str, Any]:
    options: dict[str, Any] = {"lamb": 0.4, "device": "cpu"}
    for levels, level in zip(LEVELS.values(), case, strict=True):
        options |= levels[level]
    return options


def goes_together(options: dict[str, Any]) -> bool:
    try:
        SelectionConfig.from_options(**options)
    except OptionError:
        return False
    return True


def test_the_documents_name_what_does_not_go_together():
    """Every level beside every method and beside --components, the others as they are by default."""
    lines = (ROOT / "docs" / "choosing.md").read_text().splitlines()
    rows = [line.strip("|").replace("`", "").split(" | ") for line in lines if line.startswith("| `--")]
    said = {name.strip(): sorted(cell.strip().split(", ")) for name, cell in rows}
    names = {"budget": "--budget", "pairwise:0.6,facility:0.4": "sums"}
    for method, options in LEVELS["method"].items():
        refused = [
            names.get(level, level)
            for dimension, levels in LEVELS.items()
            for level in levels
            if dimension != "method"
            and "components" not in levels[level]
            and not goes_together({**options, **levels[level]})
        ]
        assert sorted(refused) == said.get(f"--estimator {method}", []), method
    objectives = [name for name in LEVELS["objective"] if name.isidentifier()]
    assert [name for name in objectives if not goes_together({"objective": name, "components": 6})] == said[
        "--components"
    ]


def cases() -> list[tuple[str, ...]]:
    """Combinations that hold every pair of levels that go together, drawn one by one: of a hundred the one with most
    new pairs."""
    names = [list(levels) for levels in LEVELS.values()]
    everything = [case for case in itertools.product(*names) if goes_together(options_of(case))]
    places = list(itertools.combinations(range(len(names)), 2))
    wanted = {(a, case[a], b, case[b]) for case in everything for a, b in places}
    rng, drawn = np.random.default_rng(0), []
    while wanted:
        offered = [everything[number] for number in rng.integers(len(everything), size=100)]
        pairs = [{(a, case[a], b, case[b]) for a, b in places} & wanted for case in offered]
        best = max(range(100), key=lambda number: len(pairs[number]))
        if pairs[best]:
            drawn.append(offered[best])
            wanted -= pairs[best]
    return drawn


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """The corpus in memory and in files, and a folder with a file of ids."""
    folder = tmp_path_factory.mktemp("together")
    features, quality = clustered(ROWS, dim=12, clusters=15, seed=8)
    features[7] = features[8]
    table = pa.table(
        {
            "id": [f"row-{row}" for row in range(ROWS)],
            "quality": quality,
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 12),
            "n_tokens": np.random.default_rng(3).integers(20, 200, ROWS),
            "source": np.where(np.arange(ROWS) % 3 == 0, "a", "b"),
        }
    )
    (folder / "some.txt").write_text("".join(f"row-{row}\n" for row in (3, 50, 111)))
    return folder, tuple(open_corpus(table, into=into) for into in (None, folder / "maps"))


def outcome(corpus, options) -> Any:
    selection = select(corpus, **options)
    summary = selection.summary
    return selection.ids.to_pylist(), *(summary[name] for name in ("joint", "quality", "diversity", "upper_bound"))


@pytest.mark.parametrize("case", cases(), ids=" ".join)
def test_memory_and_maps_agree(corpora, monkeypatch, case):
    folder, (memory, files) = corpora
    monkeypatch.chdir(folder)
    monkeypatch.setattr("datamask.corpus.neighbors.LEAST_APPROXIMATE", 100)
    assert outcome(files, options_of(case)) == outcome(memory, options_of(case))
