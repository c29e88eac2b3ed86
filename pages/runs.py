"""Runs: all of them in a table, started and watched; their frontier; a lambda that moves; two to four side by side."""

from datamask.dashboard.ui import compare_section, frontier_section, runs_section, sections
from datamask.dashboard.ui.frame import frame

DRAWN = {
    "All runs": runs_section.show,
    "Frontier": frontier_section.show,
    "Live λ": frontier_section.live,
    "Compare": compare_section.show,
}

section = sections.current("Runs")
frame("Runs", section.question, view=section.name)

with sections.panel("Runs"):
    DRAWN[section.name]()
