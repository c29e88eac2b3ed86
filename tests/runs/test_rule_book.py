"""Rules beside the runs: named by their content, refused where nothing can obey them, and what is said of them."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from datamask.config import Quota, SelectionConfig
from datamask.corpus import open_corpus
from datamask.corpus.column_kinds import metadata_columns
from datamask.dashboard.linked.facets import columns_of
from datamask.errors import InputError, OptionError
from datamask.evaluation.id_lists import read_rows
from datamask.quotas import quota_groups
from datamask.runs.rule_book import BAN, GIVEN, PIN, QUOTA, Rule, RuleBook, RuleStore, rule_words
from tests.making.runs import write_shard


@pytest.fixture
def corpus(tmp_path):
    return open_corpus(write_shard(tmp_path / "shard.parquet"))


@pytest.fixture
def rule_store(tmp_path):
    return RuleStore(tmp_path / "runs")


def naming(rule_store, corpus, kind, rows):
    return Rule(kind, "some", len(rows), rule_store.keep_rows(corpus, np.array(rows)))


def test_rows_and_lists_are_named_by_their_content_and_come_back(corpus, rule_store):
    name = rule_store.keep_rows(corpus, np.array([7, 3]))
    assert name == rule_store.keep_rows(corpus, np.array([3, 7])) != rule_store.keep_rows(corpus, np.array([3, 8]))
    assert rule_store.rows(corpus, name).tolist() == [3, 7]
    quota = Quota("source", "web", 0.1, 0.3)
    book = RuleBook(corpus.fingerprint).adding(Rule(PIN, "two", 2, name)).mixing([quota])
    assert rule_store.load(rule_store.save(book)) == book
    assert rule_store.load("../../etc/passwd") is None and rule_store.load("0" * 20) is None
    with pytest.raises(InputError, match="no name of rules"):
        rule_store.rows(corpus, "../" + name)


@pytest.mark.parametrize(
    "alter",
    [
        lambda text: "[" * 100_000,
        lambda text: text.replace('"count": 2', '"count": "2"'),
        lambda text: "[]",
        lambda text: "",
    ],
)
def test_an_altered_list_of_rules_is_none(corpus, rule_store, alter):
    name = rule_store.save(RuleBook(corpus.fingerprint, (Rule(PIN, "two", 2, "a" * 20),)))
    path = rule_store._path(name, ".json")
    path.write_text(alter(path.read_text()))
    assert rule_store.load(name) is None


def test_a_pipe_in_the_place_of_rules_is_refused_and_not_waited_for(corpus, rule_store):
    name = rule_store.keep_rows(corpus, np.array([3, 7]))
    listed = rule_store.save(RuleBook(corpus.fingerprint, (Rule(PIN, "two", 2, name),)))
    for path in (rule_store._path(name, ".parquet"), rule_store._path(listed, ".json")):
        path.unlink()
        os.mkfifo(path)
    assert rule_store.load(listed) is None
    with pytest.raises(InputError, match="remove the rule"):
        rule_store.rows(corpus, name)


def test_no_rule_is_there_twice_and_quotas_replace_those_before(corpus):
    rule = Rule(PIN, "two", 2, "a" * 20)
    book = RuleBook("f").adding(rule).adding(Rule(PIN, "the same two", 2, "a" * 20)).adding(rule)
    assert book.rules == (rule,)
    first, second = (Quota("source", "web", 0.1, high) for high in (0.2, 0.3))
    mixed = book.mixing([first]).mixing([second])
    assert mixed.rules == (rule, Rule(QUOTA, "source web", 0, quota=second))
    assert mixed.mixing([]) == book and mixed.without(0).rules == mixed.rules[1:]


def test_the_settings_name_files_with_exactly_the_rows(corpus, rule_store):
    book = RuleBook(
        corpus.fingerprint,
        (
            naming(rule_store, corpus, PIN, [3, 7]),
            naming(rule_store, corpus, PIN, [7, 9]),
            naming(rule_store, corpus, BAN, [0]),
            naming(rule_store, corpus, GIVEN, [20, 21]),
        ),
    )
    config = rule_store.applied(SelectionConfig.from_options(), book, corpus)
    assert [read_rows(path, corpus).rows.tolist() for path in (config.pin, config.ban, config.given)] == [
        [3, 7, 9],
        [0],
        [20, 21],
    ]
    assert rule_store.applied(SelectionConfig.from_options(), RuleBook(corpus.fingerprint), corpus) == (
        SelectionConfig.from_options()
    )
    assert rule_words(config, {"pinned": 3, "banned": 1, "given": 2}) == [
        "3 rows pinned",
        "1 row banned",
        "2 rows given",
    ]
    near = SelectionConfig.from_options(collapse="0.9")
    left = {"recall": 0.981, "judged": 2_000, "left": 3}
    assert rule_words(near, {"n": 100, "eligible": 90, "duplicates": left}) == [
        "of semantic duplicates (cosine 0.9 or more) only the best kept (10 left out)",
        "the neighbors are approximate (recall 98.1 %): of 2,000 kept rows that were compared with all kept rows, 3 "
        "still have a duplicate",
    ]


@pytest.mark.parametrize(
    "kinds, options, reason",
    [
        ({PIN: range(5), BAN: range(4, 9)}, {}, "both name 1 rows"),
        ({PIN: range(80)}, {}, "names 80 rows, but only 72"),
        ({BAN: range(200)}, {}, "leave 40 rows, but 72"),
        ({GIVEN: range(240)}, {}, "names all 240"),
        ({PIN: range(100)}, {"budget": "100"}, "but only 100 are to be selected"),
        ({BAN: range(230)}, {"budget": "5k"}, "holds all"),
    ],
)
def test_impossible_rules_are_refused_with_the_reason(corpus, rule_store, kinds, options, reason):
    book = RuleBook(corpus.fingerprint, tuple(naming(rule_store, corpus, kind, rows) for kind, rows in kinds.items()))
    with pytest.raises(OptionError, match=reason):
        rule_store.applied(SelectionConfig.from_options(**options), book, corpus)


def test_a_quota_above_what_there_is_is_refused(corpus, rule_store):
    book = RuleBook(
        corpus.fingerprint,
        (Rule(QUOTA, "web", 9, quota=Quota("source", "web", 0.9, 1.0)), naming(rule_store, corpus, BAN, range(200))),
    )
    with pytest.raises(OptionError, match="must have at least 33 rows"):
        rule_store.applied(SelectionConfig.from_options(select_ratio=0.15), book, corpus)
    with pytest.raises(OptionError, match="must have at least 900 of the 1,000 tokens"):
        rule_store.applied(SelectionConfig.from_options(budget=1000), book, corpus)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None, True] * 10),
        pa.array([2020, 2021, None, 2022] * 10),
        pa.array(["a", "b", None, "(none)"] * 10).dictionary_encode(),
        pa.array(["a", "B", "A", "b"] * 10, pa.large_string()),
    ],
    ids=lambda values: str(values.type),
)
def test_a_quota_on_a_class_as_pages_name_it_is_on_the_rows_that_pages_show(values, corpus):
    table = pa.table({"class": values})
    _, classes = columns_of(table, metadata_columns(table))
    codes, names = classes["class"]
    quotas = [Quota("class", name, 0.0, 1.0) for name in names]
    group, _, _, labels = quota_groups(quotas, replace(corpus, metadata=table), 20, np.zeros(40, bool))
    assert labels == ("the rest", *(f"class={name}" for name in names))
    assert group.tolist() == (codes + 1).tolist()
