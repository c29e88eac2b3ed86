"""An import that loses Python's race over `sys.modules` against another thread is made again."""

from __future__ import annotations

import builtins
import importlib
import sys
import threading
from pathlib import Path

import pytest

from datamask import import_race


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package of these files that can be imported, and forgets it after."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(builtins, "__import__", getattr(builtins.__import__, "__wrapped__", builtins.__import__))
    plain = getattr(importlib.import_module, "__wrapped__", importlib.import_module)
    monkeypatch.setattr(importlib, "import_module", plain)

    def write(**files: str) -> None:
        (tmp_path / "raced").mkdir()
        for name, text in {"__init__": "", **files}.items():
            (tmp_path / "raced" / f"{name}.py").write_text(text)
        importlib.invalidate_caches()

    yield write
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.join()
    for name in [name for name in sys.modules if name.partition(".")[0] == "raced"]:
        del sys.modules[name]


AWAY = """
import sys, threading
package = sys.modules.pop("raced")
threading.Timer(0.05, sys.modules.__setitem__, ("raced", package)).start()
"""
"""A submodule that takes its package away as another thread does that ends loading it, for a while one can see."""


def test_python_takes_a_module_out_and_fails_an_import_meanwhile(package):
    """When this fails, Python has mended it: `import_race` can go for the versions that have."""
    loading = Path(importlib.__file__).with_name("_bootstrap.py").read_text(encoding="utf-8")
    assert "sys.modules.pop(spec.name)" in loading
    package(child=AWAY)
    with pytest.raises(KeyError, match="raced"):
        import raced.child  # noqa: F401


@pytest.mark.parametrize("statement", ["import raced.child", "from raced import child", "from raced.child import sys"])
def test_an_import_that_lost_its_package_is_made_again(package, statement):
    package(child=AWAY)
    import_race.guard()
    exec(statement, {})
    assert sys.modules["raced"].child is sys.modules["raced.child"]


def test_so_is_one_by_name(package):
    package(child=AWAY)
    import_race.guard()
    assert importlib.import_module("raced.child") is sys.modules["raced"].child


def test_a_package_that_is_away_before_its_submodule_is_loaded(package, tmp_path):
    package(
        __init__="""
import sys, threading, types
class Parent(types.ModuleType):
    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "inner" and not hasattr(self, "once"):
            self.once = True
            away = sys.modules.pop("raced.inner")
            threading.Timer(0.05, sys.modules.__setitem__, ("raced.inner", away)).start()
sys.modules[__name__].__class__ = Parent
"""
    )
    inner = tmp_path / "raced" / "inner"
    inner.mkdir()
    (inner / "__init__.py").write_text("loaded = []")
    (inner / "leaf.py").write_text("import raced.inner\nraced.inner.loaded.append(1)")
    import_race.guard()
    import raced.inner.leaf

    assert raced.inner.leaf is sys.modules["raced.inner.leaf"] and raced.inner.loaded == [1]


def test_an_error_of_the_module_itself_is_not_asked_twice(package):
    package(
        child="import builtins\nbuiltins.asked = getattr(builtins, 'asked', 0) + 1\n{}['raced']",
        nested="import importlib, raced.counted\nimportlib.import_module('raced.child')",
        counted="",
    )
    import_race.guard()
    try:
        for name, times in (("child", 1), ("nested", 2)):
            with pytest.raises(KeyError, match="raced"):
                importlib.import_module(f"raced.{name}")
            assert builtins.asked == times
    finally:
        del builtins.asked


def test_a_package_that_stays_away_is_loaded_anew_and_says_why(package, monkeypatch):
    monkeypatch.setattr(import_race, "BACK_SECONDS", 0.05)
    package(
        __init__="import sys\nif hasattr(sys, 'raced_away'): raise ImportError('no such library')",
        child="import sys\nsys.raced_away = sys.modules.pop('raced')",
    )
    import_race.guard()
    try:
        with pytest.raises(ImportError, match="no such library"):
            import raced.child  # noqa: F401
    finally:
        del sys.raced_away


def test_guarding_twice_wraps_once(package):
    import_race.guard()
    guarded = builtins.__import__, importlib.import_module
    import_race.guard()
    assert guarded == (builtins.__import__, importlib.import_module)


def test_many_threads_import_a_package_and_its_parts(package):
    package(__init__="from . import a, b", **dict.fromkeys("abcdef", "x = [str(i) for i in range(99)]"))
    import_race.guard()
    before, failed, gate = sys.getswitchinterval(), [], threading.Barrier(3)

    def load(names):
        gate.wait()
        try:
            for name in names:
                importlib.import_module(name)
        except BaseException as error:
            failed.append(error)

    sys.setswitchinterval(1e-6)
    try:
        for _ in range(30):
            for name in [name for name in sys.modules if name.partition(".")[0] == "raced"]:
                del sys.modules[name]
            parts = (["raced"], ["raced.c", "raced.d"], ["raced.e", "raced.f"])
            threads = [threading.Thread(target=load, args=(names,)) for names in parts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert not failed and all(hasattr(sys.modules["raced"], name) for name in "abcdef")
    finally:
        sys.setswitchinterval(before)
