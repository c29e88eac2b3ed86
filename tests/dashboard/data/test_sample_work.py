"""What is made of the sample unasked: once, the least urgent, stoppable, and never again once it was removed."""

from __future__ import annotations

import threading

import pytest

from datamask import endings
from datamask.config import CorpusConfig
from datamask.corpus.projections import DEFAULT, STAND_IN
from datamask.dashboard.analyses.lambda_slider import lambda_points, live
from datamask.dashboard.data import sample_work
from datamask.dashboard.data.openings import Opening, Openings
from datamask.dashboard.data.sample_work import MASKS, NOTE, SOLVED, Note
from datamask.dashboard.map import map_layout
from datamask.evaluation.live import Live as Solver
from datamask.runs.store import RunStore
from datamask.work import lanes
from datamask.work.lanes import Priority
from datamask.work.worker import worker
from tests.dashboard.made_runs import write_shard

LONG = 240.0
FRONTIER = {"sample-lambda-000", "sample-lambda-100"}


@pytest.fixture
def store(tmp_path) -> RunStore:
    return RunStore(tmp_path / "runs")


@pytest.fixture
def opening(tmp_path, store, monkeypatch) -> Opening:
    """A corpus in the place of the sample, being opened; of its frontier three points."""
    monkeypatch.setattr(sample_work, "LAMBDAS", 3)
    opening = Openings(store.root).start(write_shard(tmp_path / "shard.parquet"), "corpus", sample=True)
    yield opening
    for job in worker().active():
        job.stop()
        assert job.wait(LONG)


@pytest.fixture(autouse=True)
def built(monkeypatch) -> None:
    monkeypatch.setattr("datamask.dashboard.data.sample.is_built", lambda: True)


@pytest.fixture(autouse=True)
def sliders(monkeypatch):
    """Sessions of this test's own."""
    monkeypatch.setattr(live, "_NAME", "live lambda of a test")
    yield
    for session in live._holder().sessions.values():
        session.stop()
    live._holder().sessions.clear()


@pytest.fixture(autouse=True)
def maps(monkeypatch) -> list[tuple[str, Priority]]:
    """The maps that were asked for, and how urgently; all are PCA, for which no child process loads UMAP."""
    asked = []

    def start(corpus, cache_dir, projection, priority, really=map_layout.start):
        asked.append((projection, priority))
        return really(corpus, cache_dir, STAND_IN.name, priority)

    monkeypatch.setattr(map_layout, "start", start)
    return asked


def made(store: RunStore, opening: Opening) -> None:
    job = sample_work.start(store.root, opening)
    assert job.wait(LONG) and job.state == "done", job.error


def states(store: RunStore) -> dict[str, str]:
    return {run.id: run.status().state for run in store.list()}


@pytest.fixture
def lane_taken():
    """The CPU's lane, taken by something more urgent until the test lets it go."""
    begun, may_end = threading.Event(), threading.Event()
    urgent = worker().start(
        f"urgent {id(begun)}", lambda _: (begun.set(), may_end.wait(LONG)), device="cpu", priority=Priority.LIVE
    )
    assert begun.wait(LONG)
    yield may_end
    may_end.set()
    assert urgent.wait(LONG)


def test_maps_two_runs_and_a_frontier_are_made_and_the_forms_would_find_them(store, opening, maps, capsys):
    made(store, opening)
    assert states(store) == dict.fromkeys({SOLVED, MASKS, *FRONTIER}, "done")
    assert maps[0] == (DEFAULT, Priority.UNASKED) and map_layout.crowding(opening.corpus, store.cache_dir) is not None
    assert map_layout.layout(opening.corpus, store.cache_dir, STAND_IN.name) is not None
    solved, masks = (store.get(run_id) for run_id in (SOLVED, MASKS))
    assert (solved.config.name, masks.config.name) == ("sample: solved", "sample: masks")
    assert solved.config.selection.estimator == "relaxed" and masks.config.selection.estimator == "counterfactual"
    assert solved.status().summary["selected"] == masks.status().summary["selected"] > 0
    # the frontier is a sweep: its points, and the solved run in their middle, are what a sweep of the page would take
    from datamask.runs.sweep import known_runs

    frontier = sample_work.plan(opening.config)
    known = known_runs(store, frontier, opening.corpus.fingerprint, reuse=True)
    assert {known[point.selection].id for point in frontier.points} == {SOLVED, *FRONTIER}
    assert store.get("sample-lambda-100").facts()["swept"] == {"lamb": 1.0}
    # dragging lambda on the map, beside either run, asks for nothing that is not there
    for run in (solved, masks):
        behind = live.find(opening.corpus, lambda_points.settings_of(run.config.selection))
        assert behind.ready and len(behind.solved[1]) == lambda_points.GRID_SIZE
    told = capsys.readouterr().out.splitlines()
    assert all(line.startswith("datamask: sample, ") for line in told) and told[-1].endswith("everything is ready")
    assert any("sample: solved is there" in line for line in told)


def test_it_is_made_once(store, opening):
    made(store, opening)
    before = {run.id: (run.path / "status.json").stat().st_mtime_ns for run in store.list()}
    store.remove(MASKS)
    made(store, opening)
    assert Note.read(store.root).done and MASKS not in states(store)
    assert all(
        (store.get(run_id).path / "status.json").stat().st_mtime_ns == before[run_id] for run_id in states(store)
    )


def test_a_run_that_was_removed_before_the_others_were_made_does_not_come_back(store, opening):
    Note([SOLVED, "sample-lambda-000"], [SOLVED]).write(store.root)
    made(store, opening)
    assert set(states(store)) == {MASKS, "sample-lambda-100"}


def test_once_stopped_nothing_more_is_made_by_itself(store, opening, lane_taken):
    opening.job.wait(LONG)
    job = sample_work.start(store.root, opening)
    assert sample_work.start(store.root, opening) is job and job.sign.arrived() == 0
    job.stop()
    assert job.wait(LONG) and job.state == "stopped" and Note.read(store.root).stopped
    before = states(store)
    lane_taken.set()
    made(store, opening)
    assert states(store) == before and "done" not in before.values()


def test_what_the_end_of_the_server_interrupted_goes_on(store, opening, lane_taken, monkeypatch):
    opening.job.wait(LONG)
    with monkeypatch.context() as ending:
        ending.setattr(endings, "under_way", lambda: True)
        job = sample_work.start(store.root, opening)
        job.stop()
        assert job.wait(LONG) and job.state == "stopped"
    lane_taken.set()
    made(store, opening)
    assert states(store) == dict.fromkeys({SOLVED, MASKS, *FRONTIER}, "done")


def test_the_slider_waits_for_runs_and_a_question_for_neither(store, opening, monkeypatch):
    """What solves ahead unasked holds no solver while a run computes, so that an answer comes meanwhile."""
    opening.job.wait(LONG)
    held, let_go, solved, runs = threading.Event(), threading.Event(), [], []

    def run(job):
        held.set()
        while not let_go.wait(0.01):
            job.poll()

    def solve(self, lamb, poll=lambda: None, really=Solver.solve):
        solved.append(lamb)
        if len(solved) == 4:
            runs.append(worker().start("a run", run, device="cpu", priority=Priority.RUN))
            while True:  # as a long solution would
                poll()
        return really(self, lamb, poll)

    monkeypatch.setattr(Solver, "solve", solve)
    behind = sample_work.prepare_slider(opening.corpus, store.cache_dir)
    assert held.wait(LONG)
    assert behind.answer(0.43, LONG).lamb == 0.43
    assert len(behind.solved[1]) == 3 and not behind.job.ended
    let_go.set()
    behind.wait(LONG)
    assert behind.ready and runs[0].wait(LONG) and solved[3] == solved[4]


def test_stopping_the_samples_work_stops_its_slider(store, opening, monkeypatch):
    made(store, opening)
    (behind,) = live._holder().sessions.values()
    behind.stop()
    behind.wait(LONG)
    Note([], [part.run_id for part in sample_work.parts()]).write(store.root)
    solving, may_go_on = threading.Event(), threading.Event()

    def slow(self, *_):
        solving.set()
        assert may_go_on.wait(LONG)

    monkeypatch.setattr(live.Session, "_through", slow)
    job = sample_work.start(store.root, opening)
    assert solving.wait(LONG)
    job.stop()
    assert job.wait(LONG) and job.state == "stopped" and Note.read(store.root).stopped
    may_go_on.set()
    (after,) = live._holder().sessions.values()
    assert after is not behind and after.job.wait(LONG) and not after.alive


def test_a_run_that_somebody_started_goes_first(store, opening, monkeypatch):
    """While a part computes a run comes: it is let in before the next part, long before all are done."""
    reached, asked = threading.Event(), threading.Event()
    attempt = sample_work._Work._attempt

    def slow(self, run, part, *rest):
        if part.run_id == MASKS:
            reached.set()
            asked.wait(LONG)
        return attempt(self, run, part, *rest)

    monkeypatch.setattr(sample_work._Work, "_attempt", slow)
    holding, let_go = threading.Event(), threading.Event()
    job = sample_work.start(store.root, opening)
    assert reached.wait(LONG)
    # another of the same urgency has the lane, and both wait behind it
    other = worker().start(
        "unasked",
        lambda _: (holding.set(), let_go.wait(LONG)),
        device="cpu",
        priority=Priority.UNASKED,
    )
    assert holding.wait(LONG)
    asked.set()
    while lanes.lane("cpu").most_urgent != Priority.UNASKED:
        assert not job.wait(0.01)
    seen = []
    run = worker().start("a run", lambda _: seen.append(states(store)), device="cpu", priority=Priority.RUN)
    let_go.set()
    assert other.wait(LONG) and run.wait(LONG) and job.wait(LONG) and job.state == "done", job.error
    assert seen[0].get(MASKS) == "queued" and not FRONTIER & set(seen[0])


def test_a_sample_that_cannot_be_opened_says_why(store, capsys):
    opening = Openings(store.root).start(CorpusConfig((str(store.root / "none.parquet"),)), "gone", sample=True)
    job = sample_work.start(store.root, opening)
    assert job.wait(LONG) and job.state == "failed" and "does not exist" in job.error
    assert "not made ready" in capsys.readouterr().out and states(store) == {}
    assert not (store.root / NOTE).exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"begun": 1, "ended": [], "stopped": false, "done": false}'])
def test_a_note_that_cannot_be_read_makes_nothing(store, opening, content):
    store.root.mkdir(exist_ok=True)
    (store.root / NOTE).write_text(content)
    made(store, opening)
    assert states(store) == {}
