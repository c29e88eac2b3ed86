"""Inputs made by hand: paths that are no files, bombs, and every defect of this kind that was ever mended."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import datamask.memory
from datamask import CorpusConfig, open_corpus
from datamask.corpus import inspect_inputs
from tests.torture import materials
from tests.torture.contract import Finding
from tests.torture.judging import ACCEPTED, REFUSED, Family, attempted, command
from tests.torture.materials import ROWS, table
from tests.torture.reading import check_same

Make = Callable[[Path], object]
"""Fills a folder; gives the path to open, or settings of a corpus, or None for the folder itself."""

EITHER = ""
MEMORY = 4 << 30


def _file(content: pa.Table | Callable[[], pa.Table], **options: object) -> Make:
    def make(folder: Path) -> None:
        pq.write_table(content() if callable(content) else content, folder / "a.parquet", **options)

    return make


def _beside(spoil: Callable[[Path], object]) -> Make:
    """A good shard, and something else beside it."""

    def make(folder: Path) -> None:
        pq.write_table(table(), folder / "a.parquet")
        spoil(folder)

    return make


def _path(text: str) -> Make:
    return lambda folder: text


def _special(make: Callable[[Path], object], name: str) -> Make:
    def build(folder: Path) -> str:
        make(folder / name)
        return str(folder / name)

    return build


def _bomb(rows: int, megabytes: int) -> Make:
    """Rows of one long text, kept once in the file."""

    def make(folder: Path) -> None:
        text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["z" * (megabytes << 20)]))
        pq.write_table(
            table(rows, text=text),
            folder / "a.parquet",
            compression="zstd",
            store_schema=False,
            use_dictionary=["text"],
            dictionary_pagesize_limit=1 << 28,
        )

    return make


def _bomb_of_features(dim: int) -> Make:
    def make(folder: Path) -> None:
        flat = pa.array(np.ones(2_000 * dim, np.float32))
        pq.write_table(
            table(2_000, feature_arr=pa.FixedSizeListArray.from_arrays(flat, dim)),
            folder / "a.parquet",
            compression="zstd",
        )

    return make


def _many_folders(folder: Path) -> str:
    for name in range(300):
        deep = folder / f"{name}" / "b" / "c" / "d" / "e" / "f"
        deep.mkdir(parents=True)
    return str(folder / "**/**/**/**/**/**/*.parquet")


def _sock(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # a socket's path has at most 107 letters
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)
    os.chdir(before)


class _Strange(pa.ExtensionType):
    """An extension type that nobody knows."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "strange.<script>")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"\xff\x00strange"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> _Strange:
        return cls(storage)


def _strange(array: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(_Strange(array.type), array)


def _invalid_text() -> pa.Array:
    return pa.Array.from_buffers(
        pa.string(), ROWS, pa.array([b"\xff\xfe%d" % row for row in range(ROWS)], pa.binary()).buffers()
    )


def _twice(name: str) -> pa.Table:
    plain = table()
    return pa.Table.from_arrays([*plain.columns, plain[name]], names=[*plain.column_names, name])


def _features(first: list[float], kind: pa.DataType | None = None) -> pa.Table:
    rows = [first, *([1.0, 2.0 + row] for row in range(ROWS - 1))]
    return table(feature_arr=pa.array(rows, pa.list_(kind or pa.float64())))


def _quality(values: list) -> pa.Table:
    return table(quality_score=pa.array((values * ROWS)[:ROWS]))


CASES: tuple[tuple[str, str, Make], ...] = (
    ("plain", ACCEPTED, _file(table())),
    *(
        (f"device {name}", REFUSED, _path(name))
        for name in (
            "/dev/zero",
            "/dev/null",
            "/dev/urandom",
            "/dev/full",
            "/dev/stdin",
            "/dev/tty",
            "/proc/self/mem",
            "/proc/kmsg",
        )
    ),
    *(
        (f"address {name}", REFUSED, _path(name))
        for name in (
            "http://169.254.169.254/x.parquet",
            "file:///etc/passwd",
            "s3://bucket/key",
            "~nosuchuser/x.parquet",
            "~nosuchuser",
            "a\0b.parquet",
            "x" * 5000 + ".parquet",
            "\udcff.parquet",
            "",
            " ",
            "/",
            "//",
            "/nonexistent/**",
            "[",
            "[!",
            "***",
            "/dev",
            "/proc/self/fd",
            "/etc/passwd",
        )
    ),
    ("fifo", REFUSED, _special(os.mkfifo, "a.parquet")),
    ("fifo by pattern", REFUSED, lambda folder: (os.mkfifo(folder / "a.parquet"), str(folder / "*.parquet"))[1]),
    ("fifo beside a shard", EITHER, _beside(lambda folder: os.mkfifo(folder / "b.parquet"))),
    ("socket", REFUSED, _special(_sock, "a.parquet")),
    ("link to a device", REFUSED, _special(lambda path: path.symlink_to("/dev/zero"), "a.parquet")),
    ("link to itself", REFUSED, _special(lambda path: path.symlink_to(path), "a.parquet")),
    ("links in a circle", EITHER, _beside(lambda folder: (folder / "loop").symlink_to(folder))),
    ("broken link beside", EITHER, _beside(lambda folder: (folder / "b.parquet").symlink_to("/nonexistent"))),
    ("folder called .parquet", EITHER, _beside(lambda folder: (folder / "b.parquet").mkdir())),
    ("other files beside", ACCEPTED, _beside(lambda folder: (folder / "README").write_text("x"))),
    ("empty file beside", REFUSED, _beside(lambda folder: (folder / "b.parquet").touch())),
    ("patterns in patterns", REFUSED, _many_folders),
    ("patterns over everything", REFUSED, _path("/usr/**/**/**/**/**/*.parquet2")),
    (
        "other columns beside",
        REFUSED,
        _beside(lambda folder: pq.write_table(table(first=100).drop(["feature_arr"]), folder / "b.parquet")),
    ),
    (
        "other dimensions beside",
        REFUSED,
        _beside(lambda folder: pq.write_table(table(first=100, dim=7), folder / "b.parquet")),
    ),
    ("same ids beside", REFUSED, _beside(lambda folder: pq.write_table(table(), folder / "b.parquet"))),
    (
        "other ids beside",
        EITHER,
        _beside(lambda folder: pq.write_table(table(chunk_id=pa.array(range(ROWS))), folder / "b.parquet")),
    ),
    ("no rows", REFUSED, _file(table(0))),
    ("20 000 row groups", ACCEPTED, _file(lambda: table(20_000, dim=2), row_group_size=1)),
    ("2 000 columns", ACCEPTED, _file(lambda: table(**{f"c{k}": pa.array([k] * ROWS) for k in range(2000)}))),
    ("bomb of 200 texts", EITHER, _bomb(200, 1)),
    ("bomb of 6 000 texts", REFUSED, _bomb(6_000, 1)),
    ("bomb of 40 000 texts", REFUSED, _bomb(40_000, 1)),
    ("bomb of long texts", REFUSED, _bomb(300, 64)),
    ("bomb of features", EITHER, _bomb_of_features(20_000)),
    ("text 50 MB in one row", ACCEPTED, _file(lambda: table(text=pa.array(["x" * 50_000_000] + ["a"] * (ROWS - 1))))),
    ("id of 1 MB", EITHER, _file(lambda: table(chunk_id=pa.array(["x" * 10**6 + str(k) for k in range(ROWS)])))),
    ("column name of 1 MB", EITHER, _file(lambda: table(**{"n" * 10**6: pa.array(["a"] * ROWS)}))),
    ("two qualities of 1e308", EITHER, _file(_quality([1e308, -1e308]))),
    ("all qualities 1e308", EITHER, _file(_quality([1e308]))),
    ("quality 1e30", ACCEPTED, _file(_quality([1e30, 2e30]))),
    ("quality denormal", EITHER, _file(_quality([5e-324, 0.0]))),
    ("quality constant", ACCEPTED, _file(_quality([1.0]))),
    ("quality infinite", REFUSED, _file(_quality([float("inf"), 1.0]))),
    ("quality null", REFUSED, _file(_quality([None, 1.0]))),
    ("quality beyond 2^53", EITHER, _file(lambda: table(quality_score=pa.array([2**62 + k for k in range(ROWS)])))),
    *(
        (f"features of {value:g}", EITHER, _file(lambda value=value: _features([value, value / 10])))
        for value in (1e300, 1e-300, 1e160, 1e-160, 1e39, 1e-39, 1.7e308, 5e-324)
    ),
    ("features 3e38", EITHER, _file(lambda: _features([3e38, 3e38], pa.float32()))),
    ("features denormal", EITHER, _file(lambda: _features([1e-45, 0.0], pa.float32()))),
    ("features of zeros", REFUSED, _file(lambda: _features([0.0, 0.0]))),
    ("features of NaN", REFUSED, _file(lambda: _features([float("nan"), 1.0]))),
    ("lengths negative", EITHER, _file(lambda: table(n_tokens=pa.array([-1] * ROWS)))),
    ("lengths of 2^63", EITHER, _file(lambda: table(n_tokens=pa.array([2**63 - 1] * ROWS)))),
    *(
        (f"column {name} twice", EITHER, _file(lambda name=name: _twice(name)))
        for name in ("text", "chunk_id", "quality_score", "feature_arr", "domain")
    ),
    ("ids no UTF-8", REFUSED, _file(lambda: table(chunk_id=_invalid_text()))),
    ("text no UTF-8", EITHER, _file(lambda: table(text=_invalid_text()))),
    ("time zone of nowhere", EITHER, _file(lambda: table(t=pa.array([0] * ROWS, pa.timestamp("us", "Nowhere/Zone"))))),
    ("years beyond 9999", EITHER, _file(lambda: table(t=pa.array([2**62] * ROWS, pa.timestamp("us"))))),
    ("strange ids", EITHER, _file(lambda: table(chunk_id=_strange(table()["chunk_id"].combine_chunks())))),
    ("strange features", EITHER, _file(lambda: table(feature_arr=_strange(table()["feature_arr"].combine_chunks())))),
    (
        "strange qualities",
        EITHER,
        _file(lambda: table(quality_score=_strange(table()["quality_score"].combine_chunks()))),
    ),
    (
        "strange schema metadata",
        EITHER,
        _file(
            table().replace_schema_metadata(
                {b"datamask": b"{" * 10**6, b"pandas": b"not json", b"huggingface": b"\xff" * 100}
            )
        ),
    ),
    (
        "internal names",
        EITHER,
        _file(
            lambda: table(
                **{
                    name: pa.array(range(ROWS))
                    for name in (
                        "rank",
                        "logit",
                        "score",
                        "quality",
                        "source_row",
                        "selected",
                        "marginal_quality",
                        "marginal_diversity",
                    )
                }
            )
        ),
    ),
)


def run(number: int, folder: Path) -> str:
    """Case `number`, as `open_and_use`."""
    return open_and_use(*CASES[number], folder)


def open_and_use(name: str, expected: str, make: Make, folder: Path, memory: int = MEMORY) -> str:
    """Look, open, compare with what is expected; then the command line does the same.

    The program's own budget is a quarter of the memory it may use, so it is told of a control group of so many bytes:
    otherwise the limit of a case would be too small on a large machine, and too large on a small one.
    """
    groups = folder / "sys/fs/cgroup"
    groups.mkdir(parents=True)
    (groups / "memory.max").write_text(str(memory))
    datamask.memory.ROOT = str(folder)
    inputs = folder / "inputs"
    inputs.mkdir()
    text = make(inputs) or str(inputs)
    config = CorpusConfig((text,))
    attempted(lambda: inspect_inputs(config), f"inspecting {name}")
    word, corpus = attempted(lambda: open_corpus(config), f"opening {name}")
    if expected not in (EITHER, word):
        raise Finding(f"{name}: expected to be {expected}, was {word}")
    if corpus is not None:
        check_same(corpus)
        held = corpus.metadata.nbytes + corpus.ids.nbytes
        if held > memory // 4:
            raise Finding(f"{name}: holds {held:,} bytes beside the features, more than a quarter of {memory:,}")
        _use(name, corpus, folder, text)
    return word


def _use(name: str, corpus, folder: Path, text: str) -> None:
    """Two selections of an accepted corpus through the command line, and everything that is exported."""
    for setting in ("relaxed", "greedy") if len(corpus) < 1000 else ("relaxed",):
        words = materials.select_words(setting, folder / "out.parquet", folder / "runs", Path(text))
        code, _ = command(*words, doing=f"selecting from {name}")
        if code:
            continue
        run_id = max(path.parent.name for path in (folder / "runs").glob("*/status.json"))
        for kind, target in (("--ids", "ids.csv"), ("--rows", "rows.parquet"), ("--mask", "masks")):
            code, _ = command(
                "runs",
                "export",
                run_id,
                "--runs_dir",
                folder / "runs",
                kind,
                folder / target,
                doing=f"exporting {kind} of {name}",
            )
            if code == 0 and kind == "--rows":
                pq.read_table(folder / target).validate(full=True)


FAMILIES = (Family("crafted", len(CASES), run, lambda number: CASES[number][0]),)
