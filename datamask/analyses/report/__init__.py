"""A run as one HTML page to send: everything inside, no script, nothing fetched, light and dark, fit to print.

`report` puts it together from a run and, where it is open, its corpus: `sentence` says the result in words, `raster`
paints the map, `samples` picks the texts, `page` is the paper and the tables around them. Every text that did not come
from this package is escaped where it enters the page.
"""

from datamask.analyses.report.page import report
from datamask.analyses.report.sentence import sentence

__all__ = ["report", "sentence"]
