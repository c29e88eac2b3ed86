"""Runs: all of them in a table, started and watched; their frontier; a lambda that moves; two to four side by side."""

from datamask.dashboard.analyses.comparison import section_panel as compare_section
from datamask.dashboard.analyses.frontier import section_panel as frontier_section
from datamask.dashboard.frame import sections
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.runs import section_panel as runs_section

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
