"""A study for people: one table as markdown, CSV and JSON, and one figure that opens in any browser."""

from __future__ import annotations

import html
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datamask.files import write_text
from datamask.options import OPTIONS
from datamask.runs.formats import to_plain
from datamask.runs.sweep import write_rows
from datamask.runs.varying import variable

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from datamask.runs.study import Study

TITLES = {
    "single": "Single terms against joint",
    "ablation": "Learning rate, steps and start",
    "acceleration": "Pruning, batch share and start against time",
    "G": "Group size",
}
VARIED = tuple(name for name in variable() if name != "seed")
"""Settings that a table says where all its arms share them."""

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, told apart by colour-blind readers too; symbols say the same."""

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star")
"""Filled for the first seven series, open for the next."""


SECONDS_TICKS = [m * 10.0**e for e in range(-3, 6) for m in (1, 2, 5)]
"""Plotly would write 2 for 20 between 10 and 100."""


def write(study: Study, folder: Path) -> list[Path]:
    """Write study.md, study.csv, study.json and study.html into `folder`.

    Raises:
        StoreError: the folder cannot be written.
    """
    paths = [folder / f"study.{suffix}" for suffix in ("md", "csv", "json", "html")]
    write_text(paths[0], markdown(study))
    write_rows(study.rows, str(paths[1]))
    whole = {
        "study": study.kind,
        "rows": study.rows,
        "notes": study.notes,
        "curves": study.curves,
        "machine": machine(),
        **study.facts,
    }
    write_text(paths[2], json.dumps(to_plain(whole), indent=1, allow_nan=False) + "\n")
    write_text(paths[3], page(study))
    return paths


def markdown(study: Study) -> str:
    """Title, table with means ± spread, notes, corpus and machine."""
    facts = study.facts
    about = (
        f"{facts['selected']:,} of {facts['n']:,} rows, {facts['dim']} dimensions; {machine()}, "
        f"{facts['threads']} thread(s) on {facts['device']}; "
        + ", ".join(f"{name} {version}" for name, version in facts["versions"].items() if name != "platform")
    )
    settings = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in facts["settings"].items()
        if name in VARIED
    )
    return "\n".join(
        [
            f"# {TITLES[study.kind]}",
            "",
            table(study.rows),
            "",
            *(f"{note}\n" for note in study.notes),
            f"All arms: {settings}.\n",
            f"{about}.",
            "",
        ]
    )


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a markdown table; a column with a spread shows ``mean ± sd``, columns that nobody fills are left out."""
    names = [
        name
        for name in dict.fromkeys(name for row in rows for name in row)
        if not name.endswith("_sd") and any(row.get(name) is not None for row in rows)
    ]
    lines = ["| " + " | ".join(name.replace("_", " ") for name in names) + " |", "|" + " --- |" * len(names)]
    for row in rows:
        lines.append("| " + " | ".join(_cell(row.get(name), row.get(f"{name}_sd"), name) for name in names) + " |")
    return "\n".join(lines)


def _cell(value: Any, spread: float | None, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    if name in OPTIONS:
        return f"{value:g}"
    digits = 2 if name.startswith("seconds") else 3
    return f"{value:.{digits}f}" + ("" if spread is None else f" ± {spread:.{digits}f}")


def machine() -> str:
    """The processor's name and its number of cores, as far as the system tells."""
    name = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        processors = [
            line.partition(":")[2].strip()
            for line in cpus.read_text(encoding="utf-8", errors="replace").splitlines()
            if line.startswith("model name")
        ]
        name = processors[0] if processors else name
    return f"{name}, {os.cpu_count()} cores"


# -- the figure --------------------------------------------------------------------------------------------------------


def page(study: Study) -> str:
    """One HTML file with the figure and everything it needs inside."""
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in study.notes)
    drawn = figure(study).to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False})
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{TITLES[study.kind]}</title>'
        f'<body style="font-family:sans-serif;max-width:1100px;margin:2em auto">{drawn}{notes}</body></html>\n'
    )


def figure(study: Study) -> Figure:
    """The study's plotly figure; error bars are standard deviations over seeds."""
    from plotly.subplots import make_subplots

    panels = {"single": _single, "ablation": _ablation, "acceleration": _acceleration, "G": _group_size}[study.kind]
    count = 2 if study.kind in ("ablation", "G") else 1
    fig = make_subplots(rows=1, cols=count, horizontal_spacing=0.1)
    panels(fig, study)
    if study.kind != "single":
        _reference(fig, study.rows[-1], count)
        fig.update_yaxes(title_text="joint value, share of the attainable gain", col=1)
    return fig.update_layout(
        title=TITLES[study.kind], template="simple_white", height=560, legend={"orientation": "h", "y": -0.2}
    )


def _points(
    fig: Figure,
    rows: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    name: str,
    place: int,
    *,
    column: int = 1,
    mode: str = "lines+markers",
    **more: Any,
) -> None:
    """One series of rows with error bars on every axis that has a spread."""
    import plotly.graph_objects as go

    bars = {
        f"error_{axis}": {"type": "data", "array": [row.get(f"{key}_sd") or 0.0 for row in rows]}
        for axis, key in (("x", x), ("y", y))
        if any(row.get(f"{key}_sd") for row in rows)
    }
    color, symbol = COLORS[place % len(COLORS)], SYMBOLS[place % len(SYMBOLS)]
    symbol += "" if place < len(SYMBOLS) else "-open"
    fig.add_trace(
        go.Scatter(
            x=[row[x] for row in rows],
            y=[row[y] for row in rows],
            name=name,
            mode=mode,
            marker={"color": color, "symbol": symbol, "size": 10},
            line={"color": color},
            **bars,
            **more,
        ),
        row=1,
        col=column,
    )


def _reference(fig: Figure, row: Mapping[str, Any], columns: int) -> None:
    """A dashed line across every panel, as a series: axes make room for those, and the legend names it."""
    import plotly.graph_objects as go

    axes = ["x", "x2"][:columns]
    for column, axis in enumerate(axes, 1):
        across = np.concatenate([np.asarray(trace.x, float) for trace in fig.data if (trace.xaxis or "x") == axis])
        fig.add_trace(
            go.Scatter(
                x=[across.min(), across.max()],
                y=[row["joint"]] * 2,
                mode="lines",
                name=row["arm"],
                line={"dash": "dash", "color": "#555555"},
                showlegend=column == 1,
            ),
            row=1,
            col=column,
        )


def _single(fig: Figure, study: Study) -> None:
    skipped = {"arm", "runs", "seconds", "lamb"}
    measures = [name for name in study.rows[0] if name not in skipped and not name.endswith("_sd")]
    for place, name in enumerate(measures):
        _points(fig, study.rows, name, "arm", name, place, mode="markers")
    fig.update_xaxes(title_text="share of the attainable gain of the measure")
    fig.update_yaxes(autorange="reversed")
    fig.add_vline(x=0, line={"color": "#bbbbbb"})


def _ablation(fig: Figure, study: Study) -> None:
    rows = study.rows[:-1]
    usual = max({row["n_epochs"] for row in rows}, key=lambda steps: sum(row["n_epochs"] == steps for row in rows))
    lr = max({row["max_lr"] for row in rows}, key=lambda rate: sum(row["max_lr"] == rate for row in rows))
    for place, init in enumerate(("same", "quality")):
        of_init = [row for row in rows if row["init"] == init]
        _points(
            fig,
            sorted((row for row in of_init if row["n_epochs"] == usual), key=lambda row: row["max_lr"]),
            "max_lr",
            "joint",
            f"start: {init}",
            place,
            legendgroup=init,
        )
        _points(
            fig,
            sorted((row for row in of_init if row["max_lr"] == lr), key=lambda row: row["n_epochs"]),
            "n_epochs",
            "joint",
            init,
            place,
            column=2,
            legendgroup=init,
            showlegend=False,
        )
    for column, name, title in (
        (1, "max_lr", f"learning rate of the first step ({usual:,} steps)"),
        (2, "n_epochs", f"steps (learning rate {lr:g})"),
    ):
        fig.update_xaxes(type="log", title_text=title, tickvals=sorted({row[name] for row in rows}), col=column)


def _acceleration(fig: Figure, study: Study) -> None:
    for place, row in enumerate(study.rows[:-1]):
        _points(fig, [row], "seconds", "joint", row["arm"], place, mode="markers")
    fig.update_xaxes(type="log", tickvals=SECONDS_TICKS, title_text="seconds of learning")


def _group_size(fig: Figure, study: Study) -> None:
    rows = study.rows[:-1]
    _points(fig, rows, "n_rollout", "joint", "after all steps", 6, showlegend=False)
    for place, (name, (seconds, joint)) in enumerate(study.curves.items()):
        curve = [{"seconds": s, "joint": j} for s, j in zip(seconds, joint)]
        _points(fig, curve, "seconds", "joint", name, place, column=2, mode="lines")
    fig.update_xaxes(type="log", title_text="G, masks per step", tickvals=[row["n_rollout"] for row in rows], col=1)
    fig.update_xaxes(type="log", tickvals=SECONDS_TICKS, title_text="seconds of learning", col=2)
