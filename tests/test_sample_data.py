"""The committed demo is whole and holds what it says; its builder, on made-up packages; the shards of numbers."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.quality_rules import RULES
from datamask.errors import StoreError
from datamask.files import replacing_folder
from sample_data import build, docstrings, notice, uses

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 4 << 20


@pytest.fixture(scope="module")
def facts():
    return json.loads((build.DEMO / build.FACTS).read_text())


@pytest.fixture(scope="module")
def table():
    return pq.read_table(build.DEMO / build.SHARD)


def test_the_demo_is_small_and_its_rows_are_those_that_were_built(facts):
    assert {path.name for path in build.DEMO.iterdir()} == {build.FACTS, *facts["files"]}
    files = [path for folder in (build.DEMO, build.RESULTS) for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    for name, digest in facts["files"].items():
        assert hashlib.sha256((build.DEMO / name).read_bytes()).hexdigest() == digest, name


def test_its_columns_hold_what_they_say(table, facts):
    text = pa.dictionary(pa.int32(), pa.string())
    assert table.schema.equals(
        pa.schema(
            {
                "chunk_id": pa.string(),
                "quality_score": pa.float32(),
                "feature_arr": pa.list_(pa.float16(), 128),
                "text": pa.string(),
                "source": text,
                "kind": text,
                "uses": pa.float32(),
                "n_tokens": pa.int32(),
            }
        )
    )
    sources, texts = table["source"].to_pylist(), table["text"].to_pylist()
    assert table.num_rows == facts["rows"] == len(set(table["chunk_id"].to_pylist())) > 5_500
    assert {source: sources.count(source) for source in set(sources)} == facts["sources"]
    assert max(facts["sources"].values()) <= build.PER_SOURCE
    assert all(docstrings.SHORTEST <= len(text) <= build.LONGEST for text in texts)
    assert table["n_tokens"].to_pylist() == [build.words_and_marks(text) for text in texts]
    features = np.array(table["feature_arr"].to_pylist(), dtype=np.float64)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, atol=2e-3)
    assert abs(features @ features.mean(axis=0)).mean() < 0.05, "what all texts share was taken out"


def test_quality_is_made_of_uses_and_not_of_texts(table):
    quality, count = table["quality_score"].to_numpy(), table["uses"].to_numpy()
    np.testing.assert_allclose(quality, np.log2(1 + count), rtol=1e-5, atol=1e-6)
    lengths = np.array([len(text) for text in table["text"].to_pylist()])
    ranks = [np.argsort(np.argsort(values)) for values in (quality, lengths)]
    assert abs(np.corrcoef(*ranks)[0, 1]) < 0.15 and 0.3 < (quality > 0).mean() < 0.8


def test_the_notice_names_every_package_with_its_version_and_license(facts):
    text = (build.DEMO / build.NOTICE).read_text()
    for source in facts["sources"]:
        line = f"{source} {facts['versions'][source]}: {notice.LICENSES.get(source, 'BSD-3-Clause')}\n"
        assert line in text and text.count(f"\n{source} {facts['versions'][source]}\n") == 1
    assert text.count("Redistribution") >= 11 and "PYTHON SOFTWARE FOUNDATION LICENSE" in text


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
    monkeypatch.setattr(docstrings, "_roots", lambda: [("madeup", top)])
    return long


def test_docstrings_are_found_wherever_they_stand_and_nothing_is_imported(made_up):
    rows = {name: text for name, _, text in docstrings.collect()}
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


def counted(tmp_path, **files: str) -> dict[str, float]:
    """Uses of what these modules of a package `p` define."""
    top = tmp_path / "p"
    top.mkdir()
    paths = [("p", "p", top / "__init__.py")]
    (top / "__init__.py").write_text(files.pop("init", ""))
    for name, text in files.items():
        (top / f"{name}.py").write_text(text)
        paths.append(("p", f"p.{name}", top / f"{name}.py"))
    return uses.count_uses(paths).counts


def test_uses_are_counted_outside_the_own_module_and_through_imports(tmp_path):
    counts = counted(
        tmp_path,
        init="from p.deep import norm\n",
        deep="def norm(): pass\nnorm(); norm()\n",
        other="import p\np.norm(); p.norm()\nfrom p import norm as n\nn()\n",
    )
    assert counts["p.deep.norm"] == 3 and counts["p.deep"] == 1


def test_a_method_shares_its_uses_with_others_of_that_name_and_not_with_its_own_module(tmp_path):
    counts = counted(
        tmp_path,
        one="class A:\n    def go(self): self.go()\n",
        two="class B:\n    def go(self): pass\n",
        user="def f(x): x.go(); x.go(); x.go()\n",
    )
    assert counts["p.one.A.go"] == counts["p.two.B.go"] == 1.5


def test_a_compiled_module_that_leads_back_by_a_star_ends(tmp_path):
    # p.b.fast is no file, so each round through p.a makes the name longer
    counts = counted(
        tmp_path, a="from p.b.fast import fast\n", b="from p.a import *\n", user="import p.b\np.b.fast()\n"
    )
    assert counts == {"p.a": 1, "p.b": 1}


def test_each_source_gives_its_share_whatever_the_order(monkeypatch):
    monkeypatch.setattr(build, "PER_SOURCE", 3)
    pool = [(f"{source}.name{k}", source, "x" * 200) for source, n in (("large", 50), ("small", 2)) for k in range(n)]
    pool += [("large._private", "large", "x" * 200), ("small.long", "small", "x" * 3000)]
    chosen = build.choose(pool)
    assert sorted(source for _, source, _ in chosen) == ["large"] * 3 + ["small"] * 2
    assert build.choose(pool[::-1]) == chosen


def test_committed_shards_hold_numbers_and_names_only():
    corpus = open_corpus(CorpusConfig((str(ROOT / "sample_data" / "tiny"),)))
    assert len(corpus) == 1_200 and corpus.dim == 64 and corpus.texts is None


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
