"""The docstrings of the public names: an imperative sentence, and an example that runs."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
import tempfile
import time

import pytest

import datamask
from tests.commands import ROOT


@pytest.mark.parametrize("name", datamask.__all__)
def test_every_public_name_has_an_example_that_runs(name, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    public = getattr(datamask, name)
    text = inspect.getdoc(public)
    first, _, rest = text.partition("\n")
    assert re.fullmatch(r"[A-Z].*\.", first) and "Examples:" in rest
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert len(example.examples) >= 2
    outcome = doctest.DocTestRunner(verbose=False).run(example, clear_globs=False)
    deadline = time.monotonic() + 120
    while name == "start_run" and example.globs["run"].status().active and time.monotonic() < deadline:
        time.sleep(0.1)
    assert name != "start_run" or example.globs["run"].status().state == "done"
    assert outcome.failed == 0 and outcome.attempted == len(example.examples)


@pytest.mark.parametrize("name", [name for name in datamask.__all__ if name[0].islower()])
def test_every_argument_of_a_public_function_is_described(name):
    function = getattr(datamask, name)
    described = inspect.getdoc(function).partition("Args:")[2].partition("\n\n")[0]
    missing = [argument for argument in inspect.signature(function).parameters if f"{argument}:" not in described]
    assert not missing


@pytest.mark.parametrize("name", datamask.__all__)
def test_a_line_of_a_docstring_describes_one_name(name):
    """The reference makes a row of a table of each line."""
    public = getattr(datamask, name)
    fields = dataclasses.fields(public) if dataclasses.is_dataclass(public) else ()
    known = {field.name for field in fields} or set(inspect.signature(public).parameters)
    lines = re.findall(r"^ {4}\**(\w+(?:, \w+)*): (.*)", inspect.getdoc(public), re.MULTILINE)
    described = [one for one, _ in lines if not one.endswith("Error") and one != "Stopped"]
    assert set(described) <= known and (name == "SelectionConfig" or set(described) == known)
    assert not [text for _, text in lines if re.search(rf"[.;] (?:{'|'.join(known)}): ", text)]
