"""Build the sample corpus: the docstrings of the packages this project runs on, scored and embedded.

Every machine that can run datamask already has these texts, so nothing is downloaded and nothing is shipped. The
sources are parsed with `ast`; no package that is read is imported. What comes out: README.md beside this file.

    python sample_data/build.py            the sample corpus, into sample_data/built/
    python sample_data/build.py --tiny     the two committed shards of sample_data/tiny/: numbers and names, no texts
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.metadata
import json
import platform
import sys
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    # run as a script, the folder on the path is this one and not the project's
    sys.path.insert(0, str(ROOT))

from datamask.corpus.preparation import Progress, Stop, nonzero, prepared_columns  # noqa: E402
from datamask.corpus.text_features import TextFeatures  # noqa: E402
from datamask.errors import DatamaskError, InputError, Stopped  # noqa: E402
from datamask.files import replacing_folder, write_text  # noqa: E402

STANDARD_LIBRARY = "python"
PACKAGES = {
    "altair": "altair",
    "networkx": "networkx",
    "numba": "numba",
    "numpy": "numpy",
    "pandas": "pandas",
    "plotly": "plotly",
    "pyarrow": "pyarrow",
    "scikit-learn": "sklearn",
    "scipy": "scipy",
    "streamlit": "streamlit",
    "sympy": "sympy",
    "torch": "torch",
    "umap-learn": "umap",
}
"""Distribution -> import name. Only what requirements.txt brings: development tools do not change the corpus."""

SKIPPED_FOLDERS = frozenset({"test", "tests", "testing", "_vendor", "idlelib", "lib2to3", "site-packages"})
SHORTEST = 120
LIMIT = 18_000
DIM = 256
SHARDS = 4
SEED = 0
FORMAT = 1
"""Raised whenever the same packages would give another corpus."""

MANIFEST = "_manifest.json"
"""Written last; the underscore keeps readers of whole folders, such as pyarrow, from taking it for a shard."""
BUILT = Path(__file__).resolve().parent / "built"
TINY = Path(__file__).resolve().parent / "tiny"
TINY_ROWS, TINY_DIM, TINY_SHARDS = 1_200, 64, 2


def build(
    output_dir: str | Path,
    *,
    progress: Progress | None = None,
    should_stop: Stop | None = None,
    limit: int | None = None,
    dim: int = DIM,
    shards: int = SHARDS,
    texts: bool = True,
) -> list[Path]:
    """Build the sample corpus in `output_dir`, whole or not at all, replacing what was there.

    The same packages give the same bytes on the same machine.

    Args:
        output_dir: the folder to make.
        progress: called with a share 0..1 and a sentence, some 200 times.
        should_stop: polled at least every file and every 256 texts.
        limit: at most so many texts, the uniform sample with the smallest hashes of their names (None: `LIMIT`).
        dim: feature dimensions. shards: parquet files. texts: whether the texts go in.

    Returns:
        The shards, in order.

    Raises:
        InputError: no docstrings were found.
        StoreError: the folder cannot be written.
        Stopped: `should_stop` answered true; nothing is written.
    """
    report = _sparing(progress)
    pool = collect(progress=lambda share, what: report(0.65 * share, what), should_stop=should_stop)
    chosen = sorted(pool, key=lambda row: hashlib.blake2b(row[0].encode(), digest_size=8).digest())
    chosen = chosen[: LIMIT if limit is None else limit]
    names, sources, bodies = ([row[k] for row in chosen] for k in range(3))
    features = TextFeatures(dim, SEED).fit(
        bodies, should_stop=should_stop, progress=lambda share, what: report(0.65 + 0.2 * share, what)
    )
    columns = {"chunk_id": pa.array(names)}
    made = prepared_columns(
        bodies, features, should_stop=should_stop, progress=lambda share, what: report(0.85 + 0.12 * share, what)
    )
    columns |= {name: made[name] for name in ("quality_score", "feature_arr")}
    if texts:
        columns["text"] = pa.array(bodies)
    columns |= {"source": pa.array(sources).dictionary_encode(), "n_tokens": made["n_tokens"]}
    table = pa.table(columns).filter(pa.array(nonzero(made["feature_arr"]))).combine_chunks()
    report(0.98, f"Writing {table.num_rows:,} texts")
    facts = _expected(limit, dim, shards, texts) | {
        "found": len(pool),
        "distinct": len({row[2] for row in pool}),
        "rows": table.num_rows,
        "sources": dict(sorted(Counter(table["source"].to_pylist()).items())),
        "explained": round(features.explained, 4),
    }
    files = [f"sample-{i}-of-{shards}.parquet" for i in range(1, shards + 1)]
    edges = np.linspace(0, table.num_rows, shards + 1).astype(int)
    with replacing_folder(output_dir) as folder:
        for name, start, end in zip(files, edges, edges[1:]):
            pq.write_table(table.slice(start, end - start), folder / name, compression="zstd")
        write_text(folder / MANIFEST, json.dumps(facts, indent=1) + "\n")
    report(1.0, f"The sample corpus is ready: {table.num_rows:,} texts")
    return [Path(output_dir) / name for name in files]


def built(output_dir: str | Path = BUILT) -> list[Path]:
    """The shards of a finished build in `output_dir`, in order; empty if there is none."""
    folder = Path(output_dir)
    return sorted(folder.glob("*.parquet")) if (folder / MANIFEST).is_file() else []


def stale(output_dir: str | Path = BUILT) -> bool:
    """Whether another version of Python, of a package or of this builder made the corpus in `output_dir`.

    A stale corpus works; rebuilding it changes its fingerprint, so that earlier runs no longer compare with new ones.
    """
    try:
        facts = json.loads((Path(output_dir) / MANIFEST).read_text())
        asked = [facts.get(key) for key in ("limit", "dim", "shards", "texts")]
    except (OSError, ValueError, AttributeError):
        return True
    return any(facts.get(key) != value for key, value in _expected(*asked).items())


def collect(*, progress: Progress | None = None, should_stop: Stop | None = None) -> list[tuple[str, str, str]]:
    """Every docstring of `SHORTEST` characters or more: (qualified name, source, text), names unique.

    Raises:
        InputError: none was found.
        Stopped: `should_stop` answered true.
    """
    files = [(source, top, path) for source, top in _roots() for path in _python_files(top)]
    total = sum(path.stat().st_size for _, _, path in files)
    texts: dict[str, tuple[str, str]] = {}
    done = 0
    for source, top, path in files:
        if should_stop is not None and should_stop():
            raise Stopped("stopped while reading docstrings")
        if progress is not None:
            progress(done / total, f"Reading docstrings: {source}")
        done += path.stat().st_size
        for name, text in docstrings(path, _module_name(top, path)):
            if len(text) >= SHORTEST:
                # a name defined twice, as in the two arms of an `if`, counts once
                texts.setdefault(name, (source, text))
    if not texts:
        raise InputError(
            "no docstrings were found: neither the standard library nor the packages of requirements.txt "
            "are installed as source files; use texts of your own, with `python -m datamask prepare`"
        )
    return [(name, source, text) for name, (source, text) in texts.items()]


def docstrings(path: Path, module: str) -> Iterator[tuple[str, str]]:
    """(qualified name, docstring) of a module and its classes and functions; none if the file does not parse."""
    source = path.read_bytes()
    if b'"""' not in source and b"'''" not in source:
        return
    try:
        with warnings.catch_warnings():
            # a stray backslash in somebody's string is not this program's news
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        # templates and files of another Python version lie among the packages; they have no docstrings for this one
        return
    yield from _walk(tree, module)


def _walk(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        text = ast.get_docstring(node)
        if text:
            # a lone surrogate, written as an escape, has no UTF-8
            yield name, text.encode("utf-8", "replace").decode("utf-8")
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _walk(child, f"{name}.{child.name}")
        elif isinstance(child, (ast.If, ast.Try, ast.With)):
            yield from _walk(child, name)


def _roots() -> list[tuple[str, Path]]:
    """(source, file or folder) of every package to read, in a fixed order. Finding them imports nothing."""
    library = Path(sysconfig.get_paths()["stdlib"])
    roots = [
        (STANDARD_LIBRARY, path)
        for name in sorted(sys.stdlib_module_names)
        for path in (library / f"{name}.py", library / name)
        if path.exists()
    ]
    for source, package in PACKAGES.items():
        spec = PathFinder.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            roots += [(source, Path(folder)) for folder in list(spec.submodule_search_locations)[:1]]
    return roots


def _python_files(top: Path) -> list[Path]:
    """The modules under `top`, sorted; what no import could name (hidden folders, templates) is left out."""
    if top.is_file():
        return [top]
    return sorted(
        path
        for path in top.rglob("*.py")
        if path.is_file()
        and all(map(str.isidentifier, path.relative_to(top).with_suffix("").parts))
        and not SKIPPED_FOLDERS.intersection(path.relative_to(top.parent).parts[:-1])
    )


def _module_name(top: Path, path: Path) -> str:
    parts = list(path.relative_to(top.parent).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _expected(limit: int | None, dim: int, shards: int, texts: bool) -> dict:
    versions: dict[str, str | None] = {}
    for source in PACKAGES:
        try:
            versions[source] = importlib.metadata.version(source)
        except importlib.metadata.PackageNotFoundError:
            versions[source] = None
    return {
        "format": FORMAT,
        "limit": limit,
        "dim": dim,
        "shards": shards,
        "texts": texts,
        "python": platform.python_version(),
        "packages": versions,
    }


def _sparing(progress: Progress | None) -> Progress:
    """`progress`, called when the sentence changes or the share has moved by half a percent: there are 6 000 files."""
    last = (-1.0, "")

    def report(share: float, what: str) -> None:
        nonlocal last
        if progress is not None and (share - last[0] >= 0.005 or what != last[1]):
            last = share, what
            progress(share, what)

    return report


def main(argv: list[str] | None = None) -> int:
    """The command line. Returns 0, or 2 with a sentence on stderr."""
    parser = argparse.ArgumentParser(description="Build the sample corpus from installed docstrings.")
    parser.add_argument("--output", type=Path, help=f"folder to make (default {BUILT}, or {TINY} with --tiny)")
    parser.add_argument("--limit", type=int, help=f"at most so many texts (default {LIMIT})")
    parser.add_argument("--tiny", action="store_true", help="two small shards of numbers and names, without texts")
    parser.add_argument("--force", action="store_true", help="build again even if an up-to-date corpus is there")
    options = parser.parse_args(argv)
    output = options.output or (TINY if options.tiny else BUILT)
    if built(output) and not stale(output) and not (options.force or options.limit):
        print(f"{output} is up to date; --force builds it again")
        return 0

    def show(share: float, what: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{share:4.0%} {what:<70}", end="" if share < 1 else "\n", file=sys.stderr, flush=True)

    shape = {"limit": TINY_ROWS, "dim": TINY_DIM, "shards": TINY_SHARDS, "texts": False} if options.tiny else {}
    try:
        files = build(output, progress=show, **(shape | ({"limit": options.limit} if options.limit else {})))
    except DatamaskError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(map(str, files)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
