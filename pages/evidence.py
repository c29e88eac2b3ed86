"""Evidence: what is a selection good for? Methods and runs judged by what they were not made from."""

from datamask.dashboard.frame import sections
from datamask.dashboard.frame.frame import frame
from datamask.pages.evidence import page as evidence_panel

DRAWN = {
    "What helps": evidence_panel.ablation,
    "Independent metrics": evidence_panel.scoreboard,
    "Stability": evidence_panel.agreement,
}

section = sections.current("Evidence")
frame("Evidence", section.question, view=section.name)

with sections.panel("Evidence"):
    DRAWN[section.name]()
