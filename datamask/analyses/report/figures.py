"""The figures of a report as SVG, each from the small table that its page on the screen draws from."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from datamask.analyses.convergence.chart import frame, labels
from datamask.analyses.convergence.tables import BATCH, EDGE, SUBSET, Curve, said
from datamask.analyses.frontier.tables import Line
from datamask.dashboard.drawing import placement, svg, words
from datamask.dashboard.linked.groups import EVEN, OVER, UNDER

WIDTH = 720
WIDE = placement.LETTER / 7.2
"""What a picture is narrower for its words: a report has no font of its own, and those of most systems are wider."""

SIGNS = {UNDER: ("best", "triangle-down"), OVER: ("accent", "triangle"), EVEN: ("random", "circle")}
"""Colour and mark of a group by its verdict, as on the screen."""


def convergence(curve: Curve) -> svg.Drawing | None:
    """The learning curve with its references, over the steps; None for a run without steps."""
    table = curve.table[curve.table["series"].isin((BATCH, SUBSET))]
    subset = table[table["series"] == SUBSET].sort_values("step")
    if subset.empty:
        return None
    batch = table[table["series"] == BATCH].sort_values("step")
    lines = [line for line in curve.references if not line.edge]
    picture = svg.Drawing(WIDTH, 330, f"{curve.unit} over the update steps")
    x, y = _axes(
        picture,
        (0.0, float(table["step"].max())),
        frame(curve, table),
        "update steps",
        curve.unit,
        percent=not curve.raw,
    )
    band = batch.dropna(subset=["low", "high"])
    picture.area(
        [
            *((x(s), y(v)) for s, v in zip(band["step"], band["high"])),
            *((x(s), y(v)) for s, v in zip(band["step"][::-1], band["low"][::-1])),
        ],
        "batch",
        0.22,
    )
    picture.path([(x(s), y(v)) for s, v in zip(batch["step"], batch["value"])], "batch", 1.3)
    colors = {"random": "random", "best": "best", "bound": "text", "final": "accent", EDGE: "text"}
    for line in lines:
        at = y(line.value)
        picture.line(x.low, at, x.high, at, colors[line.role], 1.3, "" if line.role == "bound" else "5 4")
    picture.path([(x(s), y(v)) for s, v in zip(subset["step"], subset["value"])], "accent", 2.6)
    if len(subset) == 1:
        picture.mark(x(subset["step"].iloc[0]), y(subset["value"].iloc[0]))
    if curve.final is not None:
        picture.mark(
            x(curve.final["step"]),
            y(curve.final["value"]),
            "accent",
            "diamond",
            title=f"final selection {said(curve.final['value'], curve.raw, curve.measure)}",
        )
    for label in labels(curve, "step", *y.values, y.low - y.high, WIDE * (x.high - x.low)):
        left = label["role"] == EDGE
        picture.text(
            x.low + 4 if left else x.high,
            y(label["value"]) + 4,
            label["note"],
            colors[label["role"]],
            "start" if left else "end",
            halo=True,
        )
    return picture


def groups(table: pd.DataFrame, ratio: float, title: str) -> svg.Drawing:
    """Selected share of each group with its interval, beside the share of all samples.

    Args:
        table: of `groups.shares`, in the order to draw. ratio: share of all rows. title: what the groups are.
    """
    step, left = 22, 230
    bottom = 8 + step * len(table)
    picture = svg.Drawing(WIDTH, bottom + 36, f"Selected share of each {title}")
    top = max(float(table["high"].max()), ratio) * 1.02

    def x(share: float) -> float:
        return left + share / top * (WIDTH - left - 80)

    for tick in svg.ticks(0.0, top, 5):
        picture.line(x(tick), 4, x(tick), bottom)
        picture.text(x(tick), bottom + 14, words.percent(tick, 0 if top > 0.05 else 1), "text", "middle", 11)
    picture.line(x(ratio), 4, x(ratio), bottom, "text", 1.2, "4 3")
    for row, (_, group) in enumerate(table.iterrows()):
        at = 4 + step * (row + 0.5)
        color, shape = SIGNS[group["verdict"]]
        picture.text(left - 10, at + 4, _short(group["group"]), "text", "end")
        picture.line(x(group["low"]), at, x(group["high"]), at, color, 2)
        picture.mark(
            x(group["share"]),
            at,
            color,
            shape,
            title=f"{group['group']}: {words.percent(group['share'], 1)} of {group['n']:,}",
        )
        picture.text(WIDTH - 4, at + 4, f"n {group['n']:,}", "random", "end", 11)
    picture.text((left + WIDTH - 80) / 2, bottom + 31, "selected share, with 95 % interval", "text", "middle", 11)
    return picture


def frontier(line: Line, run_id: str) -> svg.Drawing:
    """One curve over lambda in shares of the attainable gain, this run marked, random at (0, 0)."""
    quality, diversity = ([getattr(spot, name) for spot in line.spots] for name in ("quality", "diversity"))
    own = next((min(spot.quality, spot.diversity) for spot in line.spots if spot.run_id == run_id), 0.0)
    # what lies far below random would squeeze everything else; it is said instead, unless it is what this is about
    low = max(min(0.0, *quality, *diversity), min(-0.4, own))
    high = max(1.0, *quality, *diversity)
    side = 470
    picture = svg.Drawing(side + 4, side, "Quality against diversity (0 % random, 100 % best found)")
    x, y = _axes(
        picture,
        (low, high),
        (low, high),
        "quality (0 % random, 100 % best found)",
        "diversity (0 % random, 100 % best found)",
        shares=True,
    )
    means = [(x(q), y(d)) for _, q, d in line.means() if q >= low and d >= low]
    picture.path(means, "accent", 2)
    picture.mark(x(0), y(0), "random", "square", title="a random subset")
    shown = [spot for spot in line.spots if spot.quality >= low and spot.diversity >= low]
    # this run over another one at the same place
    shown.sort(key=lambda spot: spot.run_id == run_id)
    for spot in shown:
        mine = spot.run_id == run_id
        title = (
            f"λ {spot.lamb:g}: quality {words.percent(spot.quality, 1)}, diversity {words.percent(spot.diversity, 1)}"
        )
        picture.mark(
            x(spot.quality),
            y(spot.diversity),
            "best" if mine else "accent",
            "diamond" if mine else "circle",
            7 if mine else 4,
            title=title,
        )
    # this run first, then random, then what lambdas there is room for
    texts = [
        placement.Words(
            f"this run, λ {spot.lamb:g}",
            spot.quality,
            spot.diversity,
            (*placement.compass(spot.lamb, 1 - spot.lamb), *placement.rings()),
            needed=True,
        )
        for spot in shown
        if spot.run_id == run_id
    ]
    texts.append(placement.Words("random", 0.0, 0.0, placement.compass(0.6, 0.6)))
    # several seeds of a lambda are told once
    others = {spot.lamb: spot for spot in shown if spot.lamb not in {own.lamb for own in shown if own.run_id == run_id}}
    texts += [
        placement.Words(f"λ {lamb:g}", spot.quality, spot.diversity, placement.compass(lamb, 1 - lamb))
        for lamb, spot in others.items()
    ]
    roads = [(a[1], a[2], b[1], b[2]) for a, b in itertools.pairwise(line.means()) if min(*a[1:], *b[1:]) >= low]
    scale = (x.high - x.low) / (x.values[1] - x.values[0])
    # in units of letters that are as wide as those of a page
    places = placement.around(
        texts,
        placement.Box(x.values[0], y.values[0], x.values[1], y.values[1]),
        (WIDE * scale,),
        np.array(roads, float).reshape(-1, 4),
        [(0.0, 0.0), *((spot.quality, spot.diversity) for spot in shown)],
    )
    for place, label in zip(places, texts):
        if place is not None:
            mine = label.text.startswith("this")
            picture.text(
                x(label.x) + place[0],
                y(label.y) + place[1] + 4,
                label.text,
                "best" if mine else "random" if label.text == "random" else "text",
                {"left": "start", "center": "middle", "right": "end"}[place[2]],
                12 if mine else 11,
                bold=mine,
                halo=True,
            )
    more = len(line.spots) - len(shown)
    if more:
        picture.text(x.low + 6, y(low) - 8, f"{more} more lie{'s' if more == 1 else ''} far below random", "random")
    return picture


class _Axis:
    """From values to places in the picture."""

    def __init__(self, values: tuple[float, float], places: tuple[float, float]) -> None:
        self.values, self.low, self.high = values, *places

    def __call__(self, value: float) -> float:
        a, b = self.values
        return self.low + (float(value) - a) / (b - a) * (self.high - self.low)


def _axes(
    picture: svg.Drawing,
    across: tuple[float, float],
    up: tuple[float, float],
    across_title: str,
    up_title: str,
    shares: bool = False,
    percent: bool = False,
) -> tuple[_Axis, _Axis]:
    """Grid, numbers and titles; gives the two scales. Both axes are of shares, or the upright one alone in percent."""
    room = 0.05 * (up[1] - up[0]) or 0.5
    up = (up[0] - room, up[1] + room)
    across = (across[0] - room, across[1] + room) if shares else (across[0], max(across[1], across[0] + 1))
    x = _Axis(across, (56, picture.width - 14))
    y = _Axis(up, (picture.height - 40, 26))
    for tick in svg.ticks(*up, 5):
        picture.line(x.low, y(tick), x.high, y(tick))
        number = words.percent(tick) if shares or percent else words.value(tick)
        picture.text(x.low - 6, y(tick) + 4, number, "text", "end", 11)
    for tick in svg.ticks(*across, 6):
        if shares:
            picture.line(x(tick), y.low, x(tick), y.high)
        picture.text(x(tick), y.low + 15, words.percent(tick) if shares else f"{tick:,g}", "text", "middle", 11)
    picture.text((x.low + x.high) / 2, picture.height - 6, across_title, "text", "middle")
    picture.text(4, 14, up_title, "text")
    return x, y


def first_groups(table: pd.DataFrame, order: Sequence[str] = (), limit: int = 12) -> pd.DataFrame:
    """The groups farthest from the share of all, most under-represented on top, or in an order of their own."""
    few = table.head(limit)
    if order:
        return few.iloc[few["group"].map(list(order).index).argsort(kind="stable")]
    return few.sort_values("share", kind="stable")


def _short(text: object, limit: int = 32) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
