"""The corpora of a process: one opening for many callers, few corpora, changed files noticed."""

import importlib
import sys
import threading

import pytest

from datamask.config import CorpusConfig
from datamask.corpus import shared_corpora as module
from datamask.corpus.shared_corpora import SharedCorpora
from datamask.errors import InputError, Stopped
from datamask.work.context import Work


class Opened:
    """Stands for a corpus."""


@pytest.fixture
def openings(monkeypatch):
    """Replaces read_corpus: it waits for `go`, then does as `result` says; `calls` counts."""

    class Openings:
        def __init__(self):
            self.calls, self.go, self.inside, self.fail = 0, threading.Event(), threading.Event(), None
            self.fail_once = []

        def open(self, config, work, *, row_limit, beside, into):
            self.calls += 1
            work.report(0.5, "half")
            self.inside.set()
            while not self.go.wait(0.01):
                work.poll()
            if self.fail_once:
                raise self.fail_once.pop()
            if self.fail is not None:
                raise self.fail
            return Opened()

    fake = Openings()
    monkeypatch.setattr(module, "read_corpus", fake.open)
    return fake


def config(tmp_path, name="x"):
    path = tmp_path / f"{name}.parquet"
    if not path.exists():
        path.write_bytes(b"x")
    return CorpusConfig((str(path),))


def threads(count, call):
    """Run `call` in threads and collect what each returned or raised."""
    results = []

    def work():
        try:
            results.append(call())
        except Exception as error:
            results.append(error)

    started = [threading.Thread(target=work) for _ in range(count)]
    for thread in started:
        thread.start()
    return started, results


def join(started):
    for thread in started:
        thread.join(120)
        assert not thread.is_alive()


def test_concurrent_callers_share_one_opening_and_see_its_progress(tmp_path, openings):
    corpora, seen = SharedCorpora(), []
    shard = config(tmp_path)  # written once, before the threads: a second write is a changed file, so another corpus
    started, results = threads(6, lambda: corpora.get(shard, Work(report=lambda s, w: seen.append((s, w)))))
    assert openings.inside.wait(120)
    waiting = threading.Event()
    with pytest.raises(Stopped):
        corpora.get(config(tmp_path), Work.of(lambda: waiting.is_set() or waiting.set()))
    openings.go.set()
    join(started)
    assert openings.calls == 1 and len(results) == 6 and len(set(map(id, results))) == 1
    assert seen.count((0.5, "half")) >= 1 and set(seen) <= {(0.5, "half"), (0.0, "Opening")}
    assert corpora.get(config(tmp_path)) is results[0]


def test_a_corpus_with_all_columns_serves_those_who_need_some(tmp_path, openings):
    corpora, shard = SharedCorpora(), config(tmp_path)
    openings.go.set()
    some = corpora.get(shard, beside=("a",))
    assert corpora.get(shard, beside=frozenset("a")) is some and not corpora.holds(shard)
    everything = corpora.get(shard)
    assert corpora.get(shard, beside=("b",)) is everything is not some
    assert openings.calls == 2


def test_a_caller_that_waits_opens_in_the_stead_of_one_that_was_interrupted(tmp_path, openings):
    corpora = SharedCorpora()
    openings.fail_once = [KeyboardInterrupt()]
    shard = config(tmp_path)
    interrupted = []

    def interrupt():
        with pytest.raises(KeyboardInterrupt):
            corpora.get(shard)
        interrupted.append(True)

    opener = threading.Thread(target=interrupt)
    opener.start()
    assert openings.inside.wait(120)
    waits = threading.Event()
    started, results = threads(1, lambda: corpora.get(shard, Work(report=lambda share, what: waits.set())))
    assert waits.wait(120)
    openings.go.set()
    opener.join(120)
    join(started)
    assert interrupted and openings.calls == 2
    assert not isinstance(results[0], Exception)


def test_an_error_reaches_everyone_who_waited_and_is_not_kept(tmp_path, openings):
    corpora = SharedCorpora()
    openings.fail = InputError("x.parquet is bad")
    shard = config(tmp_path)
    started, results = threads(3, lambda: corpora.get(shard))
    assert openings.inside.wait(120)
    openings.go.set()
    join(started)
    assert [str(error) for error in results] == ["x.parquet is bad"] * 3
    assert all(isinstance(error, InputError) for error in results)
    openings.fail = None
    assert corpora.get(config(tmp_path)) is not None


def test_when_the_opener_is_stopped_a_waiting_caller_opens(tmp_path, openings):
    corpora, stop = SharedCorpora(), threading.Event()
    first, stopped = threads(1, lambda: corpora.get(config(tmp_path), Work.of(stop.is_set)))
    assert openings.inside.wait(120)
    second, opened = threads(1, lambda: corpora.get(config(tmp_path)))
    stop.set()
    join(first)
    openings.go.set()
    join(second)
    assert isinstance(stopped[0], Stopped) and not isinstance(opened[0], Exception)
    assert openings.calls == 2


def test_two_are_kept_the_latest_used(tmp_path, openings):
    openings.go.set()
    corpora = SharedCorpora(2)
    a = corpora.get(config(tmp_path, "a"))
    corpora.get(config(tmp_path, "b"))
    assert corpora.get(config(tmp_path, "a")) is a
    corpora.get(config(tmp_path, "c"))
    assert corpora.get(config(tmp_path, "a")) is a and openings.calls == 3
    corpora.get(config(tmp_path, "b"))
    assert openings.calls == 4


def test_one_that_somebody_still_uses_is_not_opened_a_second_time(tmp_path, openings):
    openings.go.set()
    corpora = SharedCorpora(1)
    a = corpora.get(config(tmp_path, "a"))
    corpora.get(config(tmp_path, "b"))
    assert corpora.holds(config(tmp_path, "a")) and corpora.get(config(tmp_path, "a")) is a and openings.calls == 2
    del a
    corpora.get(config(tmp_path, "b"))
    assert not corpora.holds(config(tmp_path, "a"))


def test_changed_files_and_other_budgets_are_other_corpora(tmp_path, openings):
    openings.go.set()
    corpora = SharedCorpora()
    first = corpora.get(config(tmp_path))
    (tmp_path / "x.parquet").write_bytes(b"xy")
    second = corpora.get(config(tmp_path))
    assert second is not first
    assert corpora.get(config(tmp_path), row_limit=5) is not second


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        SharedCorpora().get(CorpusConfig((str(tmp_path / "no.parquet"),)))


def test_the_corpora_of_the_process_survive_a_reload_of_its_module():
    before = module.shared_corpora()
    again = importlib.reload(sys.modules["datamask.corpus.shared_corpora"])
    assert again.shared_corpora() is before
