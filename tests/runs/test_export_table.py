"""The table of exports: what every entry promises, and that one of somebody's own is an entry."""

from __future__ import annotations

import json
import mimetypes
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import DatamaskError, RunStateError
from datamask.runs.execute import execute
from datamask.runs.export_table import EXPORTS, Download, Export, flags
from datamask.runs.store import RunStore
from tests.making.run_folders import config, finished

every = pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.name)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder with two shards, and a run which really selected some of their rows: to be copied."""
    tmp_path = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(0)
    for name in "ab":
        features = list(rng.normal(size=(20, 3)).astype(np.float32))
        table = {"id": [f"{name}{k}" for k in range(20)], "quality": rng.normal(size=20), "feature_arr": features}
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        run = RunStore("runs").create(
            RunConfig(
                CorpusConfig(("a.parquet", "b.parquet")),
                SelectionConfig.from_options(objective="pairwise", estimator="relaxed", select_ratio=0.5, device="cpu"),
            )
        )
        execute(run)
    return tmp_path, run.id


@pytest.fixture
def run(source, tmp_path, monkeypatch):
    """The run in a folder of its own, which is worked in."""
    folder, run_id = source
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True, copy_function=shutil.copy2)
    monkeypatch.chdir(tmp_path)
    return RunStore(tmp_path / "runs").get(run_id)


def _path(export: Export, folder):
    """A path of the kind that the command line asks for."""
    example = export.metavar.split("|")[0]
    return folder / example.replace("OUT", "out").replace("FOLDER", "folder")


def _files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_names_and_keys_are_those_that_people_have():
    assert [export.name for export in EXPORTS] == ["ids", "weights", "rows", "mask", "recipe"]
    downloads = {download.key: download.ending for export in EXPORTS for download in export.downloads}
    assert downloads == {
        "ids_parquet": ".parquet",
        "ids_csv": ".csv",
        "ids_jsonl": ".jsonl",
        "ids_txt": ".txt",
        "weights_parquet": "-weights.parquet",
        "weights_csv": "-weights.csv",
        "weights_jsonl": "-weights.jsonl",
        "rows_parquet": "-rows.parquet",
        "rows_csv": "-rows.csv",
        "rows_jsonl": "-rows.jsonl",
        "masks_zip": "-masks.zip",
        "recipe_json": "-recipe.json",
    }
    assert [export.target for export in EXPORTS] == ["", "", "rows.parquet", "masks", "recipe.json"]
    assert flags() == "--ids OUT.parquet, --weights OUT.parquet, --rows OUT.parquet, --mask FOLDER or --recipe OUT.json"


@every
def test_it_writes_what_it_says_whole_and_twice_the_same(export, run, tmp_path):
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
        written = export.write(run, _path(export, tmp_path / place))
        paths = written if isinstance(written, list) else [written]
        assert sorted(paths) == sorted(str(path) for path in (tmp_path / place).rglob("*") if path.is_file()) and paths
    assert _files(tmp_path / "first") == _files(tmp_path / "second")


@every
def test_downloads_are_of_the_type_they_say(export, run):
    starts = {".parquet": b"PAR1", ".zip": b"PK", ".csv": b'"id"', ".json": b"{", ".jsonl": b'{"id"', ".txt": b""}
    for download in export.downloads:
        content = export.content(download, run)
        assert content.startswith(starts[Path(f"x{download.ending}").suffix]), download.key
        assert mimetypes.guess_type(f"x{download.ending}")[0] in (download.media_type, None)
        if download.stored:
            assert content == (run.path / download.stored).read_bytes()


@every
def test_an_unfinished_run_has_nothing_and_nothing_is_left(export, store, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    with pytest.raises(RunStateError):
        export.write(store.create(config()), _path(export, target))
    assert not _files(target)


@every
def test_what_needs_shards_says_so_where_they_are_gone_and_can_be_stopped(export, run, tmp_path):
    target = tmp_path / "out"
    target.mkdir()
    assert bool(export.needs_shards) == bool(export.target) == bool(export.to_disk)
    for name in "ab":
        (tmp_path / f"{name}.parquet").rename(tmp_path / f"{name}.moved")
    if not export.needs_shards:
        export.write(run, _path(export, target))
        return
    with pytest.raises(DatamaskError, match=r"a\.parquet is gone since the run"):
        export.write(run, _path(export, target))
    assert not _files(target)


def test_a_run_that_cannot_have_it_says_why_and_nothing_is_written(tmp_path, run):
    shards = {"c.parquet": pa.table({"id": ["x", "y"]})}
    facility = finished(tmp_path, shards, {"c.parquet": [0, 1]}, {"c.parquet": [0]}, objective="facility")
    assert [export.name for export in EXPORTS if export.missing(facility)] == ["weights", "recipe"]
    assert not any(export.missing(run) for export in EXPORTS)
    (recipe,) = (export for export in EXPORTS if export.name == "recipe")
    sentence = recipe.missing(facility)
    assert sentence.startswith("Facility location ") and sentence.endswith(".")
    with pytest.raises(DatamaskError, match="acility location has no recipe: each row depends on others"):
        recipe.write(facility, tmp_path / "none.json")
    assert not (tmp_path / "none.json").exists()


def test_weights_of_the_command_line_add_to_what_was_asked(run, tmp_path, capsys):
    runs, path = str(run.path.parent), tmp_path / "weights.parquet"
    words = ["runs", "export", run.id, "--runs_dir", runs, "--weights", str(path)]
    assert main([*words, "--repeats", "70", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out.splitlines()[-1]) == {"run_id": run.id, "weights": str(path)}
    assert "in sum 20.00; to be repeated 70 times in all" in printed.err
    table = pq.read_table(path)
    assert table.column_names == ["id", "weight", "repeat", "selected", "source_file", "source_row"]
    weights, counts = table["weight"].to_numpy(), table["repeat"].to_numpy()
    assert weights.sum() == pytest.approx(20, rel=1e-13) and (weights > 0).all() and counts.sum() == 70
    totals = json.loads(table.schema.metadata[b"weights"])
    assert totals == {"weight": pytest.approx(weights.sum(), rel=1e-13), "repeat": 70, "seed": 0}
    assert json.loads(table.schema.metadata[b"datamask"])["run_id"] == run.id
    stored = run.rows(["id", "weight", "source_row"]).to_pylist()
    kept = [row for row in stored if row["weight"] > 0]
    assert table.select(["id", "weight", "source_row"]).to_pylist() == kept
    for wrong, why in (
        (["--repeat_tokens", "1M"], "--length_column"),
        (["--repeats", "0"], "from 1 to"),
        (["--repeats", "5", "--repeat_tokens", "5"], "either --repeats or --repeat_tokens"),
        (["--repeat_tokens", "many"], "such as 150M"),
    ):
        path.unlink(missing_ok=True)
        assert main([*words, *wrong]) == 2 and why in capsys.readouterr().err and not path.exists()
    assert main(["runs", "export", run.id, "--runs_dir", runs, "--repeats", "5", "--ids", "x.csv"]) == 2
    assert "give --weights" in capsys.readouterr().err
    assert main([*words[:-1], str(tmp_path / "w.txt")]) == 2
    assert "--weights must end in .parquet, .csv or .jsonl" in capsys.readouterr().err


def test_damaged_weights_are_refused(run, tmp_path):
    (weights,) = (export for export in EXPORTS if export.name == "weights")
    rows = run.rows()
    place = rows.column_names.index("weight")
    with run.writer() as writer:
        writer.write_rows(rows.set_column(place, "weight", pa.array(np.full(40, 2.0))))
    with pytest.raises(DatamaskError, match="its weights are not all from 0 to 1"):
        weights.write(run, tmp_path / "w.csv")
    assert not (tmp_path / "w.csv").exists()


def test_one_that_is_added_is_an_option_of_the_command_line(run, tmp_path, capsys):
    def write(run, path, work):
        work.report(0.5, "counting")
        work.poll()
        Path(path).write_text(str(run.selection().num_rows))
        return str(path)

    download = Download("count_txt", "A number", "-count.txt", "text/plain", "How many.")
    counted = Export("count", "OUT.txt", "how many were selected", "How many", "One number.", write, (download,))
    EXPORTS.append(counted)
    try:
        path, runs = str(tmp_path / "count.txt"), str(run.path.parent)
        assert main(["runs", "export", run.id, "--runs_dir", runs, "--count", path, "--json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"run_id": run.id, "count": path}
        assert (tmp_path / "count.txt").read_text() == "20"
        assert main(["runs", "export", run.id, "--runs_dir", runs]) == 2
        assert "--recipe OUT.json or --count OUT.txt" in capsys.readouterr().err
    finally:
        EXPORTS.remove(counted)
