"""What the page says is what every button acts on: a state machine plays a visitor, an oracle of its own watches.

The machine calls what the pages call: `read` and `write` of the view, the workspace, the current selection, the rules,
the runs that are started and kept, the file of the download. The oracle knows what was chosen, and checks the selection
against pandas and a direct call of `select`.
"""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import streamlit
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, precondition, rule

from datamask.analyses.steering import panel as steering
from datamask.api import select
from datamask.config import SelectionConfig
from datamask.dashboard.data.openings import openings
from datamask.dashboard.linked import brushing
from datamask.dashboard.map.filters import Among
from datamask.dashboard.shell import chosen, session
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import live
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace import files, keeping, wording
from datamask.dashboard.workspace.workspace import pose, read
from datamask.runs.execute import execute
from datamask.runs.run_queue import RunQueue
from tests.making.runs import write_shard

N, LONG = 60, 240.0
LAMBDAS, RATIOS, OBJECTIVES = (0.0, 0.2, 0.37, 0.5, 0.9), (0.2, 0.3, 0.5), ("pairwise", "facility")
SETS = {"a": range(3), "b": range(10, 14), "c": range(40, 42)}
"""Rows that are pinned or banned, by name."""

STEPS = int(os.environ.get("DATAMASK_VIEW_STEPS", "120"))
"""Of the suite; thousands of them are played by hand."""


@dataclass
class Tab:
    """A browser tab: its session, its address, and what its visitor has chosen, as the oracle notes it."""

    state: dict = field(default_factory=dict)
    address: dict = field(default_factory=dict)
    objective: str = "facility"
    ratio: float = 0.3
    lamb: float = 0.5
    pinned: frozenset[int] = frozenset()
    banned: frozenset[int] = frozenset()
    run: str = ""
    sources: tuple[str, ...] = ()
    started: tuple[str, tuple] | None = None

    @property
    def selects(self) -> tuple:
        """What the selection follows from."""
        return self.objective, self.ratio, self.lamb, self.pinned, self.banned, self.run


class Visitor(RuleBasedStateMachine):
    """One visitor with two tabs."""

    tabs = Bundle("tabs")
    folder: Path
    opening: object

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[str] = []

    @property
    def corpus(self):
        return self.opening.corpus

    @initialize(target=tabs)
    def opens(self) -> Tab:
        for run in session.store().list():
            run.path.rename(self.folder / run.id)  # what still writes there writes elsewhere
        return self._drawn(Tab(address={"corpus": self.opening.key}))

    @rule(target=tabs, tab=tabs)
    def opens_the_address_in_a_second_tab(self, tab: Tab) -> Tab:
        return self._drawn(replace(tab, state={}, address=dict(tab.address), started=None))

    @rule(tab=tabs)
    def reloads(self, tab: Tab) -> None:
        tab.state, tab.started = {}, None
        self._drawn(tab)

    @rule(tab=tabs)
    def goes_to_another_page(self, tab: Tab) -> None:
        tab.address = {}
        self._drawn(tab)

    @rule(tab=tabs, lamb=st.sampled_from(LAMBDAS))
    def drags_lambda(self, tab: Tab, lamb: float) -> None:
        self._act(tab, lambda now: views.change(lamb=lamb))
        tab.lamb = lamb
        self._drawn(tab)

    @rule(tab=tabs, ratio=st.sampled_from(RATIOS), objective=st.sampled_from(OBJECTIVES))
    def changes_the_problem(self, tab: Tab, ratio: float, objective: str) -> None:
        changed = {"select_ratio": ratio, "objective": objective}
        self._act(tab, lambda now: pose(replace(now.asked, **changed), now.rules))
        tab.ratio, tab.objective, tab.run = ratio, objective, ""
        self._drawn(tab)

    @rule(tab=tabs, name=st.sampled_from(sorted(SETS)), kind=st.sampled_from(["pin", "ban"]))
    def makes_a_rule(self, tab: Tab, name: str, kind: str) -> None:
        rows = frozenset(SETS[name])
        if rows & (tab.banned if kind == "pin" else tab.pinned):
            return  # nothing can obey both
        passing = np.isin(np.arange(N), list(rows))
        self._act(tab, lambda now: steering._add_rows(now, kind, passing, f"set {name}"))
        attribute = "pinned" if kind == "pin" else "banned"
        setattr(tab, attribute, getattr(tab, attribute) | rows)
        tab.run = ""
        self._drawn(tab)

    @rule(tab=tabs)
    def lets_go_of_the_rules(self, tab: Tab) -> None:
        def act(now) -> None:
            for _ in now.rules.rules:
                pose(now.asked, read(self.opening.opened).rules.without(0))

        if self._act(tab, act):
            tab.pinned, tab.banned, tab.run = frozenset(), frozenset(), ""
        self._drawn(tab)

    @rule(tab=tabs, sources=st.sampled_from([("web",), ("web", "code"), ()]))
    def filters(self, tab: Tab, sources: tuple[str, ...]) -> None:
        self._act(tab, lambda now: brushing.take(Among("source", sources) if sources else None, "source"))
        tab.sources = sources
        self._drawn(tab)

    @rule(tab=tabs, row=st.integers(0, N - 1))
    def marks_a_row(self, tab: Tab, row: int) -> None:
        self._act(tab, lambda now: chosen.choose(self.corpus, row))
        self._drawn(tab)
        with self._in(tab):
            assert chosen.chosen(self.corpus) == row

    @rule(tab=tabs)
    def starts_a_run(self, tab: Tab) -> None:
        self._start(tab, lambda now: keeping.start(now, now.runs, now.asked))

    @rule(tab=tabs)
    def keeps_the_selection(self, tab: Tab) -> None:
        self._start(tab, lambda now: keeping.keep(now, self._solved(now)))

    @precondition(lambda self: self.pending)
    @rule(tab=tabs)
    def a_run_finishes(self, tab: Tab) -> None:
        run = session.store().get(self.pending.pop(0))
        execute(run)
        self._drawn(tab)

    @rule(tab=tabs, place=st.integers(0, 5))
    def chooses_a_run(self, tab: Tab, place: int) -> None:
        runs = [run for run in session.store().list() if run.has_selection]
        if runs:
            run = runs[place % len(runs)]
            self._act(tab, lambda now: views.choose_run(run.id))
            self._takes(tab, run)
            self._drawn(tab)

    # -- the oracle ------------------------------------------------------------------------------------------------

    def _start(self, tab: Tab, act) -> None:
        before = {run.id for run in session.store().list()}
        self._act(tab, act)
        run_id = tab.state[keeping.STARTED][0]
        run = session.store().get(run_id)
        if run_id not in before:
            self.pending.append(run_id)
        assert self._of(run.config.selection) == tab.selects[:5]
        rules = bool(tab.pinned) + bool(tab.banned)
        assert run.config.name.endswith("rules" if rules > 1 else "1 rule" if rules else "%"), run.config.name
        tab.started = run_id, tab.selects
        self._drawn(tab)

    def _takes(self, tab: Tab, run) -> None:
        """What a run brings with it, by its record and the files that this names."""
        tab.objective, tab.ratio, tab.lamb, tab.pinned, tab.banned = self._of(run.config.selection)
        tab.run = run.id

    def _of(self, config: SelectionConfig) -> tuple:
        named = []
        for path in (config.pin, config.ban):
            ids = set() if path is None else set(pd.read_parquet(path).iloc[:, 0])
            named.append(frozenset(int(name.rpartition("-")[2]) for name in ids))
        return config.objective, config.select_ratio, config.lamb, *named

    @contextlib.contextmanager
    def _in(self, tab: Tab):
        """Have the pages' code see the session and the address of a tab."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(streamlit, "session_state", tab.state)
            patch.setattr(streamlit, "query_params", tab.address)
            yield

    def _act(self, tab: Tab, act) -> bool:
        """A callback, on the workspace as the page was drawn; whether there were rules."""
        with self._in(tab):
            now = read(self.opening.opened)
            act(now)
            assert "trouble" not in tab.state, tab.state["trouble"]
            return bool(now.rules.rules)

    def _drawn(self, tab: Tab) -> Tab:
        """Draw the page as `frame` does, and hold all it shows and does against what was chosen."""
        with self._in(tab):
            views.read()
            keeping.arrive(told=True)
            if tab.started is not None and not session.store().get(tab.started[0]).status().active:
                run_id, selects = tab.started
                tab.started = None
                if selects == tab.selects:
                    self._takes(tab, session.store().get(run_id))
            assert session.current_opening().key == self.opening.key
            now = read(self.opening.opened)
            views.write()
            if not tab.run and now.run is not None:  # nothing was chosen yet: the newest run is shown
                self._takes(tab, now.run)
            selection = self._solved(now)
            assert self._of(now.asked) == tab.selects[:5] and not now.reason
            self._holds(tab, now, selection)
        return tab

    def _solved(self, now):
        """The current selection once what solves it stands still."""
        current = currently.current(now)
        for _ in range(20):
            if current.selection is not None and not current.waits:
                return current.selection
            # where nothing solves it by itself, the strip offers to
            behind = live.find(now.corpus, now.settings)
            if behind is None or not behind.alive:
                behind = live.session(now.corpus, now.settings, session.store().cache_dir)
            behind.wait(LONG)
            current = currently.current(now, LONG)
        raise AssertionError(f"λ {now.wanted:g} is not solved: {current}")

    def _holds(self, tab: Tab, now, selection) -> None:
        mask, size = selection.mask, round(tab.ratio * N)
        assert selection.lamb == tab.lamb and self._of(selection.settings) == tab.selects[:5]
        assert mask.sum() == size and mask[list(tab.pinned)].all() and not mask[list(tab.banned)].any()
        said = wording.parts(self.corpus, selection)
        assert said[0] == f"λ {tab.lamb:g}" and f"{size} of {N} rows" in said
        content = files.content(self.corpus, selection)
        content = content() if callable(content) else content
        written = pq.read_table(io.BytesIO(content) if isinstance(content, bytes) else content)
        assert set(written.column(0).to_pylist()) == {self.corpus.ids[row].as_py() for row in np.flatnonzero(mask)}
        if tab.run and session.store().get(tab.run).config.selection.lamb == tab.lamb:
            assert np.array_equal(mask, session.store().get(tab.run).mask())
        joint = tab.lamb * selection.quality + (1 - tab.lamb) * selection.diversity
        assert joint >= self._best(tab) - 2e-3
        texts = self.corpus.metadata["source"].cast("string").to_pandas()
        filters = {condition.name: condition.names for condition in now.filters.conditions}
        assert filters == ({"source": tab.sources} if tab.sources else {}) and len(texts) == N

    solved: ClassVar[dict[tuple, float]] = {}

    def _best(self, tab: Tab) -> float:
        problem = tab.selects[:5]
        if problem not in self.solved:
            lists = {}
            for name, rows in (("pin", tab.pinned), ("ban", tab.banned)):
                if rows:
                    path = self.folder / f"{name}-{'-'.join(map(str, sorted(rows)))}.parquet"
                    pd.DataFrame({"chunk_id": [self.corpus.ids[row].as_py() for row in sorted(rows)]}).to_parquet(path)
                    lists[name] = str(path)
            options = {"objective": tab.objective, "select_ratio": tab.ratio, "lamb": tab.lamb, **lists}
            self.solved[problem] = select(self.corpus, **options).summary["calibrated"]["joint"]
        return self.solved[problem]


def test_what_the_page_says_is_what_every_button_acts_on(tmp_path, monkeypatch):
    monkeypatch.setenv("DATAMASK_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("DATAMASK_ROOTS", str(tmp_path))
    monkeypatch.setattr(RunQueue, "submit", lambda queue, run_id: None)  # a run ends when the machine says so
    opening = openings(tmp_path / "runs").start(write_shard(tmp_path / "shard.parquet", N), "shard")
    assert opening.job.wait(LONG) or opening.ready
    opening.wait(LONG)
    Visitor.folder, Visitor.opening, Visitor.solved = tmp_path, opening, {}
    machine = Visitor.TestCase
    machine.settings = settings(
        max_examples=max(1, STEPS // 30),
        stateful_step_count=30,
        deadline=None,
        derandomize="DATAMASK_VIEW_STEPS" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    machine().runTest()
