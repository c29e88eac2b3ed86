"""From a question to a result on corpora whose answer is known; all seeds in `benchmarks/planted_ablation.py`."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from datamask.ablation import wording
from datamask.ablation.question import AblationQuestion
from datamask.analyses.ablation.compute import ablate
from datamask.analyses.ablation.compute import contestants as contesting
from datamask.analyses.ablation.compute import study as studying
from datamask.analyses.ablation.compute.contestants import Contestants, single
from datamask.analyses.ablation.compute.kept import StudyCache
from datamask.analyses.ablation.compute.parts import parts
from datamask.config.target import Target
from datamask.errors import InputError, OptionError, Stopped
from datamask.evaluation.examples import Examples
from datamask.work.pace import RoundPace
from tests.making.planted import noise_corpus, planted_corpus
from tests.making.pools import made_corpus

QUICK = ("duplicates-removed", "soft-quality", "top-quality")
ASKED = AblationQuestion(methods=QUICK, objectives=("pairwise",), lambdas=(0.0, 0.8), seeds=6)


def test_a_planted_method_is_better_than_random(tmp_path):
    corpus, _, texts = planted_corpus(3, n=2000)
    shares: list[float] = []
    early = []
    question = replace(ASKED, target=Target.own(texts), seeds=10)
    result = ablate(
        corpus,
        question,
        tmp_path,
        texts=texts,
        device="cpu",
        progress=lambda share, what: shares.append(share),
        first=early.append,
    )
    assert shares == sorted(shares) and shares[-1] == 1
    (first,) = early
    assert first.provisional and first.seeds == 3 and first.recommendation is None
    assert np.array_equal(first.losses, result.losses[:3])
    place = [method.name for method in result.methods].index("pairwise-0.8")
    assert result.to_random(place, 0).verdict == "better" and result.to_simple(place, 0).verdict == "better"
    assert result.recommendation.method.name == "pairwise-0.8"
    assert "Pair-wise similarity λ 0.8 is better than the best simple baseline" in wording.headline(result)
    json.dumps(result.to_dict(), allow_nan=False)


def test_several_targets_are_the_default_and_noise_leads_to_no_claim(tmp_path):
    result = ablate(noise_corpus(1, n=2000), ASKED, tmp_path, device="cpu")
    assert [target.name for target in result.targets] == ["pool", *(f"region {place}" for place in range(1, 9))]
    assert "hard to beat on held-out text" in result.targets[0].note
    assert not result.claims and result.recommendation is None
    assert "k-means regions" in " ".join(result.notes)


def test_a_label_column_gives_the_targets(tmp_path):
    result = ablate(made_corpus(dim=40), replace(ASKED, label="domain"), tmp_path, device="cpu")
    names = [target.name for target in result.targets]
    assert names[0] == "pool" and set(names[1:]) <= {f"d{place}" for place in range(6)} and len(names) >= 4
    with pytest.raises(OptionError, match="no column 'nothing'"):
        ablate(made_corpus(dim=40), replace(ASKED, label="nothing"), tmp_path, device="cpu")


def test_a_corpus_without_texts_is_judged_by_its_features_and_says_so(tmp_path):
    corpus = replace(made_corpus(dim=40, texts=False), lengths=None)
    result = ablate(corpus, replace(ASKED, label="domain"), tmp_path, device="cpu")
    assert result.judge == "features" and result.unit == "cosine distance" and result.counts == "rows"
    notes = " ".join(result.notes)
    assert "no texts here, so methods are evaluated by its features" in notes
    assert "Exact duplicates are rows with the same features." in notes
    by_tokens = ablate(made_corpus(dim=40, texts=False), replace(ASKED, label="domain"), tmp_path, device="cpu")
    assert by_tokens.counts == "tokens" and by_tokens.training > 0
    with pytest.raises(InputError, match="no text column"):
        ablate(corpus, replace(ASKED, judge="transformer"), tmp_path, device="cpu")


def test_high_scores_of_a_second_column_are_a_target_and_of_the_first_circular(tmp_path):
    corpus = made_corpus(1500, dim=40)
    extra = np.arange(1500) % 97 / 97.0
    corpus = replace(corpus, metadata=corpus.metadata.append_column("stars", [extra]))
    result = ablate(corpus, replace(ASKED, target=Target("score", "stars")), tmp_path, device="cpu")
    assert result.targets[0].label == "the best quarter of the held-out text by stars"
    assert not result.targets[0].circular
    own = ablate(corpus, replace(ASKED, target=Target("score", "q_a")), tmp_path, device="cpu")
    assert own.targets[0].circular and own.recommendation is None
    with pytest.raises(OptionError, match="needs a column of numbers"):
        ablate(corpus, replace(ASKED, target=Target("score", "domain")), tmp_path, device="cpu")


@pytest.mark.parametrize("texts", [True, False])
def test_examples_score_with_one_half_and_evaluate_with_the_other(texts, tmp_path):
    corpus = made_corpus(1600, dim=40, texts=texts)
    rows = np.flatnonzero(np.array(corpus.metadata["domain"].to_pylist()) == "d1")[:130]
    spelled = tuple(corpus.metadata["text"].to_pylist()[row] for row in rows) if texts else None
    _, first = np.unique(corpus.features[rows], axis=0, return_index=True)
    examples = Examples(
        "liked.txt", corpus.features[rows[first]], None if spelled is None else tuple(spelled[i] for i in first)
    )
    question = replace(ASKED, target=Target("ids", name="liked.txt"), seeds=10)
    result = ablate(corpus, question, tmp_path, examples=examples, device="cpu")
    assert result.judge == ("bigram" if texts else "features")
    assert any("steer: quality is the rank" in note for note in result.notes)
    # the examples score the rows, so the best rows by score are nearest to the other half
    place = [method.name for method in result.methods].index("top-quality")
    assert result.to_random(place, 0).verdict == "better"


def test_a_stopped_ablation_continues_to_the_same_result(tmp_path, monkeypatch):
    corpus = made_corpus(1500, dim=40)
    question = replace(ASKED, target=Target())
    keep = StudyCache(tmp_path, corpus.fingerprint, "ablation-")
    calls = []
    seed = studying.one_seed
    monkeypatch.setattr(studying, "one_seed", lambda *given: (calls.append(given[2]), seed(*given))[1])

    def poll():
        if len(calls) >= 4:
            raise Stopped("enough")

    with pytest.raises(Stopped):
        ablate(corpus, question, tmp_path, device="cpu", poll=poll, keep=keep)
    selected, losses = len(keep.names()), len(keep.names("lambda-losses"))
    assert selected == 3 * 5 and losses >= 3 * 5
    learned = []
    learn = studying.Contestants.selections
    monkeypatch.setattr(studying.Contestants, "selections", lambda *given: (learned.append(1), learn(*given))[1])
    again = ablate(corpus, question, tmp_path, device="cpu", keep=keep)
    straight = ablate(corpus, question, tmp_path / "straight", device="cpu")
    assert np.array_equal(again.losses, straight.losses) and np.array_equal(again.of_texts, straight.of_texts)
    assert len(keep.names()) == 6 * 5


def test_the_pace_of_an_ablation_weighs_each_method_by_what_it_took(tmp_path, monkeypatch):
    """By a fake clock learned masks take forty times as long as the others; a resumed ablation tells no less."""
    now, corpus = [0.0], made_corpus(1500, dim=40)
    selected = contesting._selected

    def slowly(pool, config, poll, kept):
        now[0] += 40.0 if config.estimator == "soft-quality" else 1.0
        return selected(pool, config, poll, kept)

    monkeypatch.setattr(contesting, "_selected", slowly)
    pace, seen = RoundPace(lambda: now[0]), []

    def progress(share, what):
        if ", seed " in what:
            seen.append((now[0], share, pace.update(share, what)))

    question = replace(ASKED, target=Target())
    ablate(corpus, question, tmp_path, device="cpu", pace=pace, progress=progress)
    shares, told = [share for _, share, _ in seen], [(at, left) for at, _, left in seen if left is not None]
    assert shares == sorted(shares) and told[0][0] == now[0] / 6
    assert [left for _, left in told] == pytest.approx([now[0] - at for at, _ in told])
    # after the first seed the share rises as the clock does
    steady = [(at / now[0], (share - 0.1) / 0.9) for at, share, left in seen if left is not None]
    assert [share for _, share in steady] == pytest.approx([at for at, _ in steady])


def test_held_out_rows_and_near_duplicates_are_never_selected_and_seeds_share_no_row(tmp_path, monkeypatch):
    corpus = made_corpus(1500, dim=40)
    plans = []
    planned = studying.plan
    monkeypatch.setattr(studying, "plan", lambda *given: plans.append(planned(*given)) or plans[0])
    ablate(corpus, replace(ASKED, label="domain"), tmp_path, device="cpu", seeds=1)
    (plan,) = plans
    everything = np.concatenate(plan.remaining)
    held = np.concatenate(plan.texts)
    assert len(np.unique(everything)) == len(everything) and len(np.unique(held)) == len(held)
    assert (corpus.features[everything] @ corpus.features[held].T).max() < 0.95
    # an exact copy stands one row behind its original: both are in one seed
    seed_of = np.full(len(corpus), -1)
    for place, rows in enumerate(plan.remaining):
        seed_of[rows] = place
    copies = np.arange(9, 1500, 10)
    both = (seed_of[copies] >= 0) & (seed_of[copies - 1] >= 0)
    assert both.sum() > 20 and (seed_of[copies] == seed_of[copies - 1])[both].all()


def test_parts_are_disjoint_whole_and_bounded():
    units = np.arange(3000) // 3
    dealt = parts(units, 7, 10_000)
    assert sorted(np.concatenate(dealt)) == list(range(3000))
    assert all(len(np.unique(units[part])) * 3 == len(part) for part in dealt)
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 3
    assert [len(part) for part in parts(units, 7, 50)] == [50] * 7
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(dealt, parts(units, 7, 10_000, seed=1)))


def test_variances_by_texts_are_those_of_a_bootstrap():
    from datamask.analyses.ablation.compute.study import Texts

    rng = np.random.default_rng(2)

    class Meter:
        def weights(self, texts):
            return rng_weights[texts]

    rng_weights = rng.integers(5, 40, 300).astype(float)
    units = np.arange(300) // 2

    class Plan:
        meter, texts, units = Meter(), (np.arange(300),), (np.arange(300) // 2,)

    each = rng.normal(6, 1, 300) + 0.5 * rng.normal(size=(2, 300))
    sums = each * rng_weights
    found = Texts(Plan()).variances(sums, [True, False])[1, 0, 0]
    drawn = []
    for _ in range(3000):
        rows = rng.integers(0, 150, 150)
        picked = np.concatenate([2 * rows, 2 * rows + 1])
        total = sums[:, picked].sum(axis=1) / rng_weights[picked].sum()
        drawn.append(total[1] - total[0])
    assert found == pytest.approx(np.var(drawn), rel=0.15) and units[1] == 0
    assert Texts(Plan()).variances(sums, [True, False])[0, 0, 0] == 0


def test_contestants_come_from_the_catalogue_and_the_question():
    question = AblationQuestion()
    names = [method.name for method in Contestants(question).methods]
    assert names[0] == "random" and len(set(names)) == len(names)
    assert {f"{objective}-{lamb:g}" for objective in question.objectives for lamb in question.lambdas} < set(names)
    assert single("masks", 0.3, 500, 0).preset == "paper" and single("greedy", 0.3, 500, 0).objective == "facility"
    assert single("duplicates-removed", 0.3, 500, 0).collapse == "exact"
    assert single("cluster-balanced", 0.3, 500, 0).clusters == 25
    assert single("cluster-balanced", 0.3, 9000, 0).clusters == 100


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(InputError, match="choose fewer --seeds"):
        ablate(made_corpus(300), replace(ASKED, target=Target()), tmp_path, device="cpu")
    with pytest.raises(OptionError, match="needs its examples"):
        ablate(made_corpus(300), replace(ASKED, target=Target("ids")), tmp_path, device="cpu")
    with pytest.raises(OptionError, match="can be held out"):
        ablate(made_corpus(300), replace(ASKED, target=Target("column", "domain", "d9")), tmp_path, device="cpu")
