"""Pages whose figures are drawn on the server, drawn anew when the reader turns them dark or light."""

from __future__ import annotations

from datamask.dashboard.ui.components import component, nothing


def follow() -> None:
    """Draw the page anew whenever its theme changes: Streamlit alone leaves figures in their old colours.

    Call it last: it shows nothing, but a container leaves a gap for it.
    """
    component("theme", ("theme",))(key="theme", on_ground_change=nothing)
