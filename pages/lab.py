"""Lab: what one learns from many runs at once: over the select ratio, over the group size, on parts of the corpus."""

from datamask.dashboard.ui import sections, sweep_sections
from datamask.dashboard.ui.frame import frame

DRAWN = {"Ratio": sweep_sections.ratio, "Group size": sweep_sections.group, "Transfer": sweep_sections.transfer}

section = sections.current("Lab")
frame("Lab", section.question, view=section.name)

with sections.panel("Lab"):
    DRAWN[section.name]()
