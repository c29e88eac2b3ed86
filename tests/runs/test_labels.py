"""What people add to a run: names, notes, tags, results measured elsewhere."""

from __future__ import annotations

import pytest

from datamask.errors import InputError
from datamask.files import replacing
from datamask.runs.labels import Label, Result, read_results
from tests.making.run_folders import config


def test_names_and_notes_change_without_the_lock(store):
    run = store.create(config("before"))
    with run.writer() as writer:
        run.relabel("after", "why: <b>because</b>")
        writer.update_facts(n=5)
    assert (run.config.name, run.config.notes) == ("after", "why: <b>because</b>")
    run.relabel(notes="")
    assert (store.get(run.id).config.name, store.get(run.id).config.notes) == ("after", "")
    assert run.facts()["n"] == 5


def test_tags_archiving_and_results_are_decoration(store):
    run = store.create(config("before"))
    assert run.label() == Label() and run.results() == []
    run.relabel(tags=[" good ", "", "2b", "good"], archived=True)
    run.relabel(notes="n")
    assert run.label() == Label(None, "n", ("good", "2b"), True) and run.config.name == "before"
    run.relabel(archived=False)
    assert not store.get(run.id).label().archived
    found = read_results("\ufeffTask, Score,seed\nmmlu, 0.41,1\nmmlu,0.43,2\narc,1e-1,\n", "r.csv")
    run.attach(found)
    assert (
        store.get(run.id).results()
        == found
        == [Result("mmlu", 0.41, "1"), Result("mmlu", 0.43, "2"), Result("arc", 0.1, "")]
    )
    for name in ("label.json", "results.json"):
        (run.path / name).write_text("{")
    assert run.label() == Label() and run.results() == [] and run.config.name == "before"
    run.attach([])
    assert run.results() == []


@pytest.mark.parametrize("write", [lambda run: run.relabel("b"), lambda run: run.attach([Result("arc", 0.1)])])
def test_what_a_killed_writer_left_goes_with_the_next_word(store, write):
    run = store.create(config("before"))
    (run.path / ".label.json.abcd1234.part").write_text("{")
    with replacing(run.path / "results.json") as part:  # somebody writes at this moment
        write(run)
        assert [path.name for path in run.path.iterdir() if path.name.startswith(".")] == [part.name]
        part.write_text("{}")


@pytest.mark.parametrize(
    "text, says",
    [
        ("task,value\nx,1\n", "columns task and score"),
        ("", "it has none"),
        ("task,score\n", "has no rows"),
        ("task,score\nx,good\n", "line 2: expected a task and a finite score, got 'x' and 'good'"),
        ("task,score\nx,1\n,2\n", "line 3"),
        ("task,score\nx,nan\n", "line 2"),
    ],
)
def test_results_that_make_no_sense_name_their_line(text, says):
    with pytest.raises(InputError, match=says):
        read_results(text, "r.csv")
