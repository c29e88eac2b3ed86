"""Frontier: how do quality and diversity change with λ, the ratio, G or another setting?"""

from datamask.dashboard.frame.frame import frame
from datamask.pages.frontier import page

page.show(frame("Frontier", "How do quality and diversity change with λ, the ratio or another setting?"))
