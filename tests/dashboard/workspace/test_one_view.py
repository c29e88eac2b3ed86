"""What the page says is what every button acts on: a state machine plays a visitor, an oracle of its own watches.

The machine calls what the pages call: `read` and `write` of the view, the workspace, the current selection, the rules,
the buttons that start and stop runs, the colors of the map and its slider, the file of the download. The oracle knows
what was chosen, and checks the selection against pandas and a direct call of `select`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import streamlit
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from datamask import memo
from datamask.analyses.lambda_slider import panel as lambda_slider
from datamask.analyses.samples import more_like_panel, texts_panel
from datamask.analyses.steering import panel as steering
from datamask.api import select
from datamask.config import SelectionConfig
from datamask.corpus.projections import STAND_IN
from datamask.dashboard.data.openings import OpenCorpus, openings
from datamask.dashboard.linked import brushing, columns
from datamask.dashboard.map import scene
from datamask.dashboard.map.filters import Among
from datamask.dashboard.map.marks import EVERYTHING, marks_of
from datamask.dashboard.runs import form_panel
from datamask.dashboard.shell import chosen, session
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import live
from datamask.dashboard.workspace import answer_panel, files, keeping, wording
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace.workspace import pose, read
from datamask.options import OPTIONS
from datamask.pages.map import colors
from datamask.pages.runs import start_panel
from datamask.runs import store
from datamask.runs.attempt import attempt
from datamask.runs.run_queue import RunQueue
from datamask.work.context import Work
from tests.making.parcels import opened_parcel
from tests.making.runs import write_shard

SIZES, LONG = {"first": 60, "second": 50}, 240.0
LAMBDAS, RATIOS, OBJECTIVES = (0.0, 0.2, 0.37, 0.5, 0.9), (0.2, 0.3, 0.5), ("pairwise", "facility")
SETS = {"a": range(3), "b": range(10, 14), "c": range(40, 42)}
"""Rows that are pinned or banned, by name."""

COLORS = {columns.SELECTED: "", columns.QUALITY: "quality_score", columns.LENGTH: "n_tokens", "source": "source"}
"""What the map may be colored by, each with its column in the shards."""

STEPS, SEED = (int(os.environ.get(f"DATAMASK_VIEW_{name}", usual)) for name, usual in (("STEPS", "120"), ("SEED", "0")))
"""Of the suite; thousands of steps are played by hand."""


@dataclass
class Tab:
    """A browser tab: its session, its address, and what its visitor has chosen, as the oracle notes it.

    Attributes:
        chosen: whether anything was chosen on this corpus; until then the newest run is shown.
        started: the run that was started here, and what the selection followed from then.
    """

    opened: OpenCorpus
    state: dict = field(default_factory=dict)
    address: dict = field(default_factory=dict)
    objective: str = "facility"
    ratio: float = 0.3
    lamb: float = 0.5
    pinned: frozenset[int] = frozenset()
    banned: frozenset[int] = frozenset()
    run: str = ""
    chosen: bool = False
    sources: tuple[str, ...] = ()
    like: tuple[int, float] | None = None
    color: str = columns.SELECTED
    started: tuple[str, tuple] | None = None

    @property
    def problem(self) -> tuple:
        """What is solved."""
        return self.objective, self.ratio, self.lamb, self.pinned, self.banned

    @property
    def selects(self) -> tuple:
        """What the selection follows from."""
        return self.opened.key, self.run, *self.problem

    def takes(self, **parts: object) -> None:
        """Note what the visitor chooses."""
        vars(self).update(parts, chosen=True)


@functools.cache
def rows_in(path: str | None) -> frozenset[int]:
    """The rows that a list names; a kept list never changes."""
    ids = [] if path is None else pd.read_parquet(path).iloc[:, 0]
    return frozenset(int(name.rpartition("-")[2]) for name in ids)


class Visitor(RuleBasedStateMachine):
    """One visitor with several tabs."""

    tabs = Bundle("tabs")
    folder: Path
    corpora: tuple[OpenCorpus, ...]
    disk: ClassVar[dict[str, pd.DataFrame]]

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[str] = []

    @initialize(target=tabs)
    def opens(self) -> Tab:
        for run in session.store().list():
            run.path.rename(self.folder / run.id)  # what still writes there writes elsewhere
        first = self.corpora[0]
        return self._drawn(Tab(first, address={"corpus": first.key}))

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

    @rule(tab=tabs, place=st.integers(0, len(SIZES) - 1))
    def opens_a_corpus(self, tab: Tab, place: int) -> None:
        opened = self.corpora[place]
        self._act(tab, lambda now: session.choose_opening(session.all_openings().get(opened.key)))
        if opened != tab.opened:
            fresh = Tab(opened, tab.state, tab.address, color=tab.color, started=tab.started)
            vars(tab).update(vars(fresh))
        self._drawn(tab)

    @rule(tab=tabs, lamb=st.sampled_from(LAMBDAS))
    def drags_lambda(self, tab: Tab, lamb: float) -> None:
        self._act(tab, lambda now: views.change(lamb=lamb))
        tab.takes(lamb=lamb)
        self._drawn(tab)

    @rule(tab=tabs, ratio=st.sampled_from(RATIOS), by_rows=st.booleans(), lamb=st.sampled_from((None, *LAMBDAS)))
    def drags_keep(self, tab: Tab, ratio: float, by_rows: bool, lamb: float | None) -> None:
        """Alone, or after λ on a server that has not heard of that yet."""
        rows = round(ratio * len(tab.opened.corpus))
        keep = {"amount": f"{rows}", "unit": "rows"} if by_rows else {"amount": f"{100 * ratio:g}", "unit": "%"}
        moved = {"keep": keep, "turn": tab.state.get(currently.HEARD, 0) + 1}
        tab.state["map"] = {"moved": moved if lamb is None else {**moved, "lamb": lamb}}
        self._act(tab, lambda now: lambda_slider.take("map", now))
        tab.takes(ratio=ratio, run="", **({} if lamb is None else {"lamb": lamb}))
        self._drawn(tab)

    @rule(tab=tabs, ratio=st.sampled_from(RATIOS), objective=st.sampled_from(OBJECTIVES))
    def changes_the_problem(self, tab: Tab, ratio: float, objective: str) -> None:
        changed = {"select_ratio": ratio, "objective": objective}
        self._act(tab, lambda now: pose(replace(now.asked, **changed), now.rules))
        tab.takes(ratio=ratio, objective=objective, run="")
        self._drawn(tab)

    @rule(tab=tabs, name=st.sampled_from(sorted(SETS)), kind=st.sampled_from(["pin", "ban"]))
    def makes_a_rule(self, tab: Tab, name: str, kind: str) -> None:
        rows, attribute = frozenset(SETS[name]), "pinned" if kind == "pin" else "banned"
        passing = np.isin(np.arange(len(tab.opened.corpus)), list(rows))

        def act(now) -> None:
            if not rows & (tab.banned if kind == "pin" else tab.pinned):  # nothing can obey both
                steering._add_rows(now, kind, passing, f"set {name}")
                tab.takes(run="", **{attribute: getattr(tab, attribute) | rows})

        self._act(tab, act)
        self._drawn(tab)

    @rule(tab=tabs)
    def lets_go_of_the_rules(self, tab: Tab) -> None:
        def act(now) -> None:
            for made in now.rules.rules:
                steering._remove(now, made)
                tab.takes(run="", pinned=frozenset(), banned=frozenset())

        self._act(tab, act)
        self._drawn(tab)

    @rule(tab=tabs, sources=st.sampled_from([("web",), ("web", "code"), ()]))
    def filters(self, tab: Tab, sources: tuple[str, ...]) -> None:
        self._act(tab, lambda now: brushing.take(Among("source", sources) if sources else None, "source"))
        tab.sources = sources
        self._drawn(tab)

    @rule(tab=tabs, row=st.integers(0, min(SIZES.values()) - 1), least=st.sampled_from([0.0, 0.3, 0.7, None]))
    def asks_for_more_like_a_row(self, tab: Tab, row: int, least: float | None) -> None:
        source = f"row {tab.opened.corpus.ids[row].as_py()}"
        let_go = least is None
        self._act(tab, lambda now: brushing.let_go("like") if let_go else views.change(like=f"{least} {source}"))
        tab.like = None if least is None else (row, least)
        self._drawn(tab)

    @rule(tab=tabs, color=st.sampled_from(sorted(COLORS)))
    def colors(self, tab: Tab, color: str) -> None:
        tab.color = color  # a menu of the page, whose label is its value
        self._drawn(tab)

    @rule(tab=tabs, row=st.integers(0, min(SIZES.values()) - 1))
    def marks_a_row(self, tab: Tab, row: int) -> None:
        self._act(tab, lambda now: chosen.choose(now.corpus, row))
        self._drawn(tab)
        with self._in(tab):
            assert chosen.chosen(tab.opened.corpus) == row

    @rule(tab=tabs)
    def presses_solve_in_the_bar(self, tab: Tab) -> None:
        self._start(tab, lambda now: answer_panel._solve_by_run(now))

    @rule(tab=tabs)
    def presses_solve_beside_the_form(self, tab: Tab) -> None:
        controls = {name: OPTIONS[name].default for name in form_panel.OTHERS}
        for name, value in {**controls, "device": "cpu"}.items():
            tab.state.setdefault(f"form_{name}", value)

        def act(now) -> None:
            assert self._of(form_panel.settings_now(now.asked, form_panel.LEARN)) == tab.problem
            start_panel._start(now, now.runs, form_panel.SOLVE, "")

        self._start(tab, act)

    @rule(tab=tabs)
    def keeps_the_selection(self, tab: Tab) -> None:
        self._start(tab, lambda now: keeping.keep(now, self._solved(now).selection))

    @precondition(lambda self: self.pending)
    @rule(tab=tabs)
    def a_run_finishes(self, tab: Tab) -> None:
        assert attempt(session.store().get(self.pending.pop(0)), Work(threads=1)).status.state == "done"
        self._drawn(tab)

    @precondition(lambda self: self.pending)
    @rule(tab=tabs)
    def stops_a_run(self, tab: Tab) -> None:
        run = session.store().get(self.pending.pop(0))
        self._act(tab, lambda now: session.stop_run(run.id))
        assert attempt(run, Work(threads=1)).status.state == "stopped" and not run.has_selection
        self._drawn(tab)

    @rule(tab=tabs, place=st.integers(0, 5))
    def chooses_a_run(self, tab: Tab, place: int) -> None:
        runs = [run for run in session.store().list() if run.has_selection and run.config.corpus == tab.opened.config]
        if runs:
            run = runs[place % len(runs)]
            self._act(tab, lambda now: views.choose_run(run.id))
            self._takes_run(tab, run)
            self._drawn(tab)

    # -- the oracle ------------------------------------------------------------------------------------------------

    def _start(self, tab: Tab, act) -> None:
        before = {run.id for run in session.store().list()}
        self._act(tab, act)
        run_id = tab.state[keeping.STARTED][0]
        run = session.store().get(run_id)
        if run_id not in before:
            self.pending.append(run_id)
        assert self._of(run.config.selection) == tab.problem and run.config.corpus == tab.opened.config
        rules = bool(tab.pinned) + bool(tab.banned)
        assert run.config.name.endswith("rules" if rules > 1 else "1 rule" if rules else "%"), run.config.name
        tab.started = run_id, tab.selects
        self._drawn(tab)

    def _takes_run(self, tab: Tab, run) -> None:
        """What a run brings with it, by its record and the files that this names."""
        names = ("objective", "ratio", "lamb", "pinned", "banned")
        tab.takes(run=run.id, **dict(zip(names, self._of(run.config.selection), strict=True)))

    def _of(self, config: SelectionConfig) -> tuple:
        return config.objective, config.select_ratio, config.lamb, rows_in(config.pin), rows_in(config.ban)

    @contextlib.contextmanager
    def _in(self, tab: Tab):
        """Have the pages' code see the session and the address of a tab."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(streamlit, "session_state", tab.state)
            patch.setattr(streamlit, "query_params", tab.address)
            yield

    def _act(self, tab: Tab, act) -> None:
        """A callback, on the workspace as the page was drawn."""
        with self._in(tab):
            act(self._read(tab))
            assert "trouble" not in tab.state, tab.state["trouble"]

    def _read(self, tab: Tab):
        now = read(tab.opened)
        if not tab.chosen and now.run is not None:
            assert now.run.config.corpus == tab.opened.config
            self._takes_run(tab, now.run)
        return now

    def _drawn(self, tab: Tab) -> Tab:
        """Draw the page as `frame` does, and hold all it shows and does against what was chosen."""
        with self._in(tab):
            views.read()
            keeping.arrive(told=True)
            if tab.started is not None:
                run, selects = session.store().get(tab.started[0]), tab.started[1]
                if not run.status().active:
                    tab.started = None
                    if selects == tab.selects and run.has_selection:
                        self._takes_run(tab, run)
            opening = session.current_opening()
            assert opening is not None and opening.key == tab.opened.key
            now = self._read(tab)
            views.write()
            assert self._of(now.asked) == tab.problem and not now.reason
            shows = currently.current(now, 0.0)
            if shows.selection is not None:  # the old one while λ is being solved
                self._draws(tab, shows)
            self._holds(tab, self._solved(now))
        return tab

    def _solved(self, now):
        """What the page shows once what solves it stands still."""
        current = currently.current(now, 0.0)  # an answer in the midst of solving would make steps differ
        for _ in range(20):
            if current.selection is not None and not current.waits and not current.unsolved:
                return current
            # where nothing solves it by itself, the bar offers to
            behind = live.find(now.corpus, now.settings)
            if behind is None or not behind.alive:
                behind = live.session(now.corpus, now.settings, session.store().cache_dir)
            behind.wait(LONG)
            current = currently.current(now, LONG)
        raise AssertionError(f"λ {now.wanted:g} is not solved: {current}")

    def _holds(self, tab: Tab, current) -> None:
        corpus, selection = tab.opened.corpus, current.selection
        mask, size = selection.mask, round(tab.ratio * len(corpus))
        assert selection.lamb == tab.lamb and self._of(selection.settings) == tab.problem
        assert mask.sum() == size
        assert mask[list(tab.pinned)].all() and not mask[list(tab.banned)].any()
        said = wording.parts(corpus, selection)
        assert said[0] == f"λ {tab.lamb:g}" and any(part.startswith(f"{size} of {len(corpus)} rows") for part in said)
        content = files.content(corpus, selection)
        table = pq.read_table(io.BytesIO(content() if callable(content) else content), use_threads=False)
        assert set(table.column(0).to_pylist()) == set(self.disk[tab.opened.key].chunk_id[mask])
        if selection.run is None:
            about = json.loads(table.schema.metadata[b"datamask"])
            assert about["lambda"] == tab.lamb and about["fingerprint"] == corpus.fingerprint
        if tab.run and (run := session.store().get(tab.run)).config.selection.lamb == tab.lamb:
            assert np.array_equal(mask, run.mask())
        joint = tab.lamb * selection.quality + (1 - tab.lamb) * selection.diversity
        assert joint >= self._best(tab) - 2e-3
        assert selection.gap is None or joint + selection.gap >= self._best(tab) - 1e-5
        score = self.disk[tab.opened.key].quality_score.astype(float)
        worth = (score[mask].mean() - score.mean()) / (score.nlargest(size).mean() - score.mean())
        assert abs(selection.quality - worth) < 1e-5
        self._draws(tab, current)

    def _draws(self, tab: Tab, current) -> None:
        """The map draws the λ that the bar names, in the colors that were chosen, and shows the rows that pass."""
        corpus, disk, selection = tab.opened.corpus, self.disk[tab.opened.key], current.selection
        assert len(selection.mask) == len(corpus)
        ground, run = scene.ground(corpus, session.store().cache_dir, STAND_IN.name, False), colors.scored(current)
        found = None if run is None else scene.run_columns(run)
        rows = columns.rows(corpus, session.store().cache_dir, "" if run is None else run.id, found, selection.mask)
        drawn = ground.places.drawn
        marks = marks_of(colors.layer(tab.color, current, rows, ground, [tab.color]), ground.places)
        if tab.color == columns.SELECTED:
            assert np.array_equal(marks.codes, selection.mask[drawn]) and selection.name in marks.title
        elif marks.values is not None:
            assert np.allclose(marks.values, disk[COLORS[tab.color]].to_numpy()[drawn], rtol=1e-6)
        else:
            assert [marks.hover["names"][code] for code in marks.codes] == disk[COLORS[tab.color]].iloc[drawn].tolist()
        beside = lambda_slider.Beside(current, ground.places, EVERYTHING, 0, (), None, {}, f"{tab.run} {ground.scope}")
        slider = lambda_slider.slider(brushing.MAP, beside)
        assert slider.state["current"]["lamb"] == selection.lamb
        if current.final:
            solved = opened_parcel(slider.parcels["lambdas"])
            drawings = [*solved["points"], *solved["baselines"]]
            for point, packed in zip(drawings, solved["bits"].reshape(len(drawings), -1), strict=True):
                if point.get("lamb") == selection.lamb:
                    assert np.array_equal(np.unpackbits(packed, count=len(drawn)), selection.mask[drawn])
        now = current.workspace
        view = brushing.Linked(corpus, rows, now.filters.known(rows), "", selection.key)
        view = more_like_panel.taking(view, ground)
        passing = disk.source.isin(tab.sources or disk.source.unique())
        if tab.like is not None:
            unit = np.stack(disk.feature_arr).astype(float)
            unit /= np.linalg.norm(unit, axis=1, keepdims=True)
            passing &= unit @ unit[tab.like[0]] >= tab.like[1]
        assert np.array_equal(view.mask(), passing)
        listing = texts_panel.listing(brushing.MAP, corpus, view.mask(), selection.mask)
        listed = pd.read_csv(io.BytesIO(scene.id_file(corpus, np.sort(listing.rows), ".csv", listing.selected)))
        assert listed.chunk_id.tolist() == disk.chunk_id[passing].tolist()
        assert listed.selected.tolist() == selection.mask[passing].tolist()

    solved: ClassVar[dict[tuple, float]] = {}

    def _best(self, tab: Tab) -> float:
        problem = tab.opened.key, *tab.problem
        if problem not in self.solved:
            corpus, lists = tab.opened.corpus, {}
            for name, rows in (("pin", tab.pinned), ("ban", tab.banned)):
                if rows:
                    path = self.folder / f"{name}-{'-'.join(map(str, sorted(rows)))}.parquet"
                    pd.DataFrame({"chunk_id": [corpus.ids[row].as_py() for row in sorted(rows)]}).to_parquet(path)
                    lists[name] = str(path)
            options = {"objective": tab.objective, "select_ratio": tab.ratio, "lamb": tab.lamb, **lists}
            self.solved[problem] = select(corpus, **options).summary["calibrated"]["joint"]
        return self.solved[problem]


@contextlib.contextmanager
def visited(folder: Path) -> Iterator[None]:
    """Have the machine visit two corpora in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATAMASK_RUNS_DIR", str(folder / "runs"))
        patch.setenv("DATAMASK_ROOTS", str(folder))
        patch.setattr(RunQueue, "submit", lambda queue, run_id: None)  # a run ends when the machine says so
        patch.setattr(store, "QUEUE_GRACE", LONG)
        patch.setattr(memo, "SETTLED_SECONDS", 0.02)  # each step reads every run anew; this disk's clock is not so slow
        patch.setattr(session, "dark", lambda: False)
        opened = []
        for place, (name, size) in enumerate(SIZES.items()):
            config = write_shard(folder / f"{name}.parquet", size, seed=place)
            opening = openings(folder / "runs").start(config, name)
            opening.wait(LONG)
            opened.append(opening.opened)
        Visitor.folder, Visitor.corpora, Visitor.solved = folder, tuple(opened), {}
        Visitor.disk = {one.key: pd.read_parquet(one.config.inputs[0]).astype({"source": str}) for one in opened}
        yield


def play(steps: int, begin: int = 0, phases: tuple[Phase, ...] = tuple(Phase)) -> None:
    """Play so many steps, thirty at a time.

    Args:
        begin: the seed; of equal ones the steps are equal.
    """
    options = {"deadline": None, "database": None, "suppress_health_check": list(HealthCheck), "phases": phases}
    run_state_machine_as_test(
        seed(begin)(Visitor), settings=settings(max_examples=max(1, steps // 30), stateful_step_count=30, **options)
    )


def test_what_the_page_says_is_what_every_button_acts_on(tmp_path):
    with visited(tmp_path):
        play(STEPS, SEED)
