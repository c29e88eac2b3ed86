"""Charts of where a selection under- or over-represents groups."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from plotly import graph_objects as go

from datamask.dashboard.drawing import figures, palette, words
from datamask.dashboard.linked.groups import OVER, UNDER, Heat


def first_groups(table: pd.DataFrame, limit: int = 14) -> pd.DataFrame:
    """The groups worth a look, from the most under- to the most over-represented; all where there are few.

    Half of the places belong to each side, as far as it has groups; what is left goes to the farthest others.
    """
    if len(table) <= limit:
        return table.sort_values("share", kind="stable")
    sides = [table[table["verdict"] == verdict].head(limit // 2).index for verdict in (UNDER, OVER)]
    kept = sides[0].append(sides[1])
    kept = kept.append(table.index.difference(kept, sort=True)[: limit - len(kept)])
    return table.loc[kept].sort_values("share", kind="stable")


def heat_map(heat: Heat, *, height: int = 330) -> go.Figure:
    """Selected share over the regions' mean quality (up) and mean similarity to neighbours (across).

    A press on a cell selects it: its number is its place in the heat's table.

    Args:
        heat: what to draw.
        height: of the whole figure, in pixels.
    """
    tone = palette.THEMED
    table = heat.table
    top = max(float(table["share"].max()), heat.ratio + 0.25 * (1 - heat.ratio))
    drawn = figures.figure(
        _steps(
            [label.partition(" to ")[0] for label in heat.crowding],
            "similarity to neighbors, at least<br>(crowded on the right)",
        ),
        _steps(heat.quality, "quality"),
        height=height,
    )
    # bars, because the cells of a heat-map of Plotly's cannot be pressed
    figures.add(
        drawn,
        table["crowding"],
        [1.0] * len(table),
        "",
        _hover(heat),
        go.Bar,
        base=table["quality"] - 0.5,
        width=1.0,
        marker={
            "color": 100 * table["share"],
            "cmin": 0,
            "cmax": 100 * top,
            "colorscale": list(zip((0.0, heat.ratio / top, 1.0), palette.THEMED_SHARES, strict=True)),
            "colorbar": {
                "title": {"text": "selected"},
                "thickness": 14,
                "len": 0.8,
                "outlinewidth": 0,
                "nticks": 6,
                **figures.PERCENT,
            },
            "line": {"color": tone.ground, "width": 2},
        },
        text=[words.percent(share) for share in table["share"]],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        # what is pressed opens its texts; nothing turns pale
        selected={"marker": {"opacity": 1}},
        unselected={"marker": {"opacity": 1}},
    )
    drawn.update_layout(clickmode="event+select")
    return drawn


def _hover(heat: Heat) -> list[str]:
    """What the pointer reads at each cell."""
    return [
        figures.hover(
            ("selected share", words.percent(row.share, 1)),
            ("from", words.percent(row.low, 1)),
            ("to", words.percent(row.high, 1)),
            ("rows", f"{row.n:,}"),
            ("regions", row.regions),
            ("mean quality score of the regions", heat.quality[row.quality]),
            ("mean similarity", heat.crowding[row.crowding]),
        )
        for row in figures.records(heat.table)
    ]


def _steps(labels: Sequence[str], title: str) -> dict:
    return figures.axis(
        title,
        grid=False,
        tickvals=list(range(len(labels))),
        ticktext=[figures.plain(label).replace(" to ", " to<br>") for label in labels],
        tickangle=0,
        range=[-0.5, len(labels) - 0.5],
    )
