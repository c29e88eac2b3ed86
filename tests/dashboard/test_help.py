"""Help opens on a "?" only: a button has none to hover over, and its tooltip would cover the control next to it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("pages", "datamask/dashboard", "datamask/analyses", "datamask/pages")
SCRIPTS = sorted([ROOT / "app.py", *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))])
BUTTONS = {"button", "download_button", "form_submit_button", "link_button", "page_link", "popover"}
"""Elements of Streamlit that show their help over themselves."""


def helped(source: str) -> list[str]:
    """The calls of buttons that are given a help text, with their lines."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in BUTTONS and any(keyword.arg == "help" for keyword in node.keywords):
            found.append(f"{name} in line {node.lineno}")
    return found


def test_no_button_has_a_help_text():
    assert len(SCRIPTS) > 100
    found = {str(path.relative_to(ROOT)): calls for path in SCRIPTS if (calls := helped(path.read_text()))}
    assert not found, f"say it in a caption, or in the help of a heading: {found}"


@pytest.mark.parametrize("call", ["st.button('a', help='b')", "with st.popover('a', help='b'): pass"])
def test_a_help_text_of_a_button_is_found(call):
    assert helped(call)
    assert not helped("st.slider('a', help='b'); st.button('a')")
