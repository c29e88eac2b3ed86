"""Lab: what each objective sees, and sweeps over ratio and group size and on parts of the corpus."""

from datamask.dashboard.analyses.sweeps import section_panel as sweep_sections
from datamask.dashboard.analyses.toy import panel as toy_panel
from datamask.dashboard.frame import sections
from datamask.dashboard.frame.frame import frame

DRAWN = {
    "Objectives": toy_panel.show,
    "Ratio": sweep_sections.ratio,
    "Group size": sweep_sections.group,
    "Transfer": sweep_sections.transfer,
}

section = sections.current("Lab")
frame("Lab", section.question, view=section.name)

with sections.panel("Lab"):
    DRAWN[section.name]()
