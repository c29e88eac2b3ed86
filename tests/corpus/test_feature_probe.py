"""What features can do: by definition in a few lines, on planted corpora, and on nothing."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import RidgeCV

from datamask.analyses.feature_probe.panel import measured_on
from datamask.corpus import feature_probe
from datamask.corpus.feature_probe import NEIGHBORS, PENALTIES, probe_features
from datamask.errors import Stopped
from datamask.work.context import Work

N = 600


@pytest.fixture
def planted(make_corpus):
    """Two clouds that are a label, a quality along one direction, and labels that mean nothing."""
    rng = np.random.default_rng(3)
    cloud = rng.integers(0, 2, N)
    features = rng.normal(size=(N, 6)) + 4 * cloud[:, None]
    corpus = make_corpus(features, features[:, 0] - features[:, 1] + 0.5 * rng.normal(size=N))
    kinds = np.array(["first", "second"])[cloud].tolist()
    kinds[7] = None
    metadata = pa.table({"kind": kinds, "noise": rng.choice(["x", "y", "z"], N), "alone": ["same"] * N})
    return replace(corpus, metadata=metadata)


def test_both_numbers_are_those_of_their_definition(planted):
    found = probe_features(planted)
    quality, x = planted.quality, planted.features.astype(np.float64)
    order = np.argsort(feature_probe.row_hash(planted.ids, 0), kind="stable")
    # which half a row is in depends on the order of the hashes, as the sample of a larger corpus does
    ranks = np.argsort(np.argsort(quality[order])) + 1.0
    seen = np.arange(N) % 2 == 0
    correlations = []
    for half in (seen, ~seen):
        model = RidgeCV(alphas=PENALTIES).fit(x[order][half], ranks[half])
        correlations.append(spearmanr(model.predict(x[order][~half]), quality[order][~half]).statistic)
    assert found.correlation == pytest.approx(np.mean(correlations), abs=5e-3) and found.rows == found.sampled == N
    cosines = x @ x.T
    np.fill_diagonal(cosines, -2)
    near = np.argsort(-cosines, axis=1)[:, :NEIGHBORS]
    for label, column in zip(found.labels, ("kind", "noise"), strict=True):
        values = planted.metadata[column].to_pylist()
        pairs = [(values[i], values[j]) for i in range(N) for j in near[i]]
        assert label.share == pytest.approx(np.mean([a == b for a, b in pairs if a and b]), abs=2e-3)
        every = [a == b for i, a in enumerate(values) for j, b in enumerate(values) if a and b and i != j]
        assert (label.column, label.shuffled) == (column, pytest.approx(np.mean(every)))


def test_what_is_planted_is_found_and_noise_is_not(planted):
    found = probe_features(planted)
    assert found.correlation > 0.7 and abs(found.shuffled) < 0.1
    kind, noise = found.labels
    assert kind.share > 0.95 and kind.shuffled == pytest.approx(0.5, abs=0.05)
    assert noise.share == pytest.approx(noise.shuffled, abs=0.03)
    probe = replace(found, correlation=0.414, shuffled=-0.004, labels=(replace(kind, share=0.62, shuffled=0.09),))
    assert probe.sentences() == [
        "A linear probe predicts quality scores with rank correlation 0.41 on held-out rows (shuffled: 0.00).",
        "Nearest neighbors with the same kind: 62 % (shuffled: 9 %).",
    ]


def test_copies_count_once(make_corpus):
    """Each row twice, with a quality that only its copy could tell."""
    rng = np.random.default_rng(5)
    features, quality = rng.normal(size=(200, 150)), rng.normal(size=200)
    found = probe_features(make_corpus(np.repeat(features, 2, axis=0), np.repeat(quality, 2)))
    assert found.rows == 200 and found.sampled >= 200 and abs(found.correlation) < 0.3


def test_a_large_corpus_is_sampled(planted, monkeypatch):
    monkeypatch.setattr(feature_probe, "SAMPLE", 100)
    found = probe_features(planted)
    assert found.rows == found.sampled == 100 and measured_on(found, len(planted)).startswith(
        "Measured on 100 random rows"
    )
    assert probe_features(planted) == found
    monkeypatch.setattr(feature_probe, "WIDE", 5)
    assert probe_features(planted).rows == 50


@pytest.mark.parametrize("case", ["few", "constant", "no labels"])
def test_where_nothing_can_be_said_that_is_said(planted, make_corpus, case):
    if case == "few":
        found = probe_features(make_corpus(np.eye(20)))
        assert found.labels == ()
    elif case == "constant":
        found = probe_features(replace(planted, quality=np.ones(N)))
        assert len(found.labels) == 2
    else:
        found = probe_features(make_corpus(np.random.default_rng(0).normal(size=(100, 3))))
        assert found.labels == () and found.correlation is not None and len(found.sentences()) == 1
        return
    assert found.correlation is None and found.sentences()[0].startswith("Too few different")


def test_it_can_be_stopped(planted):
    with pytest.raises(Stopped):
        probe_features(planted, Work.of(lambda: True))
