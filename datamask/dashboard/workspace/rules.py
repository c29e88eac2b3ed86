"""The rules of the view: pins, bans, given rows and quotas, by the name of a kept list or of the shown run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import streamlit as st

from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.errors import DatamaskError
from datamask.runs.rule_book import BAN, GIVEN, PIN, QUOTA, Rule, RuleBook, RuleStore
from datamask.runs.store import Run


def store() -> RuleStore:
    """Where lists of rules are kept: beside the runs."""
    return RuleStore(session.runs_dir())


def kept_book(corpus: Corpus, name: str) -> RuleBook:
    """The list of rules of that name; an empty one where it is of another corpus, or there is none."""
    book = store().load(name) if name else None
    return book if book is not None and book.fingerprint == corpus.fingerprint else RuleBook(corpus.fingerprint)


def book_of_run(corpus: Corpus, run: Run) -> RuleBook:
    """The rules that a run obeys, as a list that more can be added to; a list of ids that is gone obeys nothing."""
    settings = run.config.selection
    lists = {kind: path for kind, path in ((PIN, settings.pin), (BAN, settings.ban), (GIVEN, settings.given)) if path}
    return _book_of(corpus.identity, listing.name_of(run), tuple(lists.items()), settings, corpus)


@st.cache_data(max_entries=32, show_spinner=False)
def _book_of(
    identity: str, run_name: str, lists: tuple[tuple[str, str], ...], _settings: SelectionConfig, _corpus: Corpus
) -> RuleBook:
    from datamask.evaluation.id_lists import read_ids_of

    rules = []
    for kind, path in lists:
        try:
            places = pc.index_in(_corpus.ids, value_set=read_ids_of(Path(path), _corpus).combine_chunks())
            rows = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
            rules.append(Rule(kind, f"rows of run {run_name}", len(rows), store().keep_rows(_corpus, rows)))
        except DatamaskError as error:
            rules.append(Rule(kind, f"rows of run {run_name}: {error}", 0))
    rules += [Rule(QUOTA, f"{quota.column} {quota.value}", 0, quota=quota) for quota in _settings.quotas]
    return RuleBook(_corpus.fingerprint, tuple(rules))


def applied(problem: SelectionConfig, book: RuleBook, corpus: Corpus) -> tuple[SelectionConfig, str]:
    """The problem under the rules, and ""; where nothing can obey them the problem without, and the reason."""
    if not book.rules:
        return problem, ""
    ruled, reason = _applied(corpus.identity, repr(problem), repr(book), problem, book, corpus)
    return (problem, reason) if ruled is None else (replace(ruled, lamb=problem.lamb), "")


@st.cache_data(max_entries=32, show_spinner=False)
def _applied(
    identity: str, problem: str, rules: str, _problem: SelectionConfig, _book: RuleBook, _corpus: Corpus
) -> tuple[SelectionConfig | None, str]:
    try:
        return store().applied(_problem, _book, _corpus), ""
    except DatamaskError as error:
        return None, str(error)
