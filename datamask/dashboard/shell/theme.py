"""What the theme's file has no option for, pages drawn anew when the reader turns them dark or light, steps of Back."""

from __future__ import annotations

from datamask.dashboard.shell import session
from datamask.dashboard.shell.components import component, nothing

READABLE = """<style>
:is([role="radio"][aria-checked="true"], [role="toolbar"] [aria-pressed="true"]):not(:disabled) p,
[data-testid="stSliderThumbValue"] p {color: light-dark(#005F95, #6CB8EA)}
</style>"""
"""The letters of what is pressed, and of a slider's value.

Streamlit writes them in the theme's first colour on a tint of it, and what stands on a button of that colour in white.
On a dark page no colour is readable both ways: at 4.5 to 1 against white it has at most 4.4 on its tint, even on black.
So the first colour is that of the buttons, and these letters are named by what they are, as a screen reader does: role
and state. Pages work without it.
"""


def follow() -> None:
    """Draw the page again whenever it turns dark or light: Streamlit alone leaves figures in their old colors.

    The same script makes only another page, run or corpus a step of Back. It shows nothing.
    """
    component("theme", ("steps", "theme"))(key="theme", data={"dark": session.dark()}, on_turned_change=nothing)
