"""Docstrings of the installed packages, read with `ast`: no package that is read is imported."""

from __future__ import annotations

import ast
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from datamask.errors import InputError, Stopped

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

SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "testing", "idlelib", "lib2to3", "site-packages"}
    | {"_vendor", "vendor", "vendored", "externals", "_external", "extern", "third_party", "_lib", "cloudpickle"}
    | {"array_api_compat", "array_api_extra"}
)
"""Tests, and copies of other packages, which have licenses of their own."""

SHORTEST = 120


def collect(
    *, progress: Callable[[float, str], None] | None = None, should_stop: Callable[[], bool] | None = None
) -> list[tuple[str, str, str]]:
    """Return every docstring of `SHORTEST` characters or more: (qualified name, source, text), names unique.

    Raises:
        InputError: none was found.
        Stopped: `should_stop` answered true.
    """
    files = python_files()
    total = sum(path.stat().st_size for _, _, path in files)
    texts: dict[str, tuple[str, str]] = {}
    done = 0
    for source, module, path in files:
        if should_stop is not None and should_stop():
            raise Stopped("stopped while reading docstrings")
        if progress is not None:
            progress(done / total, f"Reading docstrings: {source}")
        done += path.stat().st_size
        for name, text in docstrings(path, module):
            if len(text) >= SHORTEST:
                # a name defined twice, as in the two arms of an `if`, counts once
                texts.setdefault(name, (source, text))
    if not texts:
        raise InputError(
            "no docstrings were found: neither the standard library nor the packages of requirements.txt "
            "are installed as source files"
        )
    return [(name, source, text) for name, (source, text) in texts.items()]


def is_public(name: str) -> bool:
    """Return whether a qualified name ends without an underscore at its front; public names lie in private modules."""
    return not name.rpartition(".")[2].startswith("_")


def python_files() -> list[tuple[str, str, Path]]:
    """Return (source, module, file) of every module of the standard library and of `PACKAGES`, in a fixed order."""
    return [(source, _module_name(top, path), path) for source, top in _roots() for path in _python_files(top)]


def docstrings(path: Path, module: str) -> Iterator[tuple[str, str]]:
    """Yield (qualified name, docstring) of a module and its classes and functions; none if the file does not parse."""
    source = path.read_bytes()
    if b'"""' not in source and b"'''" not in source:
        return
    tree = parsed(path)
    if tree is not None:
        yield from _walk(tree, module)


def parsed(path: Path) -> ast.Module | None:
    """Return the syntax tree of a file; None where it does not parse.

    Templates and files of another Python version lie among the packages.
    """
    try:
        with warnings.catch_warnings():
            # a stray backslash in somebody's string is not this program's news
            warnings.simplefilter("ignore")
            return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return None


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
