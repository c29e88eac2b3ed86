"""Runs: all of them in a table, started and watched; their frontier; sweeps; two to four side by side."""

from datamask.analyses.frontier import section_panel as frontier_section
from datamask.analyses.sweeps import section_panel as sweep_section
from datamask.dashboard.frame import sections
from datamask.dashboard.frame.frame import frame
from datamask.pages.runs import compare_panel as compare_section
from datamask.pages.runs import section_panel as runs_section

section = sections.current("Runs")
current = frame("Runs", section.question, view=section.name)
DRAWN = {
    "All runs": lambda: runs_section.show(current),
    "Frontier": lambda: frontier_section.show(current),
    "Sweep": lambda: sweep_section.show(current),
    "Compare": lambda: compare_section.show(current),
}

with sections.panel("Runs"):
    DRAWN[section.name]()
