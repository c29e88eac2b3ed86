"""Runs: all of them in a table, started and watched."""

from datamask.dashboard.frame.frame import frame
from datamask.pages.runs import page

page.show(frame("Runs", "Which runs exist, and how good are they?"))
