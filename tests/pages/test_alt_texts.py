"""Whoever cannot see a picture is told what it is: no chart, map, table or image without an alt text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {
    "plotly_chart",
    "plot",
    "vega_lite_chart",
    "altair_chart",
    "line_chart",
    "dataframe",
    "data_editor",
    "image",
    "canvas_map",
}
FILES = [
    path.relative_to(ROOT).as_posix()
    for path in [
        ROOT / "app.py",
        *(path for folder in ("", "datamask/") for path in sorted((ROOT / folder / "pages").rglob("*.py"))),
        *(path for folder in ("dashboard", "analyses") for path in sorted((ROOT / "datamask" / folder).rglob("*.py"))),
    ]
    if path.parent.name == "pages" or "import streamlit as st" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("file", FILES)
def test_every_picture_has_an_alt_text(file):
    for call in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call):
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            told = any(word.arg == "alt" for word in call.keywords)
            assert told or name not in PICTURES, f"line {call.lineno}: {name}"


def test_it_looks_at_all_of_them():
    assert len(FILES) > 70
