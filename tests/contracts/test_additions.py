"""Additions take few places: a copy of the program gets an objective, a reported number, an analysis and a page.

Each constant is one place. What the additions are then part of is looked at from outside, and the contract suite of set
functions and the rules of imports run in the copy. An option is added in tests/options/test_table.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# an objective: its file, its line, its reference definition
OBJECTIVE = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own-objective.md").read_text(encoding="utf-8"), re.S)[
    0
]
CATALOGUE = """    ObjectiveEntry(
        "spread",
        "datamask.objectives.spread:Spread",
        (),
        "Spread",
        "No dimension of the members' mean should stick out.",
        effort=0.1,
    ),
"""
REFERENCE = '    "spread": lambda x, members: -float((x[list(members)].mean(0) ** 2).sum()),\n'

# a reported number: its field, where it is measured, its column
FIELD = "    kept_quality: float | None = stored(NUMBER | NONE)\n"
MEASURED = "            kept_quality=float(corpus.quality[chosen].sum() / corpus.quality.sum()),\n"
COLUMN = '    Column("kept_quality", "Kept", SHARE, "Of all quality.", lambda record: record.result.kept_quality),\n'

# an analysis: its folder, and the line of the page that calls it
TABLES = '''"""The longest rows of a corpus."""

import numpy as np
import pandas as pd

from datamask.corpus import Corpus


def longest(corpus: Corpus, count: int = 3) -> pd.DataFrame:
    """Return columns ``id, tokens`` of the longest rows, the longest first."""
    rows = np.argsort(-corpus.lengths, kind="stable")[:count]
    return pd.DataFrame({"id": corpus.ids.take(rows).to_pylist(), "tokens": corpus.lengths[rows]})
'''
PANEL = '''"""The longest rows, drawn."""

import streamlit as st

from datamask.analyses.longest.tables import longest
from datamask.dashboard.shell import session


def show() -> None:
    """Draw the table."""
    st.dataframe(longest(session.open_corpus_or_stop()))
'''

# a page: its script, which calls the analysis, and its line in the menu
PAGE = '''"""Longest: which rows take the most tokens?"""

from datamask.analyses.longest import panel
from datamask.dashboard.frame.frame import frame

frame("Longest", "Which rows take the most tokens?")
panel.show()
'''
MENU = '    ("pages/longest.py", "Longest", ":material/straighten:"),\n'

LOOK = """
import json
from pathlib import Path
from streamlit.testing.v1 import AppTest
from datamask.cli import main
from datamask.corpus import open_corpus
from datamask.dashboard.data.openings import openings
from datamask.dashboard.runs import runs_table
from datamask.evaluation.result import RunResult
from datamask.runs.store import RunStore, default_root
from tests.making.runs import write_shard

shard = Path("shard.parquet")
config = write_shard(shard)
assert main(["select", str(shard), "--objective", "spread", "--n_epochs", "3", "--json"]) == 0
opening = openings(Path(default_root()).absolute()).start(config, "shard")
opening.wait(240)
app = AppTest.from_file("app.py", default_timeout=240)
app.query_params["corpus"] = opening.key
app.switch_page("pages/longest.py").run()
(run,) = RunStore(default_root()).list()
table = runs_table.table([run], several=False)
print()
print(json.dumps({
    "exceptions": [each.message for each in app.exception],
    "menu": "Longest" in [link.proto.label for link in app.get("page_link")],
    "longest": app.dataframe[0].value["tokens"].tolist(),
    "expected": sorted(open_corpus(config).lengths.tolist(), reverse=True)[:3],
    "column": table["kept_quality"].tolist(),
    "objective": table["objective"].tolist(),
    "old record": RunResult.from_dict({"n": 600, "selected": 60}).kept_quality,
}))
"""


NOT_COPIED = shutil.ignore_patterns("e2e", "*.pyc.*", "*.tmp.*")
"""Other tests, and what is being written just now. What Python and numba have compiled comes along: files keep their
times, so it holds in the copy too, where nothing was added."""


def insert(path: Path, place: str, text: str, *, before: bool = True) -> None:
    """Put text before or after the one place in a file where `place` stands."""
    source = path.read_text(encoding="utf-8")
    assert source.count(place) == 1, f"{place!r} stands {source.count(place)} times in {path}"
    path.write_text(source.replace(place, text + place if before else place + text), encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the program with the additions."""
    tree = tmp_path_factory.mktemp("added")
    for name in ("datamask", "pages", "tests", "sample_data", ".streamlit"):
        shutil.copytree(ROOT / name, tree / name, ignore=NOT_COPIED)
    for name in ("app.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tree / name)
    code = tree / "datamask"
    (code / "objectives" / "spread.py").write_text(OBJECTIVE, encoding="utf-8")
    insert(code / "catalogue.py", ")\n\nESTIMATORS", CATALOGUE)
    insert(tree / "tests/reference/truth.py", "OBJECTIVES = {\n", REFERENCE, before=False)
    insert(code / "evaluation/result.py", "    unknown_ids: int | None = stored", FIELD)
    insert(code / "evaluation/selection.py", "            certificate=ProvedBound()\n", MEASURED)
    insert(code / "dashboard/runs/runs_table.py", '    Column("name", "Run", TEXT', COLUMN)
    folder = code / "analyses" / "longest"
    folder.mkdir()
    for name, source in (("__init__", ""), ("tables", TABLES), ("panel", PANEL)):
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    (tree / "pages" / "longest.py").write_text(PAGE, encoding="utf-8")
    insert(code / "dashboard/frame/frame.py", '    ("pages/export.py", "Export"', MENU)
    return tree


def run_in(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "DATAMASK_ROOTS": str(tree), "DATAMASK_RUNS_DIR": "runs"}
    return subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, timeout=600
    )


def test_what_was_added_is_selected_by_reported_listed_and_drawn(tree):
    done = run_in(tree, "-c", LOOK)
    assert done.returncode == 0, done.stderr
    (summary,) = (json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"run_id"'))
    assert 0 < summary["kept_quality"] < 1 and summary["objectives"].keys() == {"spread"}
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["exceptions"] == [] and seen["menu"] and seen["longest"] == seen["expected"]
    assert seen["column"] == [summary["kept_quality"]] and seen["objective"] == ["Spread"]
    assert seen["old record"] is None


CONCERNED = "spread or boundaries or reference_covers or (catalogue and not takes_every_rule and (free or not rule))"
"""What an addition may change. Not the other objectives: they are what they are here, and so is what solves them under
rules, which tests/test_catalogue.py asks of objectives that it names itself."""


def test_the_contracts_and_the_rules_of_imports_hold_with_it(tree):
    suite = ("tests/contracts/test_set_functions.py", "tests/test_boundaries.py", "tests/test_catalogue.py")
    done = run_in(tree, "-m", "pytest", *suite, "-k", CONCERNED, "-n", "0", "-p", "no:cacheprovider", "-vv")
    assert done.returncode == 0, done.stdout[-4000:]
    held = set(re.findall(r"^def (test_\w+)\(name\b", (ROOT / suite[0]).read_text(encoding="utf-8"), re.M))
    assert len(held) > 4 and held <= set(re.findall(r"::(test_\w+)\[\S*spread\S* PASSED", done.stdout))
