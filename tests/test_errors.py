"""Messages can be printed and read, whatever the paths, ids and columns in them are called."""

from __future__ import annotations

import pytest

from datamask.errors import LONGEST, InputError, OptionError, RunStateError, Stopped, StoreError, readable
from datamask.runs.attempt import one_sentence

ERRORS = (InputError, OptionError, StoreError, RunStateError, Stopped)


@pytest.mark.parametrize("error", ERRORS)
def test_a_sentence_stays_as_it_is(error):
    text = "column 'é' of /data/日本.parquet is\tno\nnumber – choose another with --quality_column"
    assert str(error(text)) == text
    assert str(error()) == ""


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(
    "name, escaped",
    [("\udcff", "\\udcff"), ("\x1b[31m", "\\x1b[31m"), ("a\rb", "a\\rb"), ("\x00", "\\x00"), ("\u202eid", "\\u202eid")],
)
def test_what_no_terminal_can_print_is_escaped(error, name, escaped):
    text = str(error(f"--input {name} does not exist"))
    assert text == f"--input {escaped} does not exist"
    assert one_sentence(error(name)).encode()


@pytest.mark.parametrize("word", ["x" * 5000, "x/" * 2500, "é" * 5000, "\udcff" * 5000])
def test_a_long_name_loses_its_middle_and_the_way_out_stays(word):
    text = str(InputError(f"/data/{word}/end.parquet has no column 'a'; choose one with --id_column"))
    assert len(text) <= LONGEST
    assert text.startswith("/data/") and text.endswith("end.parquet has no column 'a'; choose one with --id_column")


def test_a_long_list_of_names_stays_a_list():
    text = readable("the columns are " + ", ".join(f"{k}{'n' * 300}" for k in range(12)) + "; choose one")
    assert len(text) <= LONGEST and text.endswith("; choose one") and all(f" {k}nnn" in text for k in range(12))


def test_words_without_end_are_cut_in_the_middle():
    text = readable("first " + "word " * 1000 + "last")
    assert len(text) == LONGEST and text.startswith("first word") and text.endswith("word last")
