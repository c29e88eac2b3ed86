"""The study of methods by targets: its draws, its classifier, its statistics, that it resumes, and its document."""

from __future__ import annotations

import copy
import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr, ttest_rel

from benchmarks import evidence, evidence_corpora, evidence_document
from benchmarks.evidence_corpora import (
    POOL,
    classified,
    dealt,
    members,
    open_setting,
    plan,
    read_table,
    too_near,
    write_sample,
)
from benchmarks.evidence_document import DOCUMENT, PICTURE, README, document, drawn, readme_section, with_section
from benchmarks.evidence_results import (
    BETTER,
    LEVEL,
    RESULTS,
    WORSE,
    Evidence,
    difference,
    holm,
    methods_of,
    read_results,
)
from datamask import catalogue
from datamask.analyses.ablation.compute import proxy_models
from datamask.analyses.ablation.compute.transformer import Size

QUICK = Size(layers=1, width=16, heads=1, context=32, batch=16)
SEEN = {
    *("libs", "science", "python", "doc", "net", "utils", "admin", "games", "perl", "devel", "kde", "math", "sound"),
    *("orals", "naacl", "cvpr", "iros", "icra", "nips", "aistats", "eccv", "wacv", "ijcai", "icml", "acml", "coling"),
}
"""Targets of the pilots."""


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


def test_the_hypothesis_asks_targets_that_no_pilot_has_seen():
    asked = plan()
    for corpus, count in (("packages", 10), ("papers", 10), ("films", 5)):
        named = asked["corpora"][corpus]["hypothesis"]
        assert len(set(named)) == count and not set(named) & SEEN
        assert set(named) <= set(asked["corpora"][corpus]["targets"])
    assert len(Evidence({}, asked).tested) == 25
    # a corpus like another has its targets
    assert asked["corpora"]["papers-minilm"]["targets"] == asked["corpora"]["papers"]["targets"]


def test_a_rule_of_the_plan_names_rows():
    table = pa.table({"year": [1, 2, 3, 4], "tags": [["a"], ["a", "b"], None, []], "kind": ["x", None, "y", "x"]})
    for rule, expected in (
        ({}, [1, 1, 1, 1]),
        ({"column": "year", "least": 3}, [0, 0, 1, 1]),
        ({"column": "year", "top": 0.25}, [0, 0, 0, 1]),
        ({"column": "tags", "holds": "a"}, [1, 1, 0, 0]),
        ({"column": "kind", "equals": "x", "but": {"column": "year", "equals": "4"}}, [1, 0, 0, 0]),
    ):
        assert members(table, rule).tolist() == [bool(one) for one in expected]


def test_every_row_is_dealt_to_one_part_and_small_targets_get_their_share():
    rows = np.arange(3_000)
    of = {"all": rows >= 0, "small": rows < 100, "large": rows < 1_500}
    part = dealt(of, 1_000, 250, 5)
    assert Counter(part) == {"": 1_450, POOL: 1_000, "all": 250, "large": 250, "small": 50}
    assert (rows[part == "small"] < 100).all() and (rows[part == "large"] < 1_500).all()
    np.testing.assert_array_equal(part, dealt(of, 1_000, 250, 5))
    assert (part != dealt(of, 1_000, 250, 6)).mean() > 0.3


def test_what_is_near_to_a_held_out_text_leaves_the_pool(shards, tmp_path):
    features = np.array([[1, 0], [0.9, 0.1], [0, 1], [0, 2]], np.float32)
    texts = np.array(["a", "b", "c", "d"], dtype=object)
    pool, held = np.array([1, 2, 3]), np.array([0])
    assert too_near(features, texts, pool, held, 0.95).tolist() == [True, False, False]
    texts[3] = "a"
    assert too_near(features, texts, pool, held, 0.95).tolist() == [True, False, True]

    asked = small_plan()
    table = read_table("texts", {"texts": str(shards)}, tmp_path)
    assert len(set(table["chunk_id"].to_pylist())) == 700
    write_sample(table, asked["corpora"]["texts"], asked, 1, tmp_path / "sample.parquet")
    setting = open_setting(tmp_path / "sample.parquet", ["good", "held-out"])
    texts = np.array([text.as_py() for text in setting.corpus.metadata["text"]])
    held = np.concatenate(list(setting.targets.values()))
    assert {name: len(of) for name, of in setting.targets.items()} == {"good": 60, "held-out": 60}
    assert not set(texts[setting.pool]) & set(texts[held])
    assert (setting.corpus.features[setting.pool] @ setting.corpus.features[held].T).max() < 0.95
    assert len(set(texts[setting.first_copies])) == len(setting.first_copies) < len(setting.pool)


def test_random_and_without_copies_are_the_same_draw_but_for_the_copies(shards, tmp_path):
    asked = small_plan()
    table = read_table("texts", {"texts": str(shards)}, tmp_path)
    write_sample(table, asked["corpora"]["texts"], asked, 1, tmp_path / "sample.parquet")
    setting = open_setting(tmp_path / "sample.parquet", ["good", "held-out"])
    copies = np.setdiff1d(setting.pool, setting.first_copies)
    for whole, distinct in zip(*evidence.random_draws(setting, 150, 4), strict=True):
        assert len(set(whole)) == len(set(distinct)) == 150 and not set(distinct) & set(copies)
        assert set(whole) - set(copies) <= set(distinct)


def test_the_classifier_knows_the_good_and_scores_no_row_that_it_learned_from(monkeypatch):
    monkeypatch.setattr(evidence_corpora, "HASHES", 2**13)
    rng = np.random.default_rng(0)
    good = np.arange(300) < 100
    scores = classified(made_texts(rng, 100, "g") + made_texts(rng, 200, "p"), good, 0)
    assert scores[good].min() > scores[~good].max()
    # of texts without a word in common nothing can be learned about another one, except where two words have one hash
    scores = classified([f"only{number} once{number}" for number in range(300)], good, 0)
    _, counts = np.unique(scores.round(6), return_counts=True)
    assert np.sort(counts)[-2:].sum() > 0.85 * len(scores)


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_interval_is_that_of_a_paired_t_test(seeds):
    values = np.random.default_rng(seeds).normal(5, 1, (seeds, 2))
    outcome = difference([tuple(pair) for pair in values], 0.05)
    expected = ttest_rel(values[:, 0], values[:, 1])
    interval = expected.confidence_interval(0.95)
    np.testing.assert_allclose([outcome.low, outcome.high, outcome.p], [interval.low, interval.high, expected.pvalue])
    assert difference([(1.0, 2.0), (1.0, 2.5)], 0.05) is None
    same = difference([(1.0, 1.0)] * 3, 0.05)
    assert same.verdict == LEVEL and same.p == 1.0


def test_holm_and_the_smallest_effect_hold_what_they_promise():
    rng = np.random.default_rng(0)

    def outcomes(shifts):
        return [difference([(value + shift, 0.0) for value in rng.normal(0, 1, 6)], 0.05) for shift in shifts]

    # nothing differs: some verdict of twenty in at most 5 % of trials, give or take
    wrong = np.mean([any(one != LEVEL for one in holm(outcomes([0.0] * 20), 0.05)) for _ in range(300)])
    assert wrong < 0.1
    assert holm([None, *outcomes([-50.0, 50.0, 0.0])], 0.05)[:3] == [None, BETTER, WORSE]
    # an effect of that size is found about so often
    effect = np.median([one.smallest_effect(0.05, 0.8) for one in outcomes([0.0] * 300)])
    found = np.mean([one.verdict == WORSE for one in outcomes([effect] * 300)])
    assert 0.65 < found < 0.95


def test_the_section_of_the_readme_is_replaced_and_nothing_else():
    readme = "a\n\n## Measured\n\nold\n\n| b |\n\nHow fast? c\n"
    assert with_section(readme, "new") == "a\n\n## Measured\n\nnew\n\nHow fast? c\n"
    with pytest.raises(ValueError, match="must hold one section"):
        with_section("none", "")


def small_plan() -> dict:
    """The plan's form, small."""
    asked = copy.deepcopy(plan())
    asked |= {"rows": 320, "arms": [{"names": ["texts/rules/tfidf"]}, {"names": ["texts/classifier/tfidf"]}]}
    asked["seeds"] = {"first": [0, 1], "then": [], "transformer": [0]}
    asked["methods"] = {
        "simple": ["random", "exact-duplicates", "top-quality"],
        "lambdas": [0.5],
        "by_lambda": ["pairwise", "not-there-yet"],
        "others": ["greedy 0.5"],
        "masks": "masks 0.5",
        "masks_arms": [],
        "transformer": ["random", "top-quality"],
        "transformer_arm": "texts/classifier/tfidf",
    }
    kinds = {"good": {"column": "kind", "equals": "good"}, "held-out": {}}
    asked["corpora"] = {"texts": asked["corpora"]["texts"] | {"targets": kinds, "good": kinds["good"], "held": 60}}
    return asked


def without_seconds(path) -> dict:
    report = json.loads(path.read_text())
    for cell in report["bigram"].values():
        cell.pop("cpu_seconds")
    return report


def test_a_study_goes_on_where_it_was_stopped(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(evidence_corpora, "HASHES", 2**12)
    monkeypatch.setattr(evidence, "BYTES", 4_000)
    monkeypatch.setattr(evidence, "ASKED", 800)
    asked = small_plan()

    def study(folder="work", results="a"):
        return evidence.Study(tmp_path / folder, {"texts": str(shards)}, asked, tmp_path / f"{results}.json", QUICK)

    first = study()
    cells = [cell for cell in evidence.cells(asked) if first.lacks(cell)]
    assert [cell.key for cell in cells] == [f"texts/{q}/tfidf/{s}" for q in ("rules", "classifier") for s in (0, 1)]
    first.run(cells[0])
    resumed = study()
    left = [cell for cell in evidence.cells(asked) if resumed.lacks(cell)]
    assert left == cells[1:]
    for cell in left:
        resumed.run(cell)
    resumed.shared_pools()
    at_once = study("other", "b")
    for cell in cells:
        at_once.run(cell)
    at_once.shared_pools()
    stored = without_seconds(tmp_path / "a.json")
    assert stored == without_seconds(tmp_path / "b.json")
    good = stored["bigram"]["texts/classifier/tfidf/0"]["nats"]
    assert list(good) == ["random", "exact-duplicates", "top-quality", "greedy 0.5", "pairwise 0.5"]
    # a selection of good texts alone teaches good texts, and not the pool's
    assert good["top-quality"][0] < good["random"][0] and good["top-quality"][1] > good["random"][1]
    # a cell of another plan is made anew
    asked["rows"] = 300
    assert study().lacks(cells[0])
    asked["rows"] = 320

    calls = []
    trained = proxy_models.train
    monkeypatch.setattr(proxy_models, "train", lambda *given: calls.append(1) or trained(*given))
    once = iter([True, False])
    study().run_transformer(0, lambda: next(once))
    assert len(calls) == 1
    study().run_transformer(0)
    assert len(calls) == 2 and len(json.loads((tmp_path / "a.json").read_text())["transformer"]) == 1


def test_every_method_of_the_plan_can_be_made():
    known = {entry.name for entry in catalogue.OBJECTIVES}
    for name in methods_of(plan()):
        word, _, lamb = name.partition(" ")
        assert evidence.can_run(name) == (not lamb or word in known | {"greedy", "masks"})
        if evidence.can_run(name) and name != evidence.COPIES:
            config = evidence.settings_of(name, 0.3, 0)
            assert config.select_ratio == 0.3 and (not lamb or config.lamb == float(lamb))
    assert set(plan()["methods"]["transformer"]) <= set(methods_of(plan()))


@pytest.fixture(scope="module")
def study():
    return Evidence(read_results(), plan())


def test_the_document_the_picture_and_the_readme_are_what_the_results_say(study):
    assert DOCUMENT.read_text(encoding="utf-8") == document(study)
    assert PICTURE.read_text(encoding="utf-8") == drawn(study)
    readme = README.read_text(encoding="utf-8")
    section = readme_section(study)
    assert readme == with_section(readme, section)
    # the method that its sentences name has a row in the document
    assert "safest method is exact duplicates removed" in " ".join(section.split())
    assert "| exact duplicates removed | 7 / 1 / 17 |" in document(study)
    sides = Counter(evidence_document.corrected(study.contests(study.tested), study.level))
    counts = f"simple baseline on {sides[BETTER]}, worse on {sides[WORSE]} and undecided on {sides[LEVEL]} "
    assert counts in DOCUMENT.with_name("paper.md").read_text(encoding="utf-8")


def test_the_numbers_of_the_document_follow_from_the_raw_results(study):
    """Everything anew from the file: regrets, verdicts by Holm, and joint against simple."""
    raw, asked = json.loads(RESULTS.read_text()), plan()
    simple = asked["methods"]["simple"]
    differences, losses, regrets, contests = {}, [], {}, []
    for corpus, quality in (("films", "ratings"), ("papers", "citations"), ("packages", "use")):
        cells = [cell for key, cell in sorted(raw["bigram"].items()) if key.startswith(f"{corpus}/{quality}/stored/")]
        names = [name for name in cells[0]["nats"] if all(name in cell["nats"] for cell in cells)]
        for target in asked["corpora"][corpus]["hypothesis"]:
            place = cells[0]["targets"].index(target)
            values = {name: np.array([cell["nats"][name][place] for cell in cells]) for name in names}
            best = min(of.mean() for of in values.values())
            for name in names:
                regrets.setdefault(name, []).append(values[name].mean() - best)
                differences.setdefault(name, []).append(values[name] - values["random"])
            losses.append(values)
            joint = [name for name in names if name.split()[0] in ("facility", "pairwise", "vendi", "greedy")]
            judged = []
            for seed in range(len(cells)):
                others = [other for other in range(len(cells)) if other != seed]
                ours, theirs = (min(side, key=lambda name: values[name][others].mean()) for side in (joint, [*simple]))
                judged.append(values[ours][seed] - values[theirs][seed])
            contests.append(np.array(judged))

    def verdicts(of):
        p = [1.0 if not d.any() else ttest_rel(d, np.zeros(len(d))).pvalue for d in of]
        order = np.argsort(p)
        adjusted = np.maximum.accumulate([p[place] * (len(p) - step) for step, place in enumerate(order)])
        told = [place for value, place in zip(adjusted, order, strict=True) if value <= asked["level"]]
        better = sum(of[place].mean() < 0 for place in told)
        return better, len(told) - better, len(of) - len(told)

    written = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    # a method that some seeds of a corpus lack is no candidate there
    whole = {name: of for name, of in regrets.items() if len(of) == 25}
    assert len(whole) >= 20
    for name, of in whole.items():
        if name != "random":
            better, worse, level = verdicts(differences[name])
            assert f"| {evidence_document.title(name)} | {better} / {worse} / {level} | " in written
        np.testing.assert_allclose(study.largest_regrets(study.tested)[name], max(of))
        assert f"{max(of):.3f} (" in written
    for name in study.supposed:
        for baseline in simple:
            better, worse, level = verdicts([values[name] - values[baseline] for values in losses])
            row = f"{evidence_document.title(name)} | {evidence_document.title(baseline)}"
            assert f"| {row} | {better} / {worse} / {level} | " in written
    better, worse, level = verdicts(contests)
    said = f"On {level} of 25 new targets the best joint method cannot be told apart from the best simple baseline; it"
    assert f"{said} is worse on {worse} and better on {better}." in written
    # the two proxy models on the transformer's arm
    arm = asked["methods"]["transformer_arm"]
    keys = [f"{arm}/{seed}" for seed in asked["seeds"]["transformer"]]
    means = [
        [np.mean([raw[proxy][key]["nats"][name] for key in keys]) for name in asked["methods"]["transformer"]]
        for proxy in ("bigram", "transformer")
    ]
    assert f"ranks the methods at correlation {spearmanr(*means).statistic:+.2f}." in written
    # the first five lines, and the picture after them
    lines = DOCUMENT.read_text(encoding="utf-8").split("\n\n")
    assert lines[1].count("\n- ") == 4 and lines[2].startswith("![")


def test_the_earlier_study_says_what_it_said():
    counts = {}
    for proxy, path in evidence_document.EARLIER.items():
        earlier = evidence_document.earlier_study(path)
        found = earlier.contests(target for arm in earlier.arms for target in earlier.targets(arm))
        counts[proxy] = [sum(one.outcome.verdict == side for one in found) for side in (BETTER, WORSE, LEVEL)]
    assert counts == {"bigram": [0, 3, 9], "transformer": [0, 0, 6]}
