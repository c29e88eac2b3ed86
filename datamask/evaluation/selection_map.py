"""The map of a selection as a Plotly figure, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from datamask.corpus.beginnings import beginnings
from datamask.corpus.projections import pca

if TYPE_CHECKING:
    from datamask.evaluation.selection import Selection

MOST_POINTS = 50_000
"""A browser draws so many at once; of more rows a uniform sample is shown."""

HOVER_LETTERS = 80
SELECTED, OTHERS = "#1668dc", "#b8bfc9"


def figure(selection: Selection) -> go.Figure:
    """Draw the first two principal components of the features, with a button for each color.

    Returns:
        One trace of at most `MOST_POINTS` rows: selected ones last, so that they lie on top.
    """
    corpus, n = selection.corpus, len(selection.corpus)
    rows = np.arange(n) if n <= MOST_POINTS else np.sort(np.random.default_rng(0).choice(n, MOST_POINTS, False))
    rows = rows[np.argsort(selection.mask[rows], kind="stable")]
    points, mask = pca(corpus.features)[rows], selection.mask[rows]
    names = [str(value) for value in corpus.ids.take(rows).to_pylist()]
    if corpus.texts is not None:
        starts = beginnings(corpus.texts, rows, HOVER_LETTERS).to_pylist()
        names = [f"{name}: {start or ''}" for name, start in zip(names, starts, strict=True)]
    colors: dict[str, dict[str, list[Any]]] = {
        "selection": {"color": [np.where(mask, SELECTED, OTHERS).tolist()], "showscale": [False]},
        "quality": {"color": [corpus.quality[rows]], "showscale": [True]},
        "diversity": {"color": [selection.marginal_diversity[rows]], "showscale": [True]},
    }
    drawn = {name: values[0] for name, values in colors["selection"].items()}
    # plain text: no markup of a corpus is drawn
    hover = [name.replace("<", "&lt;") for name in names]
    plot = go.Figure(
        go.Scattergl(
            x=points[:, 0],
            y=points[:, 1],
            mode="markers",
            text=hover,
            hoverinfo="text",
            marker={"size": 5, "colorscale": "Viridis", **drawn},
        )
    )
    buttons = [
        {"label": name, "method": "restyle", "args": [{f"marker.{key}": value for key, value in values.items()}]}
        for name, values in colors.items()
    ]
    shown = "" if len(rows) == n else f", {len(rows):,} of {n:,} rows shown"
    plot.update_layout(
        title=f"{len(selection):,} of {n:,} rows selected{shown}",
        template="plotly_white",
        updatemenus=[{"type": "buttons", "direction": "right", "x": 0, "y": 1.1, "buttons": buttons}],
        xaxis={"visible": False},
        yaxis={"visible": False, "scaleanchor": "x"},
    )
    return plot
