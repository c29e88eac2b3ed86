"""Colours of every figure: Okabe-Ito for categories, cividis for scales, one accent, in a light and a dark shade.

Roles come first: the same thing has the same colour on every page. No figure tells classes apart by colour alone; dash,
shape or opacity goes with it.
"""

from __future__ import annotations

from dataclasses import dataclass

OKABE_ITO: tuple[str, ...] = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#8A949E")
"""Categories, in the order they are handed out. The last one, grey, also stands for "everything else"."""

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


THEMED = Shades(
    accent="#000001",
    muted="#000010",
    quality="#000004",
    diversity="#000003",
    batch="#000006",
    random="#000009",
    best="#000008",
    text="#000037",
    grid="#000039",
    ground="#000038",
    raised="#000040",
)
"""In a Plotly figure: Streamlit's theme puts its own colours in place of these, on a page of either ground."""

THEMED_SHARES = ("#000021", "#000025", "#000030")
"""The ends and the middle of the share scale in a Plotly figure."""


def themed(place: int) -> str:
    """The colour of a category in a Plotly figure; from the seventh on they repeat."""
    return f"#{place % 7 + 1:06d}"


def shades(dark: bool = False) -> Shades:
    """The roles' colours for a light or a dark page."""
    return DARK if dark else LIGHT


def share_scale(dark: bool = False) -> tuple[tuple[float, str], ...]:
    """The brown-gray-blue scale whose middle is close to the page's own ground."""
    return SHARE_SCALE_DARK if dark else SHARE_SCALE


def categories(count: int) -> list[str]:
    """Colours for `count` categories; from the eighth on they repeat, so group what is rare under one name first."""
    return [OKABE_ITO[i % len(OKABE_ITO)] for i in range(count)]
