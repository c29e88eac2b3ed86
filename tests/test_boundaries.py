"""The direction of imports: lower rooms never import higher ones, and looking at runs loads no torch.

The table below is the map of the house (CONTRIBUTING.md draws it). A lazy import, inside a function, is allowed where
`LAZY` says so: that is how light rooms call heavy ones without loading them.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import datamask

ROOT = Path(datamask.__file__).parents[1]

BOTTOM = {
    "errors",
    "ablation",
    "process",
    "catalogue",
    "compiling",
    "config",
    "endings",
    "evaluation.result",
    "quotas",
    "files",
    "import_race",
    "measured",
    "memory",
    "options",
    "parquet",
    "parquet_pages",
    "places",
    "polling",
    "repeat_counts",
    "schemas",
    "server_note",
    "storage",
    "storage.address",
    "tables",
}
LEARN = {"objectives", "learning"}
RUNS = {"runs", "runs.run_queue", "runs.applying"}
WORK = {"work"}
READERS = {"corpus.readers"}
DOORS = ("drawing", "server", "data", "runs", "map", "tradeoff", "linked", "workspace")
"""Folders of the dashboard that features share, lower ones first. What they compute knows no streamlit."""

PLAIN = {f"dashboard.{name}" for name in DOORS} | {"analyses"}

GROUND = BOTTOM | WORK | READERS | RUNS | {f"dashboard.{name}" for name in DOORS} | {"corpus", "dashboard.shell"}
MAP = GROUND | {"dashboard.map.panels"}
LINKED = MAP | {"dashboard.linked.panels"}
WORKSPACE = LINKED | {"dashboard.workspace.panels"}
FRAME = WORKSPACE | {"dashboard.frame"}
PANELS = FRAME | {"dashboard.data.panels", "dashboard.runs.panels", "analyses"}


def _door(name: str, *besides: str) -> set[str]:
    """What a door may import that knows no streamlit: rows and runs, and these doors."""
    return BOTTOM | WORK | READERS | {"corpus", "runs", *(f"dashboard.{below}" for below in besides)}


MAY_IMPORT: dict[str, set[str]] = {
    "": BOTTOM,
    "errors": set(),
    "polling": {"errors"},
    "storage.address": {"errors"},
    "storage": {"errors", "polling", "endings", "storage.address"},
    "options": {"errors", "storage.address"},
    "catalogue": {"errors", "options"},
    "compiling": set(),
    "process": set(),
    "import_race": set(),
    "memory": set(),
    "endings": {"polling", "process"},
    "config": {"errors", "options", "catalogue"},
    "ablation": {"errors", "options", "catalogue", "config"},
    "files": {"errors", "storage.address"},
    "places": {"errors", "work"},
    "schemas": set(),
    "measured": {"schemas"},
    "evaluation.result": {"schemas", "measured"},
    "parquet": {"errors", "polling", "parquet_pages", "storage", "storage.address", "work"},
    "parquet_pages": set(),
    "tables": {"errors", "files", "parquet"},
    "server_note": {"errors", "files", "process"},
    "quotas": {"errors", "config"},
    "repeat_counts": {"errors", "catalogue", "config"},
    "work": {"errors", "polling", "memory", "process", "endings", "files"},
    "objectives": BOTTOM,
    "learning": BOTTOM | WORK | {"objectives"},
    "testing": BOTTOM | {"objectives"},
    "corpus.readers": BOTTOM,
    "corpus": BOTTOM | WORK | READERS,
    "evaluation": BOTTOM | WORK | LEARN | READERS | {"corpus"},
    "api": BOTTOM | WORK | LEARN | {"corpus", "evaluation"},
    "recipes": BOTTOM | WORK | READERS | {"corpus"},
    "blocks": BOTTOM | WORK | LEARN | READERS | {"corpus", "evaluation"},
    "cluster": BOTTOM | WORK | {"blocks"},
    "runs": BOTTOM | WORK | READERS,
    "runs.mapping": BOTTOM | WORK | READERS | {"corpus", "runs"},
    "runs.recipe": BOTTOM | WORK | READERS | {"corpus", "recipes", "runs", "runs.mapping"},
    "runs.applying": BOTTOM | WORK | READERS | {"corpus", "recipes", "runs"},
    "runs.execute": BOTTOM
    | WORK
    | LEARN
    | READERS
    | {"corpus", "evaluation", "runs", "recipes", "runs.mapping", "runs.recipe"},
    "runs.run_queue": BOTTOM | WORK | {"runs"},
    "runs.sweep": BOTTOM | WORK | LEARN | RUNS | {"corpus", "evaluation", "runs.execute", "runs.mapping"},
    "cli": BOTTOM | WORK | RUNS | {"recipes"},
    "dashboard": set(),
    "dashboard.drawing": BOTTOM | WORK,
    "dashboard.server": BOTTOM,
    "dashboard.map": _door("map", "drawing"),
    "dashboard.data": _door("data", "drawing", "map", "server"),
    "dashboard.runs": _door("runs", "drawing", "data"),
    "dashboard.tradeoff": _door("tradeoff", "drawing", "map", "runs"),
    "dashboard.linked": _door("linked", "drawing", "map"),
    "dashboard.workspace": _door("workspace", "drawing", "runs", "tradeoff"),
    "dashboard.shell": GROUND - {"dashboard.map", "dashboard.linked", "dashboard.tradeoff", "dashboard.workspace"},
    "dashboard.data.panels": GROUND,
    "dashboard.runs.panels": GROUND,
    "dashboard.map.panels": GROUND,
    "dashboard.linked.panels": MAP,
    "dashboard.workspace.panels": LINKED,
    "dashboard.frame": WORKSPACE,
    "analyses": _door("drawing", "drawing", *DOORS) | {"runs.applying"},
    "analyses.compute": BOTTOM | WORK | LEARN | READERS | {"corpus", "evaluation", "runs", "runs.mapping"},
    "analyses.command": BOTTOM | WORK | {"runs", "cli"},
    "analyses.panels": PANELS,
    "page_bodies": PANELS | {"analyses.panels"},
    "app": PANELS | {"analyses.panels", "page_bodies"},
    "sample_data": BOTTOM | {"ablation", "corpus", "work"},
}
"""Room -> the other rooms it may import at its top. The room of a module is the longest of these names it begins with
(``runs`` is the store and its siblings; see `ALIASES` for the rest)."""

LAZY: dict[str, set[str]] = {
    "sample_data": {"runs", "runs.execute", "runs.run_queue", "analyses.compute", *PLAIN},
    "": {"api"},
    "api": {"runs.sweep"},
    "runs": {"recipes", "runs.recipe"},
    "runs.recipe": {"evaluation"},
    "runs.run_queue": {"objectives", "runs.execute"},
    "cli": {
        "blocks",
        "cluster",
        "corpus",
        "dashboard.shell",
        "evaluation",
        "learning",
        "objectives",
        "testing",
        "runs.execute",
        "runs.recipe",
        "runs.sweep",
    },
    "dashboard.data": {"evaluation"},
    "dashboard.tradeoff": {"evaluation", "runs.run_queue"},
    "dashboard.linked": {"evaluation"},
    "dashboard.workspace.panels": {"evaluation"},
    "analyses": {"analyses.compute", "evaluation", "runs.execute", "runs.run_queue", "runs.sweep"},
    "analyses.command": {"analyses", "analyses.compute", "corpus", "evaluation"},
}
"""Room -> what it may import inside functions besides."""

ALIASES = {
    **dict.fromkeys(
        (
            "runs.run_facts",
            "runs.imports",
            "runs.recording",
            "runs.whole",
            "runs.execution",
            "runs.stages",
        ),
        "runs.execute",
    ),
    "runs.forecast": "runs.applying",
    "runs.in_python": "runs.sweep",
    "runs.weights": "runs.recipe",
    "runs.attempt": "runs.run_queue",
    "runs.driver": "runs.run_queue",
    "__main__": "cli",
    "pages": "app",
    "dashboard.server.server": "dashboard.shell",
    **dict.fromkeys(("dashboard.map.canvas_map", "dashboard.map.scene"), "dashboard.map.panels"),
    **dict.fromkeys(("dashboard.linked.brushing", "dashboard.linked.columns"), "dashboard.linked.panels"),
    **dict.fromkeys(
        (f"dashboard.workspace.{name}" for name in ("workspace", "current", "files", "keeping", "rules")),
        "dashboard.workspace.panels",
    ),
}
"""Modules of another room than their folder's. In the folders of `THINGS` the panels are so by their name."""

THINGS = {
    "analyses": "analyses.panels",
    **{f"dashboard.{name}": f"dashboard.{name}.panels" for name in ("data", "runs", "map", "linked", "workspace")},
}
"""Room without streamlit -> the room of those of its modules that are called ``panel`` or ``..._panel``."""

STREAMLIT = {"dashboard.shell", "dashboard.frame", *THINGS.values(), "page_bodies", "app"}
"""Rooms that may import streamlit: whole folders by their name, and the panels of every thing by theirs."""

TORCH = {
    "objectives",
    "learning",
    "testing",
    "evaluation",
    "blocks",
    "cluster",
    "analyses.compute",
    "runs.execute",
    "runs.sweep",
    "api",
}
"""Rooms that load torch when they are imported; `corpus`, `cli` and `analyses` may inside functions."""

FORBIDDEN: dict[str, set[str]] = {
    **{room: {"streamlit", "ray"} for room in MAY_IMPORT if room not in STREAMLIT},
    "objectives": {"streamlit", "ray", "pandas"},
    "learning": {"streamlit", "ray", "pandas"},
    "cluster": {"streamlit"},
}
"""Room -> packages it may not import at all, lazily neither."""


@functools.cache
def room_of(module: str) -> str:
    """The room of ``datamask.<...>``, ``app``, ``pages.<...>`` or ``sample_data.<...>``."""
    if module.startswith("datamask.pages"):  # not the scripts of pages/, which call them
        return "page_bodies"
    name = module.removeprefix("datamask").removeprefix(".")
    known = [*MAY_IMPORT, *ALIASES]
    room = max((k for k in known if k == "" or name == k or name.startswith(f"{k}.")), key=len)
    room = ALIASES.get(room, room)
    if room == "analyses" and (part := {"compute", "command"} & set(name.split("."))):
        return f"analyses.{part.pop()}"
    return THINGS[room] if room in THINGS and name.endswith(("_panel", ".panel")) else room


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imports_of(source: str) -> tuple[tuple[str, bool], ...]:
    """Every imported module of a file, and whether it is imported lazily, inside a function; four tests ask."""
    return tuple(_imports_in(ast.parse(source)))


def _imports_in(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    inside = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(outer)
    }
    typing_only = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.If) and "TYPE_CHECKING" in ast.unparse(outer.test)
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        lazy = id(node) in inside
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where they lead; write the whole name"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                path = ROOT / whole.replace(".", "/")
                is_module = path.is_dir() or path.with_suffix(".py").is_file()
                yield (whole if is_module else node.module), lazy


def violations(module: str, source: str) -> list[str]:
    """What a file imports against the table, one sentence each."""
    room, found = room_of(module), []
    for imported, lazy in imports_of(source):
        package = imported.split(".")[0]
        if package == "datamask":
            target = room_of(imported)
            allowed = MAY_IMPORT[room] | {room, ""} | (LAZY.get(room, set()) if lazy else set())
            if target not in allowed:
                how = "lazily imports" if lazy else "imports"
                found.append(f"{module} (room {room!r}) {how} {imported} (room {target!r})")
        if package == "torch" and room not in TORCH and not (lazy and room in ("corpus", "cli", "analyses")):
            found.append(f"{module} imports torch")
        if package in FORBIDDEN.get(room, ()):
            found.append(f"{module} imports {package}")
    return found


def sources() -> list[Path]:
    files = [
        *(ROOT / "datamask").rglob("*.py"),
        *(ROOT / "pages").glob("*.py"),
        *(ROOT / "sample_data").glob("*.py"),
        *ROOT.glob("app.py"),
    ]
    return sorted(path for path in files if "built" not in path.parts)


def test_no_room_imports_a_higher_one():
    found = [line for path in sources() for line in violations(module_of(path), path.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


def folder_of(module: str) -> str:
    """The feature, page or door of a module, panels apart from the rest of a door; "" for what is below these."""
    parts, room = module.split("."), room_of(module)
    if room.startswith(("analyses", "page_bodies")) and len(parts) > 2:
        return ".".join(parts[:3])
    return room if room.startswith("dashboard.") else ""


def test_no_two_features_or_doors_import_each_other():
    arrows: dict[str, set[str]] = {}
    for path in sources():
        module = module_of(path)
        below = {folder_of(imported) for imported, _ in imports_of(path.read_text(encoding="utf-8"))}
        arrows.setdefault(folder_of(module), set()).update(below - {"", folder_of(module)})
    assert {"datamask.analyses.frontier", "datamask.pages.runs", "dashboard.shell"} <= set(arrows)
    # raises CycleError, which names the circle
    tuple(graphlib.TopologicalSorter(arrows).static_order())


def test_no_module_imports_itself_in_a_circle():
    """Imports inside functions count too: a circle is a circle, whoever begins it."""
    known = {module_of(path): path for path in sources()}
    arrows = {
        module: {imported for imported, _ in imports_of(path.read_text(encoding="utf-8")) if imported in known}
        - {module}
        for module, path in known.items()
    }
    assert len(arrows["datamask.runs.execute"]) > 5
    tuple(graphlib.TopologicalSorter(arrows).static_order())


def test_every_room_of_the_table_exists():
    rooms = {room_of(module_of(path)) for path in sources()}
    assert set(MAY_IMPORT) <= rooms
    assert len(sources()) > 50


@pytest.mark.parametrize(
    "module, source, expected",
    [
        ("datamask.config", "from datamask.files import replacing", 1),
        ("datamask.corpus.shards", "import datamask.runs.store", 1),
        ("datamask.work.cache", "from datamask.corpus import Corpus\nfrom datamask.config import CorpusConfig", 2),
        ("datamask.objectives.disf", "from datamask.work.cache import Cache", 1),
        ("datamask.objectives.disf", "from datamask.corpus import Corpus\nimport pandas", 2),
        ("datamask.learning.learner", "from datamask.runs import store", 1),
        ("datamask.runs.store", "import torch", 1),
        ("datamask.runs.writer", "from datamask.runs import execute", 1),
        ("datamask.runs.attempt", "from datamask.runs.execute import execute", 1),
        ("datamask.runs.attempt", "def f():\n    from datamask.runs.execute import execute", 0),
        ("datamask.dashboard.runs.cost", "def f():\n    import streamlit", 1),
        ("datamask.dashboard.runs.cost", "from datamask.dashboard.frame import frame", 1),
        ("datamask.dashboard.runs.cost", "def f():\n    from datamask.pages.runs.run_panel import show", 1),
        ("datamask.pages.runs.run_panel", "import streamlit\nfrom datamask.dashboard.runs import cost", 0),
        ("datamask.analyses.x.panel", "import streamlit\nfrom datamask.dashboard.frame import frame", 0),
        ("datamask.analyses.x.panel", "from datamask.pages.map import page", 1),
        ("datamask.analyses.x.tables", "from datamask.analyses.x.panel import show", 1),
        ("datamask.analyses.x.tables", "import streamlit", 1),
        ("datamask.analyses.x.panels", "import streamlit", 1),
        ("datamask.analyses.x.compute.flips", "import torch\nfrom datamask.learning.loop import poll", 0),
        ("datamask.analyses.x.compute.flips", "from datamask.dashboard.drawing.words import plain", 1),
        ("datamask.analyses.x.tables", "from datamask.analyses.x.compute import flips", 1),
        ("datamask.analyses.x.tables", "def f():\n    from datamask.analyses.x.compute import flips", 0),
        ("datamask.analyses.x.command", "from datamask.cli.common import DONE", 0),
        ("datamask.analyses.x.command", "from datamask.analyses.x.tables import rows", 1),
        ("datamask.dashboard.workspace.x", "from datamask.analyses.x.tables import rows", 1),
        ("datamask.dashboard.runs.x_panel", "from datamask.dashboard.frame import frame", 1),
        ("datamask.dashboard.drawing.words", "from datamask.dashboard.runs.cost import Cost", 1),
        ("datamask.dashboard.shell.x", "from datamask.dashboard.map.canvas_map import canvas_map", 1),
        ("datamask.dashboard.map.x", "from datamask.dashboard.linked.facets import Facet", 1),
        ("datamask.dashboard.map.preparing_panel", "from datamask.dashboard.linked.columns import rows", 1),
        ("datamask.dashboard.linked.x_panel", "from datamask.pages.runs.run_panel import show", 1),
        ("datamask.dashboard.frame.x", "from datamask.pages.runs.run_panel import show", 1),
        ("datamask.dashboard.runs.x_panel", "from datamask.pages.map.page import show", 1),
        ("datamask.cli", "from datamask.evaluation import score_selection", 1),
        ("datamask.cli.parser", "from datamask import dashboard", 1),
        ("pages.runs", "import streamlit\nfrom datamask.dashboard.frame import frame\nimport datamask.runs.execute", 1),
        ("datamask.corpus.x", "if TYPE_CHECKING:\n    import datamask.runs.store", 0),
    ],
)
def test_the_table_sees_what_it_should(module, source, expected):
    assert len(violations(module, source)) == expected


# -- the same in fresh interpreters, where an import of an import counts too ------------------------------------------


def loaded_by(modules: list[str]) -> set[str]:
    """Top-level packages, and rooms of datamask, that a fresh interpreter holds after importing `modules`."""
    code = (
        "import importlib, sys\nfor name in sys.argv[1:]:\n    importlib.import_module(name)\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *modules], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    names = done.stdout.split()
    return {name.split(".")[0] for name in names} | {room_of(n) for n in names if n.startswith("datamask.")}


def modules_in(room: str) -> list[str]:
    return [module for module in map(module_of, sources()) if room_of(module) == room and "__main__" not in module]


def test_importing_datamask_loads_next_to_nothing():
    assert not loaded_by(["datamask"]) & {"torch", "streamlit", "pandas", "pyarrow", "plotly", "numba", "sklearn"}


def test_keeping_results_knows_only_errors_and_files():
    loaded = loaded_by(modules_in("work"))
    assert "work" in loaded and not loaded & {"torch", "streamlit", "pandas", "pyarrow", "corpus", "runs", "config"}


def test_looking_at_runs_and_reading_the_command_line_load_no_torch():
    rooms = ("runs", "runs.run_queue", "cli", "analyses.command")
    modules = [m for room in rooms for m in modules_in(room) if room_of(m) != "runs.execute"]
    assert {"datamask.runs.store", "datamask.runs.run_queue", "datamask.cli"} <= set(modules)
    assert not loaded_by(modules) & {"torch", "streamlit", "numba", "learning", "objectives", "runs.execute"}


def test_recipes_load_no_torch():
    modules = [*modules_in("recipes"), *modules_in("runs.recipe")]
    assert {"datamask.recipes.scoring", "datamask.runs.recipe"} <= set(modules)
    assert not loaded_by(modules) & {"torch", "streamlit", "learning", "objectives", "runs.execute"}


def test_the_dashboard_without_its_panels_loads_neither_torch_nor_streamlit():
    modules = [module for room in sorted(PLAIN) for module in modules_in(room)]
    assert all(modules_in(room) for room in PLAIN)
    assert any(m.endswith(".tables") for m in modules) and any(m.endswith(".chart") for m in modules)
    assert not loaded_by(modules) & {"torch", "learning", "objectives", "runs.execute", *STREAMLIT, "streamlit"}


def test_the_panels_load_neither_torch_nor_scipy():
    modules = [module for room in sorted(STREAMLIT - {"app"}) for module in modules_in(room)]
    assert all(modules_in(room) for room in STREAMLIT) and any(m.endswith(".panel") for m in modules)
    assert not loaded_by(modules) & {"torch", "scipy", "learning", "objectives", "runs.execute"}


def test_objectives_and_learning_know_nothing_of_files():
    loaded = loaded_by([*modules_in("objectives"), *modules_in("learning")])
    assert "torch" in loaded
    assert not loaded & {"runs", "runs.execute", "runs.run_queue", "corpus", "pandas", "pyarrow", "streamlit", "cli"}
