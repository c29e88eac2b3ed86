"""What people add to a run: names, notes, tags."""

from __future__ import annotations

from datamask.files import replacing
from datamask.runs.labels import Label
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


def test_tags_and_archiving_are_decoration(store):
    run = store.create(config("before"))
    assert run.label() == Label()
    run.relabel(tags=[" good ", "", "2b", "good"], archived=True)
    run.relabel(notes="n")
    assert run.label() == Label(None, "n", ("good", "2b"), True) and run.config.name == "before"
    run.relabel(archived=False)
    assert not store.get(run.id).label().archived
    (run.path / "label.json").write_text("{")
    assert run.label() == Label() and run.config.name == "before"


def test_what_a_killed_writer_left_goes_with_the_next_word(store):
    run = store.create(config("before"))
    (run.path / ".label.json.abcd1234.part").write_text("{")
    with replacing(run.path / "notes.json") as part:  # somebody writes at this moment
        run.relabel("b")
        assert [path.name for path in run.path.iterdir() if path.name.startswith(".")] == [part.name]
        part.write_text("{}")
