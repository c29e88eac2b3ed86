"""Evidence: what is a selection good for? Methods and runs judged by what they were not made from."""

from datamask.dashboard.frame.frame import frame
from datamask.pages.evidence import page

current = frame("Evidence", "Which method is better than random, and do runs hold by other measures?")
page.show(current)
