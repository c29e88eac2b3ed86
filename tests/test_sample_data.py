"""The builder of the sample corpus, on a few of the real packages and on made-up ones; and the two committed shards."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.corpus.quality_rules import RULES, quality_score
from datamask.errors import InputError, Stopped, StoreError
from datamask.files import replacing_folder
from sample_data import build as sample

ROOT = Path(__file__).resolve().parent.parent
REAL_ROOTS = sample._roots
FEW = ("json", "email", "umap")


@pytest.fixture
def few_packages(monkeypatch):
    monkeypatch.setattr(sample, "_roots", lambda: [root for root in REAL_ROOTS() if root[1].name in FEW])


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A package that must not be imported, with every place a docstring can stand."""
    long = "Long enough for the reader of docstrings to take it, which wants 120 characters; " * 2 + "."
    top = tmp_path / "packages" / "madeup"
    (top / "tests").mkdir(parents=True)
    (top / "__init__.py").write_text(f'"""Package. {long}"""\nraise RuntimeError("imported")\n')
    (top / "broken.py").write_text(f'"""Broken. {long}"""\ndef (:\n')
    (top / "tests" / "test_it.py").write_text(f'"""Test. {long}"""\n')
    (top / ".hidden").mkdir()
    (top / ".hidden" / "template.py").write_text(f'"""Template. {long}"""\n')
    (top / "short.py").write_text('"""Too short."""\n')
    (top / "mod.py").write_text(f'''
try:
    def twice():
        """First. {long}"""
except ImportError:
    def twice():
        """Second. {long}"""

class Outer:
    """    Class. {long}

        indented
    """
    class Inner:
        async def method(self):
            """Lone surrogate \\ud800. {long}"""
            def local():
                """Local. {long}"""
''')
    monkeypatch.setattr(sample, "_roots", lambda: [("madeup", top)])
    return long


def test_docstrings_are_found_wherever_they_stand_and_nothing_is_imported(made_up):
    rows = {name: text for name, _, text in sample.collect()}
    assert sorted(rows) == [
        "madeup",
        "madeup.mod.Outer",
        "madeup.mod.Outer.Inner.method",
        "madeup.mod.Outer.Inner.method.local",
        "madeup.mod.twice",
    ]
    assert rows["madeup"] == f"Package. {made_up}"
    assert rows["madeup.mod.twice"] == f"First. {made_up}"
    assert rows["madeup.mod.Outer"].endswith("indented") and rows["madeup.mod.Outer"].startswith("Class.")
    assert rows["madeup.mod.Outer.Inner.method"].startswith("Lone surrogate ?.")
    assert not any(name.split(".")[0] == "madeup" for name in sys.modules)


def test_real_packages_are_found_without_importing_them():
    code = (
        "import sys; from sample_data import build as b\n"
        "before = set(sys.modules)\n"
        "roots = b._roots()\n"
        "few = [r for r in roots if r[1].name in ('umap', 'json')]\n"
        "b._roots = lambda: few\n"
        "rows = b.collect()\n"
        "assert {r[1] for r in rows} == {'python', 'umap-learn'}, rows[:2]\n"
        "assert {r[0] for r in roots} == {'python', *b.PACKAGES}, roots\n"
        "print(*{m.split('.')[0] for m in set(sys.modules) - before})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"umap", "plotly", "streamlit", "torch", "sympy", "networkx", "altair"} & set(done.stdout.split())


def test_format_and_values(few_packages, tmp_path):
    files = sample.build(tmp_path / "out", limit=200, dim=32)
    assert [file.name for file in files] == [f"sample-{i}-of-4.parquet" for i in (1, 2, 3, 4)]
    table = pa.concat_tables(pq.read_table(file) for file in files)
    assert table.num_rows == 200
    assert table.schema.equals(
        pa.schema(
            {
                "chunk_id": pa.string(),
                "quality_score": pa.float32(),
                "feature_arr": pa.list_(pa.float16(), 32),
                "text": pa.string(),
                "source": pa.dictionary(pa.int32(), pa.string()),
                "n_tokens": pa.int32(),
            }
        )
    )
    assert len(set(table["chunk_id"].to_pylist())) == 200
    features = np.array(table["feature_arr"].to_pylist())
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=2e-3)
    texts = table["text"].to_pylist()
    np.testing.assert_allclose(table["quality_score"].to_numpy(), [quality_score(t) for t in texts], rtol=1e-6)
    assert np.std(table["quality_score"].to_numpy()) > 0.5 and min(map(len, texts)) >= 120
    assert sample.built(tmp_path / "out") == files and not sample.stale(tmp_path / "out")


def test_same_bytes_in_another_process_with_other_threads_and_hash_seed(few_packages, tmp_path):
    first = sample.build(tmp_path / "first", limit=200, dim=16)
    code = (
        "import sys; from sample_data import build as b; real = b._roots\n"
        f"b._roots = lambda: [r for r in real() if r[1].name in {FEW!r}]\n"
        "b.build(sys.argv[1], limit=200, dim=16)"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "second")], cwd=ROOT, check=True, env=environment)
    for file in [*(path.name for path in first), sample.MANIFEST]:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes(), file


def test_a_smaller_limit_is_the_beginning_of_a_larger_one(few_packages, tmp_path):
    names = [
        [
            name
            for file in sample.build(tmp_path / str(n), limit=n, dim=8)
            for name in pq.read_table(file, columns=["chunk_id"])["chunk_id"].to_pylist()
        ]
        for n in (60, 120)
    ]
    assert names[0] == names[1][:60] and len(names[1]) == 120


@pytest.mark.parametrize("polls", [0, 20, 50])
def test_stop_leaves_the_old_build(few_packages, tmp_path, polls):
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").touch()
    answers = iter([False] * polls)
    with pytest.raises(Stopped):
        sample.build(out, limit=300, dim=8, should_stop=lambda: next(answers, True))
    assert list(tmp_path.rglob("*")) == [out, out / "old"]
    assert sample.built(out) == []


def test_rebuilding_replaces_the_folder_and_progress_rises_to_one(few_packages, tmp_path):
    out, seen = tmp_path / "out", []
    out.mkdir()
    (out / "old.parquet").touch()
    files = sample.build(out, limit=50, dim=8, shards=2, progress=lambda *call: seen.append(call))
    assert sample.built(out) == files and not (out / "old.parquet").exists()
    assert list(tmp_path.iterdir()) == [out]
    shares = [share for share, _ in seen]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1
    assert any("docstrings" in what for _, what in seen)


def test_other_versions_make_a_build_stale_but_not_missing(few_packages, tmp_path):
    files = sample.build(tmp_path, limit=50, dim=8)
    manifest = tmp_path / sample.MANIFEST
    facts = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(facts | {"packages": facts["packages"] | {"numpy": "0.1"}}))
    assert sample.stale(tmp_path) and sample.built(tmp_path) == files
    manifest.unlink()
    assert sample.stale(tmp_path) and sample.built(tmp_path) == []


def test_no_docstrings_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(sample, "_roots", list)
    with pytest.raises(InputError, match="no docstrings were found"):
        sample.build(tmp_path / "out")


def test_command_line(few_packages, tmp_path, capsys):
    arguments = ["--output", str(tmp_path / "tiny"), "--tiny", "--limit", "40"]
    assert sample.main(arguments) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "tiny" / f"sample-{i}-of-2.parquet") for i in (1, 2)]
    assert sample.main(arguments[:3]) == 0 and "up to date" in capsys.readouterr().out
    (tmp_path / "file").touch()
    assert sample.main(["--output", str(tmp_path / "file" / "x"), "--limit", "40"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_committed_shards_hold_numbers_and_names_only():
    files = sample.built(sample.TINY)
    assert len(files) == sample.TINY_SHARDS and sum(file.stat().st_size for file in files) < 1_000_000
    table = pq.read_table(sample.TINY)
    assert table.column_names == ["chunk_id", "quality_score", "feature_arr", "source", "n_tokens"]
    assert table.num_rows == len(set(table["chunk_id"].to_pylist())) == sample.TINY_ROWS
    assert all(name.replace(".", "").isidentifier() for name in table["chunk_id"].to_pylist())
    features = np.array(table["feature_arr"].to_pylist())
    assert features.shape == (sample.TINY_ROWS, sample.TINY_DIM) and np.isfinite(features).all()


def test_readme_names_every_rule_with_its_weight():
    readme = (ROOT / "sample_data" / "README.md").read_text()
    for rule, weight in RULES.items():
        assert f"| `{rule.__name__}` | {weight:g} |" in readme


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    target = tmp_path / "folder"
    with replacing_folder(target) as new:
        (new / "a").write_text("1")
    with pytest.raises(ZeroDivisionError), replacing_folder(target) as new:
        (new / "a").write_text("2")
        raise ZeroDivisionError
    assert (target / "a").read_text() == "1" and list(tmp_path.iterdir()) == [target]
    with pytest.raises(StoreError, match="No space"), replacing_folder(target):
        raise OSError(28, "No space left on device")
    with replacing_folder(target) as new:
        (new / "b").write_text("3")
    assert [path.name for path in target.iterdir()] == ["b"] and list(tmp_path.iterdir()) == [target]


def test_a_rename_that_fails_puts_the_old_folder_back(tmp_path, monkeypatch):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "old").touch()
    rename = Path.rename

    def refusing(self, other):
        if self.name == "new":
            raise PermissionError(13, "Permission denied")
        return rename(self, other)

    monkeypatch.setattr(Path, "rename", refusing)
    with pytest.raises(StoreError, match="Permission denied"), replacing_folder(target):
        pass
    assert (target / "old").exists() and list(tmp_path.iterdir()) == [target]
