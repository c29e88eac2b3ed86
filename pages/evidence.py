"""Evidence: what is a selection good for? Lambdas and runs judged by what they were not made from."""

from datamask.dashboard.ui import evidence_sections, sections
from datamask.dashboard.ui.frame import frame

DRAWN = {
    "Which λ": evidence_sections.which_lambda,
    "Scoreboard": evidence_sections.scoreboard,
    "Agreement": evidence_sections.agreement,
    "Downstream results": evidence_sections.downstream,
}

section = sections.current("Evidence")
frame("Evidence", section.question, view=section.name)

with sections.panel("Evidence"):
    DRAWN[section.name]()
