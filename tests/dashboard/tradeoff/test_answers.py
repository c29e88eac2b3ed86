"""The answer bar's words against numpy and pandas: rows, tokens, mean score, coverage, random rows and best scores."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from datamask.config import CorpusConfig, Quota, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.data import demo
from datamask.dashboard.tradeoff import answers, kept_baselines, kept_points, lambda_points, live
from datamask.dashboard.tradeoff.answers import Units
from datamask.measured import BASELINE_DRAWS

LONG = 240.0
LAMBDAS = (0.0, 0.35, 0.8)

pytestmark = pytest.mark.usefixtures("live_of_its_own")


def solved(corpus, cache_dir, **options):
    """The points of a problem and its units, as pages find them; solved where they are not kept."""
    settings = lambda_points.settings_of(SelectionConfig.from_options(**options))
    if not kept_points.of_problem(corpus, settings, cache_dir):
        behind = live.session(corpus, settings, cache_dir)
        behind.wait(LONG)
        assert behind.ready, behind.error
    baselines = kept_baselines.find(corpus.fingerprint, kept_points.key_of(corpus, settings), cache_dir)
    points = kept_points.of_problem(corpus, settings, cache_dir)
    return [point for point in points if point.lamb in LAMBDAS], Units(settings.budget is not None, baselines)


def numbers(sentence: str) -> list[float]:
    return [float(text.replace("−", "-")) for text in re.findall(r"[−]?\d+\.\d+", sentence)]


def coverage(features: np.ndarray, rows: np.ndarray) -> float:
    return float(np.maximum((features @ features[rows].T).max(axis=1), 0).mean())


def dissimilarity(features: np.ndarray, rows: np.ndarray) -> float:
    inside = features[rows].astype(float)
    n = len(inside)
    return 1 - float((np.square(inside.sum(axis=0)).sum() - np.square(inside).sum()) / (n * (n - 1)))


@pytest.fixture(scope="module")
def shipped():
    """The demo, and what is kept of it."""
    return open_corpus(demo.config()), demo.results() / "cache"


@pytest.fixture(scope="module")
def without_text(tmp_path_factory):
    """2,000 rows of ids, scores and vectors alone."""
    rng, folder = np.random.default_rng(8), tmp_path_factory.mktemp("plain")
    rows = {"id": [f"r{i}" for i in range(2_000)], "quality_score": rng.normal(size=2_000)}
    pd.DataFrame({**rows, "embedding": [*rng.normal(size=(2_000, 12))]}).to_parquet(folder / "plain.parquet")
    return open_corpus(CorpusConfig((str(folder / "plain.parquet"),))), folder


@pytest.mark.parametrize(
    ("corpus", "objective", "ratio", "value"),
    [
        ("shipped", "facility", 0.3, coverage),
        ("shipped", "pairwise", 0.1, dissimilarity),
        ("without_text", "facility", 0.2, coverage),
        ("without_text", "pairwise", 0.4, dissimilarity),
    ],
)
def test_each_number_is_that_of_the_rows(request, tmp_path, corpus, objective, ratio, value):
    corpus, kept = request.getfixturevalue(corpus)
    points, units = solved(
        corpus, kept if objective == "facility" else tmp_path, objective=objective, select_ratio=ratio
    )
    table = pd.DataFrame({"score": corpus.quality.astype(float)})
    size = round(ratio * len(corpus))
    best = table.score.nlargest(size).index.to_numpy()
    rng = np.random.default_rng(0)
    draws = [rng.permutation(len(corpus))[:size] for _ in range(BASELINE_DRAWS)]
    drawn = np.array([(table.score[rows].mean(), value(corpus.features, rows)) for rows in draws])
    near = 4 * drawn.std(axis=0) * np.sqrt(2 / BASELINE_DRAWS) + 0.005  # two means of 20 draws, and rounding
    for point in points:
        said = answers.answer(corpus, units, point.mask, "", quality=point.quality, diversity=point.diversity)
        rows = np.flatnonzero(point.mask)
        assert said["size"].startswith(f"{size:,} of {len(corpus):,} rows")
        assert ("tokens" in said["size"]) == (corpus.lengths is not None)
        score, random, top, spread, random_spread, top_spread = numbers(said["sentence"])
        assert [score, top] == pytest.approx([table.score[rows].mean(), table.score[best].mean()], abs=0.0051)
        assert [spread] == pytest.approx([value(corpus.features, rows)], abs=0.0051)
        if table.score.nlargest(size + 1).iloc[-1] < table.score[best].min():  # else ties decide which rows these are
            assert top_spread == pytest.approx(value(corpus.features, best), abs=0.0051)
        assert (np.abs(drawn.mean(axis=0) - [random, random_spread]) < near).all()
    (one, means), (highest, own) = answers.baselines(corpus, units)
    assert one.sum() == highest.sum() == size and np.sort(table.score[highest]).tolist() == sorted(table.score[best])
    assert value(corpus.features, np.flatnonzero(highest)) == pytest.approx(numbers(own["sentence"])[3], abs=0.0051)
    assert abs(table.score[one].mean() - table.score.mean()) < 4 * table.score.std() / np.sqrt(size)
    for each, said in enumerate((means, own)):
        found = numbers(said["sentence"])
        assert found[0] == found[1 + each] and found[3] == found[4 + each]
    for (random, top), term in zip(answers.ticks(units), ("quality", "diversity"), strict=True):
        assert abs(random["share"]) < 0.15 and top["share"] == getattr(units.baselines.best, term)


def test_baselines_obey_the_rules_and_the_budget(shipped, tmp_path):
    corpus, _ = shipped
    scores, lengths = corpus.quality.astype(float), corpus.lengths
    order = np.argsort(-scores, kind="stable")
    (tmp_path / "ban.txt").write_text("".join(f"{corpus.ids[row].as_py()}\n" for row in order[:600].tolist()))
    quota = (Quota("source", "numpy", 0.2, 1.0),)
    _, units = solved(corpus, tmp_path, objective="pairwise", ban=str(tmp_path / "ban.txt"), quotas=quota)
    source = pd.Series(corpus.metadata["source"].to_pylist()).to_numpy()[order[600:]]
    size, left, wanted = round(0.3 * len(corpus)), scores[order[600:]], source == "numpy"
    inside = np.flatnonzero(wanted)[: -(-size // 5)]
    assert wanted[:size].sum() < len(inside), "the quota binds"
    rows = [*inside, *np.flatnonzero(~wanted)[: size - len(inside)]]
    assert units.baselines.best.score == pytest.approx(left[rows].mean(), abs=1e-5)
    assert units.baselines.best.score < scores[order[:size]].mean() - 0.1
    budget = float(lengths.sum() * 0.2)
    points, units = solved(corpus, tmp_path, objective="pairwise", budget=budget)
    for point in points:
        (score, random, *_) = numbers(answers.sentence(corpus, units, point.mask, point.diversity, True))
        assert score == pytest.approx(np.average(scores[point.mask], weights=lengths[point.mask]), abs=0.0051)
        assert random == pytest.approx(np.average(scores, weights=lengths), abs=0.1)


def test_digits_tell_the_three_apart():
    say = answers._held_against
    assert say("Mean score", [312.2, 290.1, 400.0]) == "Mean score 312 (random 290, best scores 400)."
    assert say("Mean score", [0.00123, 0.00101, 0.0021]) == "Mean score 0.0012 (random 0.0010, best scores 0.0021)."
    assert say("Mean score", [2.0, 2.0, 2.0]) == "Mean score 2.00 (random 2.00, best scores 2.00)."
    assert say("Mean score", [2.5]) == "Mean score 2.50."
    assert say("Decorrelation", [-0.5, -0.75, 0.0], "≥ ") == "Decorrelation ≥ −0.50 (random −0.75, best scores 0.00)."
