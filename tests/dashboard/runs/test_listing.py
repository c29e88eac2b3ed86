"""The list of runs: whose corpus, and what is under way, in this process or another."""

from types import SimpleNamespace

from datamask.config import CorpusConfig, RunConfig
from datamask.dashboard.runs import listing
from datamask.runs.store import RunStore

NOBODY = SimpleNamespace(active=list)


def create(store, name="", inputs=("a.parquet",)):
    return store.create(RunConfig(CorpusConfig(inputs), name=name))


def opening(fingerprint="f", inputs=("a.parquet",)):
    return SimpleNamespace(corpus=SimpleNamespace(fingerprint=fingerprint), config=CorpusConfig(inputs))


def test_runs_of_a_corpus_by_fingerprint_then_by_files(tmp_path):
    store = RunStore(tmp_path)
    known, other, fresh, elsewhere = (create(store) for _ in range(4))
    for run, fingerprint in ((known, "f"), (other, "g")):
        with run.writer() as writer:
            writer.update_facts(fingerprint=fingerprint)
    store.remove(elsewhere.id)
    elsewhere = create(store, inputs=("b.parquet",))
    ids = {run.id for run in listing.runs_on(store, opening())}
    assert ids == {known.id, fresh.id}
    assert {run.id for run in listing.runs_on(store, None)} == {known.id, other.id, fresh.id, elsewhere.id}


def test_archived_runs_are_left_out_unless_asked_for(tmp_path):
    store = RunStore(tmp_path)
    away, here = create(store, "away"), create(store, "here")
    away.relabel(archived=True)
    assert [run.id for run in listing.runs_on(store, None)] == [here.id]
    assert {run.id for run in listing.runs_on(store, None, archived=True)} == {away.id, here.id}


def test_runs_are_found_by_name_id_and_tag(tmp_path):
    store = RunStore(tmp_path)
    first, second = create(store, "Wide net"), create(store, "narrow")
    first.relabel(tags=["paper", "Section 4"])
    second.relabel(tags=["paper"])
    runs = [first, second]
    assert listing.matching(runs, "") == listing.matching(runs, " PAPER ") == runs
    assert listing.matching(runs, "wide section") == [first] and listing.matching(runs, second.id[-6:]) == [second]
    assert listing.matching(runs, "wide narrow") == []
    assert listing.tags_of(runs) == ["paper", "Section 4"]


def test_a_damaged_record_belongs_to_no_corpus(tmp_path):
    store = RunStore(tmp_path)
    (create(store).path / "config.json").write_text("{")
    assert listing.runs_on(store, opening()) == [] == listing.readable(store)
    whole = create(store, inputs=("b.parquet",))
    assert [run.id for run in listing.readable(store)] == [whole.id]


def test_what_another_process_runs_is_shown_too(tmp_path):
    store = RunStore(tmp_path)
    run = create(store, "theirs")
    with run.writer() as writer:
        writer.set_status("running", step=30, total_steps=100, message="learning")
        writer.append_metrics({"step": 30, "seconds": 12.0})
        busy = listing.running(store, NOBODY)
        # 0.4 seconds a step, 70 of them to come
        assert [(b.name, b.state, b.share, b.sentence.replace("\u00a0", " ")) for b in busy] == [
            ("theirs", "running", 0.3, "step 30 of 100, about 30 s left")
        ]
        assert listing.running(store, NOBODY, only=(run.id, "gone")) == busy
    assert listing.running(store, NOBODY) == [], "its lock is free, so nobody works on it"


def test_the_queue_knows_better_and_how_long_it_takes(tmp_path):
    store = RunStore(tmp_path)
    run = create(store)
    job = SimpleNamespace(about=run.id, state="running", share=0.5, message="step 5 of 10", left=177.0)
    with run.writer() as writer:
        writer.set_status("running")
        busy = listing.running(store, SimpleNamespace(active=lambda: [job]))
    assert busy[0].name == run.id and busy[0].share == 0.5
    assert busy[0].sentence.replace("\u00a0", " ") == "step 5 of 10, about 3 min left"


def test_a_run_that_a_sweep_computes_belongs_to_it_and_one_started_alone_does_not(tmp_path):
    store = RunStore(tmp_path)
    child, alone = create(store, "child"), create(store, "alone")
    with child.writer() as one, alone.writer() as other:
        for writer in (one, other):
            writer.set_status("running")
            writer.update_facts(sweep="sweep-a")
        job = SimpleNamespace(about=alone.id, state="running", share=0.5, message="step 5 of 10", left=None)
        busy = listing.running(store, SimpleNamespace(active=lambda: [job]))
    assert {b.name: b.sweep for b in busy} == {"child": "sweep-a", "alone": None}
    assert [b.name for b in listing.apart(busy, ["sweep-a"])] == ["alone"]
    assert listing.apart(busy, ["sweep-b"]) == busy == listing.apart(busy, [])


def test_lines_that_say_the_same_are_told_apart():
    lines = {"20260101-facility-1a2b": "facility", "20260102-facility-3c4d": "facility", "20260103-other-5e6f": "other"}
    assert list(listing.unlike(lines).values()) == ["facility  ·  1a2b", "facility  ·  3c4d", "other"]
