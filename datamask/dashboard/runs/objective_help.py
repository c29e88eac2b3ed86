"""The help of the objective menu: what diversity means, and a picture of what four objectives select. Pure.

The picture is drawn by ``docs/draw_objectives.py`` and is part of the package.
"""

from __future__ import annotations

import base64
import functools
from pathlib import Path

from datamask.options import OPTIONS

PICTURE = Path(__file__).with_name("objectives.svg")

ALT = (
    "Four panels of one made-up corpus: a crowd in the middle, families of duplicates around it, a niche of good rows, "
    "outliers. Facility location selects one row of each family, the other objectives several"
)
CAPTION = "Example: what four objectives select at λ 0.5 (blue, 15 % of the rows)."


@functools.cache
def text() -> str:
    """The help as Markdown, with the picture inside."""
    source = base64.b64encode(PICTURE.read_bytes()).decode()
    return f"{OPTIONS['objective'].help}\n\n![{ALT}](data:image/svg+xml;base64,{source})\n\n{CAPTION}"
