"""Compare: how do two to four runs differ?"""

from datamask.dashboard.frame.frame import frame
from datamask.pages.compare import page

page.show(frame("Compare", "How do runs differ?"))
