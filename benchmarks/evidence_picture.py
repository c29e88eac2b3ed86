"""The picture of the study: methods by targets, an SVG that reads on a light and on a dark page."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.evidence_results import BETTER, RANDOM, WORSE, Evidence, Target, holm

CELL, ROW = 22, 18
LEFT, TOP, GAP, RIGHT = 190, 132, 14, 72
FULL = 0.15
"""Nats per word from which a cell has its full color."""

STYLE = """
  .card { fill: #ffffff; } .ink { fill: #1f2933; } .soft { fill: #5b6672; }
  .better { fill: #0065b3; } .worse { fill: #c24e00; } .box { stroke: #c9ced6; fill: none; } .best { stroke: #1f2933; }
  @media (prefers-color-scheme: dark) {
    .card { fill: #14181d; } .ink { fill: #e8ebee; } .soft { fill: #a6afb9; }
    .better { fill: #4da3e8; } .worse { fill: #ff8a3d; } .box { stroke: #3a424b; } .best { stroke: #e8ebee; }
  }
  text { font-family: system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; font-size: 12px; }
"""


def picture(
    evidence: Evidence,
    groups: Sequence[tuple[str, Sequence[Target]]],
    rows: Sequence[Sequence[str]],
    titles: Mapping[str, str],
    regrets: Mapping[str, float],
) -> str:
    """Draw methods by targets.

    Args:
        groups: a heading and its targets, left to right. rows: methods in bands, top to bottom. titles: of the methods.
        regrets: largest regret of each method over the tested targets, shown at the right.
    """
    tested = set(evidence.tested)
    placed: list[tuple[float, Target]] = []
    headings = []
    x = float(LEFT)
    for heading, targets in groups:
        headings.append((x, heading))
        for target in targets:
            placed.append((x, target))
            x += CELL
        x += GAP
    width = x + RIGHT
    parts = []
    for left, heading in headings:
        parts.append(_text(left, 20, heading, "ink", weight=600))
    for left, target in placed:
        kind = ("ink", 600) if target in tested else ("soft", 400)
        parts.append(
            f'<text class="{kind[0]}" font-weight="{kind[1]}" '
            f'transform="translate({left + 15:.0f} {TOP - 6}) rotate(-62)">{html.escape(target.name)}</text>'
        )
    parts.append(_text(x, TOP - 22, "largest", "soft"))
    parts.append(_text(x, TOP - 6, "regret", "soft"))
    y = float(TOP)
    bests = _best_methods(evidence, [target for _, target in placed])
    least = min((value for name, value in regrets.items()), default=0.0)
    for band in rows:
        for name in band:
            parts.append(_text(LEFT - 8, y + 13, titles[name], "ink", anchor="end"))
            parts += _row(evidence, name, placed, y, bests)
            if name in regrets:
                weight = 600 if regrets[name] == least else 400
                parts.append(_text(x, y + 13, f"{regrets[name]:.3f}", "ink", weight=weight))
            y += ROW
        y += 6
    parts += _legend(y + 8)
    height = y + 52
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        'role="img">'
        "<title>Methods by targets: better and worse than a random selection</title>"
    )
    card = f'<rect class="card" width="{width:.0f}" height="{height:.0f}" rx="10"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", card, *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, tone: str, weight: int = 400, anchor: str = "start") -> str:
    return (
        f'<text class="{tone}" x="{x:.0f}" y="{y:.0f}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{html.escape(text)}</text>"
    )


def _best_methods(evidence: Evidence, targets: Sequence[Target]) -> dict[Target, str]:
    best = {}
    for target in targets:
        names = evidence.complete(target.arm)
        if names:
            best[target] = names[int(evidence.means(target.arm, names)[:, target.place].argmin())]
    return best


def _row(
    evidence: Evidence, name: str, placed: Sequence[tuple[float, Target]], y: float, bests: Mapping[Target, str]
) -> list[str]:
    outcomes = evidence.differences([target for _, target in placed], name)
    # each arm is a family of its own here: the picture shows more targets than the hypothesis has
    verdicts = dict.fromkeys([target for _, target in placed])
    for arm in {target.arm for _, target in placed}:
        of_arm = [place for place, (_, target) in enumerate(placed) if target.arm == arm]
        for place, verdict in zip(of_arm, holm([outcomes[place] for place in of_arm], evidence.level), strict=True):
            verdicts[placed[place][1]] = verdict
    parts = []
    for (x, target), outcome in zip(placed, outcomes, strict=True):
        box = f'x="{x + 1:.0f}" y="{y + 1:.0f}" width="{CELL - 2}" height="{ROW - 2}" rx="2"'
        parts.append(f'<rect class="box" {box}/>')
        if outcome is None or (name == RANDOM and bests.get(target) != name):
            continue
        tone = "better" if outcome.mean < 0 else "worse"
        strength = float(np.clip(abs(outcome.mean) / FULL, 0, 1))
        label = html.escape(f"{name}, {target.title}: {outcome.mean:+.3f} nats")
        parts.append(f'<rect class="{tone}" fill-opacity="{strength:.2f}" {box}><title>{label}</title></rect>')
        if verdicts[target] in (BETTER, WORSE):
            parts.append(f'<circle class="ink" cx="{x + CELL / 2:.0f}" cy="{y + ROW / 2:.0f}" r="1.7"/>')
        if bests.get(target) == name:
            parts.append(f'<rect class="best" fill="none" stroke-width="2" {box}/>')
    return parts


def _legend(y: float) -> list[str]:
    parts, x = [], 24.0
    for tone, words in (("better", "better than random"), ("worse", "worse")):
        for strength in (0.2, 0.6, 1.0):
            parts.append(
                f'<rect class="{tone}" fill-opacity="{strength}" x="{x:.0f}" y="{y:.0f}" width="18" height="14"/>'
            )
            x += 20
        parts.append(_text(x + 4, y + 12, words, "ink"))
        x += 24 + 6.4 * len(words)
    parts.append(_text(x, y + 12, f"(full color from {FULL:g} nats per word)", "soft"))
    x += 236
    parts.append(f'<circle class="ink" cx="{x:.0f}" cy="{y + 7:.0f}" r="1.7"/>')
    parts.append(_text(x + 8, y + 12, "told apart from random (Holm)", "ink"))
    x += 204
    parts.append(
        f'<rect class="best" fill="none" stroke-width="2" x="{x:.0f}" y="{y:.0f}" width="18" height="14" rx="2"/>'
    )
    parts.append(_text(x + 24, y + 12, "best of the column", "ink"))
    parts.append(
        _text(
            24, y + 32, "Bold targets test the hypothesis; the largest regret is over them, in nats per word.", "soft"
        )
    )
    return parts
