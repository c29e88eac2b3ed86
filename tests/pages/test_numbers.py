"""The numbers on the pages, computed once more from the files on disk: by pyarrow and numpy in float64, and by nothing
of datamask's own."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy.sparse.csgraph import connected_components

from datamask.config import CorpusConfig
from datamask.corpus.projections.layouts import Layout, stored_layout
from datamask.dashboard.data.openings import openings
from datamask.dashboard.map import map_layout, named_regions
from datamask.work.cache import FOLDER
from tests.making.runs import execute_run, write_shard
from tests.pages.reading import (
    answer,
    map_data,
    parcels,
    runs_table,
    titles,
)

pytestmark = pytest.mark.usefixtures("live_of_its_own")

LAMBDAS = (0.2, 0.5, 0.8)
RATIO = 0.3
STEPS = 500
LONG = 240.0


class OnDisk:
    """A corpus and the runs on it as their files say, and what follows from these.

    Attributes:
        ids, quality, tokens, source, text: of the valid rows, in the order of the shards.
        x: features of unit length, float64 ``(N, d)``.
    """

    def __init__(self, shards: Path, runs: Path) -> None:
        table = pa.concat_tables(pq.read_table(path).unify_dictionaries() for path in sorted(shards.glob("*.parquet")))
        self.read = len(table)
        table = table.filter(pc.is_finite(table["quality_score"]))
        self.ids = table["chunk_id"].to_pylist()
        self.quality = table["quality_score"].to_numpy().astype(np.float64)
        self.tokens = table["n_tokens"].to_numpy()
        self.source = np.array(table["source"].cast(pa.string()).to_pylist())
        self.text = table["text"].to_pylist()
        features = np.array(table["feature_arr"].to_pylist(), np.float64)
        self.x = features / np.linalg.norm(features, axis=1, keepdims=True)
        self.cosines = self.x @ self.x.T
        self.runs = runs
        self.size = math.floor(RATIO * len(self.ids) + 0.5)
        # the ends of both scales: a random subset, whose pairs are random pairs of the corpus, and the best
        self.quality_ends = self.quality.mean(), np.sort(self.quality)[-self.size :].mean()
        self.random_diversity = self.diversity(np.ones(len(self.ids), bool))

    def selected(self, run_id: str) -> np.ndarray:
        """Bool ``(N,)``, by the ids in the run's selection."""
        chosen = set(pq.read_table(self.runs / run_id / "selection.parquet")["chunk_id"].to_pylist())
        return np.array([name in chosen for name in self.ids])

    def diversity(self, mask: np.ndarray) -> float:
        """Minus the mean cosine over pairs."""
        among = self.cosines[np.ix_(mask, mask)]
        count = len(among)
        return -float((among.sum() - np.trace(among)) / (count * (count - 1)))

    def relaxed(self, lamb: float, best: float) -> tuple[np.ndarray, float, float]:
        """What weights from 0 to 1 that add up to S reach at most, under lambda: by projected gradients with momentum.

        Args:
            best: diversity at the best end of its scale.

        Returns:
            The weights, their value, and what no weights are worth more than (by the tangent at them).
        """
        (low, high), random = self.quality_ends, self.random_diversity
        linear = lamb * (self.quality - low) / (high - low) / self.size
        curved = (1 - lamb) / (best - random) / (self.size * (self.size - 1))
        shift = -(1 - lamb) * random / (best - random) + curved * self.size
        step = 0.5 / (curved * np.linalg.eigvalsh(self.x.T @ self.x)[-1])
        weights = ahead = np.full(len(linear), self.size / len(linear))
        momentum = 1.0

        def slope(p: np.ndarray) -> np.ndarray:
            return linear - 2 * curved * (self.x @ (p @ self.x))

        for _ in range(STEPS):
            after = self._projected(ahead + step * slope(ahead))
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead = after + (momentum - 1) / following * (after - weights)
            weights, momentum = after, following
        near = weights @ self.x
        value = float(linear @ weights - curved * near @ near + shift)
        uphill = slope(weights)
        return weights, value, value + float(np.sort(uphill)[-self.size :].sum() - uphill @ weights)

    def _projected(self, point: np.ndarray) -> np.ndarray:
        """The nearest weights from 0 to 1 that add up to S, by bisection."""
        low, high = point.min() - 1, point.max()
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if np.clip(point - middle, 0, 1).sum() > self.size else (low, middle)
        return np.clip(point - (low + high) / 2, 0, 1)

    def best_diversity(self, run_id: str) -> float:
        """The best end of diversity's scale, which is found and not proved: as the run's record has it."""
        return record(self, run_id)["summary"]["anchors"]["diversity"]["pairwise"]["best"]

    def shares(self, mask: np.ndarray, best: float) -> tuple[float, float]:
        """Quality and diversity as shares of the way from random to best."""
        (low, high), random = self.quality_ends, self.random_diversity
        return (self.quality[mask].mean() - low) / (high - low), (self.diversity(mask) - random) / (best - random)


@pytest.fixture
def opening(runs_dir, store, tmp_path):
    """Two shards of 120 and 121 rows, one of which has no score, open; the layout is there."""
    whole = tmp_path / "whole.parquet"
    write_shard(whole, 241)
    table = pq.read_table(whole)
    scores = table["quality_score"].to_numpy().copy()
    scores[200] = np.nan
    table = table.set_column(1, "quality_score", pa.array(scores))
    folder = tmp_path / "shards"
    folder.mkdir()
    pq.write_table(table.slice(0, 120), folder / "a.parquet")
    pq.write_table(table.slice(120), folder / "b.parquet")
    opened = openings(runs_dir).start(CorpusConfig((str(folder),), drop_invalid=True), "shards")
    opened.wait(LONG)
    assert opened.ready, opened.job.error
    corpus, cache_dir = opened.corpus, store.cache_dir
    stored_layout(corpus, cache_dir).keep(Layout(corpus.features[:, :2].astype(np.float32), 0.5, len(corpus)))
    map_layout.prepare(corpus, cache_dir)
    return opened


@pytest.fixture
def disk(opening, runs_dir, tmp_path) -> OnDisk:
    return OnDisk(tmp_path / "shards", runs_dir)


@pytest.fixture
def made(opening, store) -> dict[float, str]:
    """Runs of pair-wise similarity, by lambda; called by it."""
    options = {"objective": "pairwise", "estimator": "relaxed", "select_ratio": RATIO}
    return {lamb: execute_run(store, opening.config, f"at {lamb:g}", lamb=lamb, **options).id for lamb in LAMBDAS}


def record(disk: OnDisk, run_id: str) -> dict:
    return json.loads((disk.runs / run_id / "status.json").read_text())


def metrics(app) -> dict[str, str]:
    return {metric.label: metric.value for metric in app.metric}


def words_of(app) -> str:
    """All that is written on the page, without marks of Markdown."""
    kinds = ("markdown", "caption", "info", "warning")
    return re.sub(r"[\\*]", "", " ".join(str(one.value) for kind in kinds for one in app.get(kind))).replace(
        "\u00a0", " "
    )


def per_cent(share: float, digits: int = 0) -> str:
    """As the pages write a share; one that lies on the edge of two would be a fault of the test's corpus."""
    assert abs(100 * share * 10**digits % 1 - 0.5) > 1e-3
    return f"{100 * share:.{digits}f} %"


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


def facets(app, place: int = 0) -> dict[str, dict]:
    """What a group of distributions was told, by name."""
    groups = [
        json.loads(component.proto.json)["facets"]
        for component in app.get("bidi_component")
        if component.proto.component_name == "datamask_strips"
    ]
    return {facet["name"]: facet for facet in groups[place]}


def test_data_says_of_the_corpus_what_the_shards_hold(page, opening, disk):
    app = page("pages/data.py", corpus=opening.key)
    numbers, said = metrics(app), words_of(app)
    # 1 to 3: rows, dimensions, rows left out
    assert f"240 of {disk.read} rows" in said and f"{disk.x.shape[1]} dimensions" in said and len(disk.ids) == 240
    (reasons,) = [table.value for table in app.dataframe if "problem" in table.value]
    assert f"{disk.read:,} rows of 2 files" in said and reasons["rows"].tolist() == [disk.read - len(disk.ids)]
    assert app.get("plotly_chart") and opening.corpus.fingerprint[:12] in said
    # 4, 5: tokens, and near-copies at a cosine of 0.95 or above
    tokens = int(disk.tokens.sum())
    assert plain(numbers["Tokens"]) == f"{tokens / 1000:.3g} k"
    apart = disk.cosines - 2 * np.eye(len(disk.ids))
    assert np.abs(apart.max(axis=1) - 0.95).min() > 1e-6
    assert plain(numbers["Semantic duplicates"]) == per_cent((apart.max(axis=1) >= 0.95).mean(), 1)
    groups, _ = connected_components(apart >= 0.95, directed=False)
    assert f"Removing them drops {per_cent(1 - groups / len(apart), 1)} of the rows" in plain(said)
    # 6: scores of the first rows
    first = next(table.value for table in app.dataframe if "chunk_id" in table.value)
    assert first["quality"].tolist() == pytest.approx(disk.quality[: len(first)], rel=1e-6)


def test_the_form_says_how_often_a_training_reads_what_is_selected(page, opening, disk, made):
    app = page("pages/runs.py", corpus=opening.key, run=made[0.5])
    assert "epochs of" not in words_of(app)
    app.text_input(key="form_training").set_value("3K").run()
    kept = disk.tokens[disk.selected(made[0.5])].sum()
    assert f"{kept / 1000:.3g} k tokens: {3000 / kept:.2g} epochs of 3 k." in words_of(app)
    app.text_input(key="form_training").set_value("lots").run()
    assert "Training tokens must be a number above 0" in words_of(app) and "epochs of" not in words_of(app)


def test_the_map_counts_what_is_shown_kept_and_near(page, opening, disk, made, runs_dir):
    mask = disk.selected(made[0.5])
    row = int(np.flatnonzero(~mask)[7])
    app = page(corpus=opening.key, run=made[0.5], sample=disk.ids[row], maps="3")
    said = words_of(app)
    # 1 to 4: rows and tokens, once on the page
    tokens = f"{disk.tokens[mask].sum() / 1000:.3g} k tokens"
    assert plain(answer(app)["answer"]["size"]) == f"{disk.size} of 240 rows · {tokens}" and mask.sum() == disk.size
    assert "of 240 rows" not in said
    # 5: the histogram of quality, between its half percentiles, what lies beyond in the outer bars; all and kept
    drawn = facets(app)["quality"]
    ends = np.percentile(disk.quality, [0.5, 99.5])
    inside = np.clip(disk.quality, *ends)
    for name, rows in (("all", np.ones(240, bool)), ("chosen", mask)):
        assert drawn[name] == np.histogram(inside[rows], bins=40, range=ends)[0].tolist(), name
    # 6: kept of each group
    groups = facets(app, 1)["source"]
    for label, share, count, selected in zip(groups["labels"], groups["shares"], groups["n"], groups["selected"]):
        member = disk.source == label
        assert (count, selected) == (member.sum(), mask[member].sum()) and share == pytest.approx(mask[member].mean())
    # 7, 8: the marked sample's own
    assert f"not selected · quality score {disk.quality[row]:.4g}, better than" in said
    assert f"better than {per_cent((disk.quality < disk.quality[row]).sum() / 239)} of all rows" in said
    # 9, 10: the nearest samples, by falling cosine, and whether each is kept
    cosines = np.where(np.arange(240) == row, -2, disk.cosines[row])
    nearest = np.argsort(-cosines)[:8]
    listed = [button for button in app.button if (button.key or "").startswith("nearest_")]
    assert [int(button.key.removeprefix("nearest_")) for button in listed] == nearest.tolist()
    for button, other in zip(listed, nearest):
        state = "selected" if mask[other] else "not selected"
        assert button.label.startswith(f"{cosines[other]:.3f} · {state} · ")
    assert f"{mask[nearest].sum()} of 8 selected" in said
    # 11: the similarity to its 15 nearest, which the third map colours
    assert titles(app)[2] == "Similarity to neighbors"
    layer, rows = parcels(app)["2"], parcels(app)["ground"]["rows"]
    apart = np.sort(disk.cosines - 3 * np.eye(240), axis=1)[:, ::-1][:, :15].mean(axis=1)
    # lists are in the order of rounded rows
    assert layer["values"] == pytest.approx(apart[rows], abs=2e-5)
    # 12: named regions, with what is selected of the rows drawn inside each
    regions = named_regions.load(opening.corpus, runs_dir / FOLDER, "UMAP")
    assert len(map_data(app)["names"]) == len(regions.names)
    for code, label, _, _, sentence in map_data(app)["names"]:
        inside = regions.codes == code
        assert f"{label}: {inside.sum()} rows, {per_cent(mask[inside].mean())} of them" in plain(sentence)
    # 13, 14: a group alone
    web = disk.source == "web"
    app = page(corpus=opening.key, run=made[0.5], where=json.dumps([["source", ["web"]]]))
    assert f"{web.sum()} of 240 rows shown, {disk.tokens[web].sum():,} tokens" in words_of(app)
    assert f"{mask[web].sum()} selected, {per_cent(mask[web].mean())}" in words_of(app)


def test_one_lambda_has_one_answer_on_the_map_in_the_table_and_on_the_frontier(page, opening, disk, made):
    pages = {
        "map": page(corpus=opening.key, run=made[0.5]),
        "runs": page("pages/runs.py", corpus=opening.key, run=made[0.5]),
        "frontier": page("pages/frontier.py", corpus=opening.key, run=made[0.5]),
    }
    curve = next(table.value for table in pages["frontier"].dataframe if "curve" in table.value).set_index("λ")
    pages["runs"].multiselect(key="runs_columns").set_value(["lamb", "quality", "diversity", "tokens", "gap"]).run()
    listed = runs_table(pages["runs"]).set_index("lamb")
    for lamb, run_id in made.items():
        mask, best = disk.selected(run_id), disk.best_diversity(run_id)
        quality, diversity = disk.shares(mask, best)
        joint = lamb * quality + (1 - lamb) * diversity
        # the slider of the map, at the lambda of that run
        app = page(corpus=opening.key, run=run_id)
        (point,) = [point for point in parcels(app)["lambdas"]["points"] if point["lamb"] == lamb]
        assert point["run"] and point["size"].startswith(f"{disk.size} of 240 rows")
        assert [plain(meter["finer"]) for meter in point["meters"]] == [
            per_cent(share, 1) for share in (quality, diversity)
        ]
        # the table of runs, and the one under the frontier
        for table, column in ((listed, "quality"), (curve, "quality")):
            assert table.loc[lamb, column] == pytest.approx(100 * quality, abs=1e-3)
            assert table.loc[lamb, "diversity"] == pytest.approx(100 * diversity, abs=1e-3)
        assert listed.loc[lamb, "tokens"] == disk.tokens[mask].sum()
        assert curve.loc[lamb, "mean quality"] == pytest.approx(disk.quality[mask].mean(), rel=1e-6)
        # no selection is worth more than the bound, which is that of the relaxation, solved anew
        _, reached, most = disk.relaxed(lamb, best)
        assert most - reached < 1e-5
        gap = listed.loc[lamb, "gap"]
        assert joint <= most + 1e-6 and most - joint - 1e-5 <= gap <= most - joint + 5e-5
        assert curve.loc[lamb, "gap"] == pytest.approx(100 * gap, abs=1e-3)
        # rounded up, as what is proved must be
        proved = float(plain(point["gap"]).removeprefix("gap ").removesuffix(" %"))
        assert proved == pytest.approx(max(math.ceil(1e4 * gap) / 100, 0.01))
    # the ends of the scales; no selection is more diverse than the one at the end but by little
    anchors = record(disk, made[0.5])["summary"]["anchors"]
    assert [anchors["quality"][end] for end in ("random", "best")] == pytest.approx(list(disk.quality_ends))
    assert anchors["diversity"]["pairwise"]["random"] == pytest.approx(disk.random_diversity, rel=1e-6)
    assert 1 - 1e-6 <= disk.relaxed(0.0, disk.best_diversity(made[0.5]))[2] < 1.001
    # the page of the run, in words
    mask = disk.selected(made[0.5])
    quality, diversity = disk.shares(mask, disk.best_diversity(made[0.5]))
    value = 0.5 * quality + 0.5 * diversity
    assert f"joint value is {per_cent(value, 2)}" in words_of(pages["runs"])
