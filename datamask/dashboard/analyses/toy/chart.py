"""What each objective sees: four panels of the planted toy, one per objective."""

from __future__ import annotations

import numpy as np
from plotly import graph_objects as go
from plotly.subplots import make_subplots

from datamask.dashboard.analyses.toy.solving import FAMILY, GROUPS, TITLES, Toy
from datamask.dashboard.drawing import palette

APART = 0.24
"""Copies lie on top of each other; they are drawn this far around their place, so that they can be counted."""

SHAPES = ("circle", "square", "diamond", "triangle-up")


def toy(solved: Toy, *, dark: bool = False, height: int = 520) -> go.Figure:
    """Two rows of two panels: groups by shape, selected samples large and coloured, the rest small and grey."""
    tone = palette.shades(dark)
    points = solved.points.copy()
    copies = (solved.group == GROUPS.index("near-copies")).nonzero()[0]
    angle = np.arange(len(copies)) * 2 * np.pi / FAMILY
    points[copies] += APART * np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32)
    figure = make_subplots(
        2,
        2,
        subplot_titles=list(TITLES.values()),
        shared_xaxes=True,
        shared_yaxes=True,
        horizontal_spacing=0.02,
        vertical_spacing=0.07,
    )
    for panel, name in enumerate(TITLES):
        mask = solved.masks[name]
        for place, (label, shape) in enumerate(zip(GROUPS, SHAPES)):
            for selected in (False, True):
                marked = (solved.group == place) & (mask == selected)
                figure.add_trace(
                    go.Scattergl(
                        x=points[marked, 0],
                        y=points[marked, 1],
                        mode="markers",
                        hoverinfo="skip",
                        name=label,
                        legendgroup=label,
                        showlegend=panel == 0 and selected,
                        marker={
                            "symbol": shape,
                            "size": 6 if selected else 3.5,
                            "opacity": 0.95 if selected else 0.7,
                            "color": tone.accent if selected else tone.muted,
                            "line": {"width": 0},
                        },
                    ),
                    row=panel // 2 + 1,
                    col=panel % 2 + 1,
                )
    figure.update_xaxes(visible=False, matches="x")
    figure.update_yaxes(visible=False, matches="y", scaleanchor="x")
    figure.update_layout(
        template=palette.template(dark),
        height=height,
        margin={"l": 4, "r": 4, "t": 52, "b": 4},
        legend={"y": 1.06, "itemclick": False, "itemdoubleclick": False},
        dragmode=False,
    )
    return figure
