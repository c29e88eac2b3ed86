"""Colours of every figure: Okabe-Ito for categories, cividis for scales, one accent, in a light and a dark shade.

Roles come first: the same thing has the same colour on every page. No figure tells classes apart by colour alone; dash,
shape or opacity goes with it.
"""

from __future__ import annotations

from dataclasses import dataclass

OKABE_ITO: tuple[str, ...] = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#8A949E")
"""Categories, in the order they are handed out. The last one, grey, also stands for "everything else"."""

SCALE = "Cividis"
"""Plotly's name of the sequential scale: monotone in lightness, the same for colour-blind readers."""

SHARE_SCALE: tuple[tuple[float, str], ...] = ((0.0, "#8C510A"), (0.5, "#E3E6E9"), (1.0, "#0072B2"))
"""Around a middle value: brown below, gray at it, blue above (selected share against the ratio)."""

SHARE_SCALE_DARK: tuple[tuple[float, str], ...] = ((0.0, "#C68A45"), (0.5, "#2A323A"), (1.0, "#56B4E9"))
"""`SHARE_SCALE` on a dark ground, where the middle value must sink into the ground instead of glaring."""


@dataclass(frozen=True)
class Shades:
    """The roles' colours on one ground.

    Attributes:
        accent: the learned subset, selected samples, the run in question.
        muted: not selected, references, everything in the background.
        quality, diversity: the two terms of the objective, wherever they are drawn apart.
        batch: sampled masks of one batch, always paler than the subset they lead to.
        random, best: reference lines: a random subset, top-quality; also level with it, and lost, under or worse.
        text, grid, ground, raised: letters, grid lines, page, boxes on the page.
    """

    accent: str
    muted: str
    quality: str
    diversity: str
    batch: str
    random: str
    best: str
    text: str
    grid: str
    ground: str
    raised: str


LIGHT = Shades(
    accent="#0072B2",
    muted="#B4BCC4",
    quality="#A3508A",
    diversity="#009E73",
    batch="#56B4E9",
    random="#5D6975",
    best="#8C510A",
    text="#0E141A",
    grid="#E7EBEF",
    ground="#FFFFFF",
    raised="#F3F5F7",
)
DARK = Shades(
    accent="#56B4E9",
    muted="#5F6C78",
    quality="#CC79A7",
    diversity="#2BC49A",
    batch="#2F7FAF",
    random="#9AA6B2",
    best="#C68A45",
    text="#E6EBF0",
    grid="#28313A",
    ground="#12171C",
    raised="#1C232A",
)


def shades(dark: bool = False) -> Shades:
    """The roles' colours for a light or a dark page."""
    return DARK if dark else LIGHT


def share_scale(dark: bool = False) -> tuple[tuple[float, str], ...]:
    """The brown-gray-blue scale whose middle is close to the page's own ground."""
    return SHARE_SCALE_DARK if dark else SHARE_SCALE


def categories(count: int) -> list[str]:
    """Colours for `count` categories; from the eighth on they repeat, so group what is rare under one name first."""
    return [OKABE_ITO[i % len(OKABE_ITO)] for i in range(count)]


def template(dark: bool = False):
    """A plotly template (`plotly.graph_objects.layout.Template`) with these colours and no frills."""
    from plotly import graph_objects as go

    tone = shades(dark)
    axis = {
        "gridcolor": tone.grid,
        "linecolor": tone.grid,
        "zerolinecolor": tone.grid,
        "ticks": "",
        "title": {"standoff": 8, "font": {"size": 13}},
        "tickfont": {"size": 13},
        "automargin": True,
    }
    return go.layout.Template(
        # of many traces a legend names a few, which say so
        data={"scatter": [{"showlegend": False}], "bar": [{"showlegend": False}]},
        layout={
            "font": {"family": "Source Sans, Source Sans Pro, sans-serif", "size": 13, "color": tone.text},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(OKABE_ITO),
            "colorscale": {"sequential": SCALE},
            "xaxis": axis,
            "yaxis": axis,
            "margin": {"l": 8, "r": 8, "t": 32, "b": 8},
            "separators": ".,",
            "legend": {
                "orientation": "h",
                "yanchor": "bottom",
                "y": 1.0,
                "x": 0,
                "title": {"text": ""},
                "itemclick": False,
                "itemdoubleclick": False,
            },
            "hoverlabel": {
                "bgcolor": tone.raised,
                "bordercolor": tone.grid,
                "font": {"color": tone.text},
                "align": "left",
            },
        },
    )
