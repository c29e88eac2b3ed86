"""The parts of one row's score as bars, in HTML: a chart of a library takes the browser longer than the whole page."""

from __future__ import annotations

import numpy as np
import pandas as pd

from datamask.analyses.explanation.tables import AGAINST, FOR, TOTAL
from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.figures import cut, plain, records
from datamask.dashboard.drawing.palette import DARK, LIGHT

INK = {
    kind: f"color: light-dark({getattr(LIGHT, role)}, {getattr(DARK, role)})"
    for kind, role in ((FOR, "accent"), (AGAINST, "best"), (TOTAL, "random"))
}

STYLE = """<style>
.why {width: 100%; border-collapse: collapse; font-size: 13px; line-height: 22px; white-space: nowrap}
.why :is(caption, th, td) {border: 0; padding: 0; font-weight: normal; color: inherit; text-align: right}
.why caption {text-align: left}
.why td:first-of-type {width: 100%}
.why caption i {display: inline-block; width: 10px; height: 10px; margin-right: 5px}
.why span {margin-right: 12px}
.why div {position: relative; height: 22px; margin: 0 8px}
.why div > * {position: absolute; height: 100%}
.why i {background: currentColor}
.why div > i {height: 14px; margin-top: 4px; min-width: 1px}
.why b {border-left: 1px dashed}
</style>"""


def waterfall(table: pd.DataFrame, alt: str) -> str:
    """Bars that begin where the one above ends; the dashed line at 0 is the threshold.

    Args:
        table: of `tables.waterfall`. alt: what a screen reader calls it by.
    """
    low, high = (float(end(table[["start", "end"]].to_numpy())) for end in (np.min, np.max))
    scale = 100 / max(high - low, 1e-9)
    legend = "".join(f'<span><i style="{ink}"></i>{kind}</span>' for kind, ink in INK.items())
    lines = "".join(
        f'<tr title="{plain(row.part)}: adds {words.signed(row.amount, 3)}, then at {words.signed(row.end, 3)}">'
        f'<th scope="row">{cut(row.part, 120)}</th><td><div><b style="left: {-scale * low:.2f}%"></b>'
        f'<i style="left: {scale * (min(row.start, row.end) - low):.2f}%; width: {scale * abs(row.amount):.2f}%; '
        f'{INK[row.kind]}"></i></div></td><td>{words.signed(row.amount, 2)}</td></tr>'
        for row in records(table)
    )
    return f'{STYLE}<table class="why" aria-label="{plain(alt)}"><caption>{legend}</caption>{lines}</table>'
