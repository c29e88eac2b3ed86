"""The study of what selecting helps: its draws, its classifier, its intervals, that it goes on, and its document."""

from __future__ import annotations

import copy
import json
import tomllib
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import ttest_rel

from benchmarks import evidence, evidence_document
from benchmarks.evidence_corpora import (
    PART_OF_TARGET,
    PLAN,
    classified,
    dealt,
    open_setting,
    plan,
    texts_of,
    told_apart,
    write_sample,
)
from benchmarks.evidence_document import (
    DOCUMENT,
    README,
    document,
    read_results,
    readme_table,
    who_wins,
    with_sentence,
    with_table,
)
from benchmarks.evidence_results import BETTER, LEVEL, QUALITY_OF, WORSE, Evidence, contests, difference
from datamask.evaluation.lambdas import proxy_models
from datamask.evaluation.lambdas.transformer import Size

FACTS = {
    "title": "made texts",
    "what": "two languages",
    "kind_column": "kind",
    "reference": ["good"],
    "reference_says": "good texts",
    "targets": ["random", "reference", "kind"],
    "target_kind": "plain",
    "circular": True,
}
QUICK = Size(layers=1, width=16, heads=1, context=32, batch=16)


def made_texts(rng: np.random.Generator, count: int, prefix: str) -> list[str]:
    """Texts of 30 words of a language."""
    return [" ".join(f"{prefix}{word}" for word in line) for line in rng.zipf(1.4, (count, 30)) % 200]


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """Two kinds of texts, one file each; some of the plain ones are there twice."""
    folder = tmp_path_factory.mktemp("texts")
    rng = np.random.default_rng(3)
    plain = made_texts(rng, 500, "p")
    plain[250:300] = plain[:50]
    pq.write_table(pa.table({"text": made_texts(rng, 200, "g")}), folder / "good.parquet")
    pq.write_table(pa.table({"text": plain}), folder / "plain.parquet")
    return folder


def test_every_row_is_dealt_to_one_part_and_the_pool_has_its_share_of_the_reference():
    kinds = np.array(["good"] * 900 + ["plain"] * 2_100)
    part = dealt(kinds, FACTS, 1_000, 250, 5)
    counts = dict(zip(*np.unique(part, return_counts=True)))
    assert counts["reference"] == counts["good"] == counts["kind"] == counts["random"] == 250
    assert counts["pool"] == 1_000
    assert set(kinds[part == "reference"]) == set(kinds[part == "good"]) == {"good"}
    assert set(kinds[part == "kind"]) == {"plain"}
    # of what is left, 400 of 2,250 rows are good: of a pool of 1,000 some 178, with a standard deviation of 9
    for name, rows in (("pool", 1_000), ("random", 250)):
        good = (kinds[part == name] == "good").sum()
        assert abs(good - rows * 400 / 2_250) < 5 * (rows * 0.15) ** 0.5
    np.testing.assert_array_equal(part, dealt(kinds, FACTS, 1_000, 250, 5))
    assert (part != dealt(kinds, FACTS, 1_000, 250, 6)).mean() > 0.3


def test_a_part_leaves_the_pool_rows_of_its_kind():
    kinds = np.array(["good"] * 90 + ["plain"] * 900)
    part = dealt(kinds, FACTS, 5_000, 250, 0)
    assert (part == "reference").sum() == (part == "good").sum() == 30
    assert (kinds[part == "pool"] == "good").any() and (part != "").all()


def test_what_repeats_a_target_or_the_reference_leaves_the_pool(shards, tmp_path):
    table = texts_of("texts", str(shards), tmp_path)
    assert set(table["kind"].to_pylist()) == {"good", "plain"} and len(set(table["chunk_id"].to_pylist())) == 700
    write_sample(table, FACTS, 400, 60, 1, tmp_path / "sample.parquet")
    setting = open_setting(tmp_path / "sample.parquet", FACTS, tmp_path / "cache")
    texts = np.array(setting.texts)
    taken = np.concatenate([*setting.targets.values(), setting.reference])
    assert setting.left > 0 and not set(texts[setting.pool]) & set(texts[taken])
    features = setting.corpus.features
    assert (features[setting.pool] @ features[taken].T).max() < 0.95
    asked = np.concatenate(list(setting.targets.values()))
    assert not set(texts[setting.reference]) & set(texts[asked])
    assert {name: len(rows) for name, rows in setting.targets.items()} == {"random": 60, "reference": 60, "kind": 60}
    # those that are asked first are of no one place in the shards
    assert all((np.diff(rows) < 0).any() for rows in setting.targets.values())


def test_the_classifier_knows_the_reference_and_scores_no_row_that_it_learned_from():
    rng = np.random.default_rng(0)
    texts = made_texts(rng, 300, "g") + made_texts(rng, 600, "p")
    pool, reference = np.arange(200, 900), np.arange(200)
    kinds = np.array(["good"] * 300 + ["plain"] * 600)
    assert told_apart(classified(texts, pool, reference, 0), kinds[pool], ["good"]) > 0.99
    # of texts without a word in common nothing can be learned about another one, but where two words have one hash
    alone = [f"only{number} once{number}" for number in range(900)]
    scores = classified(alone, pool, reference, 0)
    assert (abs(scores - np.median(scores)) < 0.01).mean() > 0.97
    # the same texts twice: many a row is scored by what learned from its twin, and shows it
    learned_from = classified([*alone[:200], *alone[200:550], *alone[200:550]], pool, reference, 0)
    assert (abs(learned_from - np.median(learned_from)) < 0.01).mean() < 0.8


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_interval_is_that_of_a_paired_t_test(seeds):
    values = np.random.default_rng(seeds).normal(5, 1, (seeds, 2))
    outcome = difference([tuple(pair) for pair in values], 0.95)
    expected = ttest_rel(values[:, 0], values[:, 1]).confidence_interval(0.95)
    assert outcome.seeds == seeds
    np.testing.assert_allclose([outcome.low, outcome.high], [expected.low, expected.high])
    np.testing.assert_allclose(outcome.mean, (values[:, 0] - values[:, 1]).mean())
    assert difference([(1.0, 2.0), (1.0, 2.5)], 0.95) is None


def made_results(asked: dict, shift: dict[str, float]) -> dict:
    """Results where each selection differs from random by its shift, give or take the same on every seed."""
    results: dict = {}
    for judge, qualities in QUALITY_OF.items():
        pieces = {}
        for corpus, facts in asked["corpora"].items():
            for quality in qualities:
                for seed in asked["seeds"][judge]:
                    names = Evidence({}, asked).selections[judge]
                    nats = {
                        name: [6 + seed + shift.get(name, 0.0) * (1 + 0.1 * seed) for _ in facts["targets"]]
                        for name in names
                    }
                    pieces[f"{corpus}/{quality}/{seed}"] = {
                        "nats": nats,
                        "budget": 1_000,
                        "random_draws": [[6.0, 6.1]] * 2,
                    }
        results[judge] = {"pieces": pieces, "samples": {}}
    return results


def test_verdicts_name_the_targets_and_what_is_missing_is_in_none():
    asked = plan()
    results = made_results(asked, {"facility 0.5": -0.1, "pairwise 0.5": 0.1})
    study = Evidence(results, asked)
    assert study.done("bigram") == (30 * 17, 30 * 17) and study.done("transformer") == (54, 54)
    for judge, quality in (("bigram", "rules"), ("transformer", "classifier")):
        assert len(study.verdicts(judge, quality, "facility 0.5", "random")[BETTER]) == 6
        assert len(study.verdicts(judge, quality, "pairwise 0.5", "random")[WORSE]) == 6
        assert len(study.verdicts(judge, quality, "soft-quality", "random")[LEVEL]) == 6
    said = evidence_document.sentence(study, "bigram", "rules", "facility 0.5", "random")
    assert "better than random on six of six (packages: held-out; packages: reference; texts" in said
    assert "| pair-wise similarity, lambda 0.5 | 0 / 6 / 0 | 0 / 6 / 0 | 0 / 6 / 0 |" in readme_table(study)
    for key in [key for key in results["transformer"]["pieces"] if key.startswith("texts/")]:
        del results["transformer"]["pieces"][key]
    assert study.done("transformer") == (36, 54)
    assert len(study.verdicts("transformer", "classifier", "facility 0.5", "random")[BETTER]) == 4
    assert "| facility location, lambda 0.5 | 6 / 0 / 0 | 6 / 0 / 0 | 4 / 0 / 0, 2 not done |" in readme_table(study)
    written = document(study)
    prose = [line for line in written.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 120
    assert "36 of 54 selections are judged" in written and "too few seeds" in written


def test_the_best_of_many_is_chosen_on_the_other_seeds_than_the_one_that_judges_it():
    rng = np.random.default_rng(7)
    asked = plan()
    results = made_results(asked, {})
    # nothing differs but by chance: on the very seeds that choose it, the best of twelve joint ones looks better
    for piece in results["bigram"]["pieces"].values():
        for name in piece["nats"]:
            piece["nats"][name] = rng.normal(6, 0.1, len(piece["nats"][name])).tolist()
    study = Evidence(results, asked)
    found = contests(study, "bigram", study.joint, ["random"])
    assert len(found) == 12 and abs(np.mean([one.outcome.mean for one in found])) < 0.05
    one = found[0]
    nats = [piece["nats"] for piece in study.pieces("bigram", one.quality, one.target.corpus)]
    values = np.array([[of[name][one.target.place] for name in study.joint] for of in nats])
    best = [np.delete(values, seed, axis=0).mean(axis=0).argmin() for seed in range(5)]
    assert one.joint == Counter(study.joint[place] for place in best) and one.simple == {"random": 5}
    left_out = [values[seed, place] for seed, place in enumerate(best)]
    expected = ttest_rel(left_out, [of["random"][one.target.place] for of in nats]).confidence_interval(0.95)
    np.testing.assert_allclose([one.outcome.low, one.outcome.high], [expected.low, expected.high])
    # a seed that lacks a selection cannot choose it
    del nats[0][study.joint[0]]
    assert contests(study, "bigram", study.joint, ["random"])[0].outcome.seeds == 4
    said = who_wins(Evidence(made_results(asked, {"facility 0.5": -0.1}), asked))
    assert "In some cells." in said and "better in 12, worse in 0, undecided in 0." in said
    assert "Too few seeds" in who_wins(Evidence({}, asked))


def test_the_table_of_the_readme_is_replaced_and_nothing_else():
    head = evidence_document.README_HEAD
    readme = f"before\n\n{head} x |\n|---|---|\n| a | 1 |\n\nafter\n| other |\n"
    assert with_table(readme, f"{head} y |\n|---|---|\n| b | 2 |") == readme.replace("x |", "y |").replace(
        "| a | 1 |", "| b | 2 |"
    )
    with pytest.raises(ValueError, match="must hold one table"):
        with_table("none", "")
    asked = evidence_document.ASKED
    assert with_sentence(f"a\n\n{asked} No.\nmore\n\nb\n", f"{asked} Yes.") == f"a\n\n{asked} Yes.\n\nb\n"
    with pytest.raises(ValueError, match="must hold one paragraph"):
        with_sentence("none", "")


def small_plan(corpus: str = "texts") -> dict:
    """The plan's form, small."""
    asked = copy.deepcopy(plan())
    asked |= {"rows": 320, "held": 60, "seeds": {"bigram": [0, 1], "transformer": [0]}}
    asked["selections"] = {
        "plain": ["random", "top-quality", "cluster-balanced"],
        "lambdas": [0.5],
        "by_lambda": ["greedy", "pairwise"],
        "transformer": ["random", "top-quality"],
    }
    asked["corpora"] = {corpus: FACTS | {"targets": ["random", "reference"]}}
    return asked


def without_seconds(path) -> dict:
    report = json.loads(path.read_text())
    for piece in report["pieces"].values():
        piece.pop("seconds")
    return report


def test_a_study_goes_on_where_it_was_stopped(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "BYTES", 4_000)
    monkeypatch.setattr(evidence, "ASKED", 800)
    asked, paths = small_plan(), {"texts": str(shards)}

    def study(judge, folder="work", results="a"):
        return evidence.Study(judge, tmp_path / folder, paths, asked, tmp_path / f"{results}-{judge}.json", QUICK)

    first = study("bigram")
    pieces = [(corpus, quality, seed) for corpus, quality, seed, _ in first.left(["texts"])]
    assert pieces == [("texts", quality, seed) for seed in (0, 1) for quality in ("rules", "classifier")]
    first.bigram_piece(*pieces[0])
    gone_on = study("bigram")
    left = [(corpus, quality, seed) for corpus, quality, seed, _ in gone_on.left(["texts"])]
    assert left == pieces[1:]
    for piece in left:
        gone_on.bigram_piece(*piece)
    gone_on.shared_pools()
    assert not list(study("bigram").left(["texts"]))
    at_once = study("bigram", "other", "b")
    for piece in pieces:
        at_once.bigram_piece(*piece)
    at_once.shared_pools()
    # stopped between what was selected and what is said of it
    once_more = study("bigram", "other", "c")
    for piece in pieces:
        once_more.bigram_piece(*piece)
    once_more.shared_pools()
    kept = without_seconds(tmp_path / "a-bigram.json")
    assert kept == without_seconds(tmp_path / "b-bigram.json") == without_seconds(tmp_path / "c-bigram.json")
    assert kept["samples"]["texts/1"]["classifier_auc"] > 0.95
    for piece in kept["pieces"].values():
        # whoever takes nothing but good texts teaches good texts: the classifier is sure of them
        assert np.isfinite(np.array(list(piece["nats"].values()))).all() and piece["selected"] > 50
    good = kept["pieces"]["texts/classifier/0"]["nats"]
    assert good["top-quality"][1] < good["random"][1] and good["top-quality"][0] > good["random"][0]

    calls = []
    trained = proxy_models.train
    monkeypatch.setattr(proxy_models, "train", lambda *given: calls.append(1) or trained(*given))
    transformer = study("transformer")
    assert [missing for *_, missing in transformer.left(["texts"])] == [2]
    once = iter([True, False])
    transformer.transformer_piece("texts", "classifier", 0, lambda: next(once))
    assert len(calls) == 1 and [missing for *_, missing in transformer.left(["texts"])] == [1]
    again = study("transformer")
    again.transformer_piece("texts", "classifier", 0)
    assert len(calls) == 2 and not list(again.left(["texts"]))
    monkeypatch.setattr(evidence, "ASKED", 900)
    with pytest.raises(SystemExit, match="other settings"):
        study("transformer")


def test_every_selection_of_the_plan_can_be_made():
    for name in evidence.selections_named(plan()["selections"]):
        config = evidence.settings_of(name, 0.3, 0)
        assert config.select_ratio == 0.3
        if " " in name:
            assert config.lamb == float(name.split()[1])
    assert set(plan()["selections"]["transformer"]) <= set(evidence.selections_named(plan()["selections"]))
    assert {target for facts in plan()["corpora"].values() for target in facts["targets"]} <= set(PART_OF_TARGET)


def test_the_document_and_the_readme_are_what_the_results_say():
    study = Evidence(read_results(evidence.RESULTS), tomllib.loads(PLAN.read_text()))
    assert DOCUMENT.read_text(encoding="utf-8") == document(study)
    readme = README.read_text(encoding="utf-8")
    assert readme == with_sentence(with_table(readme, readme_table(study)), who_wins(study))
    # what the sentence says, whichever side greedy is counted on
    greedy = [name for name in study.joint if name.startswith("greedy")]
    others = [name for name in study.joint if name not in greedy]
    for joint, simple in ((study.joint, study.simple), (others, study.simple), (others, [*study.simple, *greedy])):
        found = contests(study, "bigram", joint, simple)
        verdicts = [one.outcome.verdict for one in found]
        assert [verdicts.count(side) for side in (BETTER, WORSE, LEVEL)] == [0, 3, 9]
        assert {name for one in found if one.outcome.verdict == WORSE for name in one.simple} == {"semdedup"}
    assert "joint is better in 0, worse in 3 (SemDeDup wins each), undecided in 9." in " ".join(readme.split())
