"""The paper around a report's parts: one HTML file that fetches nothing and runs nothing."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from datamask.ablation import wording
from datamask.analyses.comparison import tables as comparison
from datamask.analyses.frontier import tables as frontier
from datamask.analyses.report import raster
from datamask.analyses.report.samples import Sample, samples
from datamask.analyses.report.sentence import sentence
from datamask.analyses.report.summary import Kept, kept_by, summary
from datamask.analyses.scoreboard import tables as scoreboards
from datamask.corpus import Corpus
from datamask.corpus.projections import DEFAULT, STAND_IN
from datamask.dashboard.drawing import palette, words
from datamask.dashboard.linked import facets, groups
from datamask.dashboard.map import map_layout
from datamask.dashboard.runs import listing, outcome, provenance
from datamask.runs.ablation_results import results
from datamask.runs.store import Run
from datamask.runs.stored_measures import read_boards

LENGTH = "length"

COLUMNS, GROUPS = 3, 12
"""Columns of the shards whose classes get a table, and its rows."""

SHOWN = ["group", "n", "share", "low", "high", "verdict"]

STYLE = """:root{color-scheme:light dark;%s}
@media (prefers-color-scheme:dark){:root{%s}}
@media print{:root{%s}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,'Source Sans','Segoe UI',sans-serif}
main{max-width:1000px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:28px;line-height:1.25;margin:0 0 .3em}
h2,h3{font-size:15px;margin:1.8em 0 .4em}
h1,h2,h3,th,b,strong{font-weight:600}
.lead{margin:.4em 0 1em}.small{font-size:13px;opacity:.8}
figure{margin:1em 0;break-inside:avoid}figcaption{font-size:13px;opacity:.8;margin-top:.3em}
figure img{width:560px;max-width:100%%;border:1px solid var(--grid);border-radius:4px}
table{border-collapse:collapse;width:100%%;font-size:13px}
td,th{text-align:left;vertical-align:top;padding:.3em .8em .3em 0;
border-bottom:1px solid var(--grid);overflow-wrap:anywhere}td.number,th.number{text-align:right;white-space:nowrap}
tr{break-inside:avoid}
pre{background:var(--raised);padding:12px;white-space:pre-wrap;overflow-wrap:anywhere;border-radius:4px}
.key i{display:inline-block;width:.75em;height:.75em;border-radius:50%%;margin:0 .35em 0 1em}"""


@dataclass(frozen=True)
class Section:
    """A part of a report: its title, as text, and its body, as HTML."""

    title: str
    body: str


def report(
    run: Run,
    runs: Iterable[Run] = (),
    corpus: Corpus | None = None,
    cache_dir: Path | None = None,
    now: float | None = None,
) -> str:
    """The report of a done run as HTML.

    Args:
        runs: others on the same corpus, for the frontier and for names.
        corpus: the one it was learned on, for map, groups and texts; None, or another one: they are left out.
        cache_dir: where the corpus's layout and scoreboards are kept.
        now: the moment on the page, seconds since 1970; None: the present.
    """
    fingerprint = str(run.facts().get("fingerprint") or "")
    if corpus is not None and corpus.fingerprint != fingerprint:
        corpus = None
    runs = list(runs)
    selected = np.zeros(0, bool) if corpus is None else run.mask()
    sections = [
        summary_section(kept_by(run), fingerprint, cache_dir),
        None if corpus is None else map_section(selected, corpus, cache_dir),
        None if corpus is None else groups_section(selected, corpus),
        _frontier(run, runs, fingerprint),
        _ablation(fingerprint, cache_dir),
        _values(run),
        _scoreboard(run, runs, fingerprint, cache_dir),
        None if corpus is None else texts_section(samples(run, corpus)),
        _provenance(run, now),
    ]
    name = escape(listing.name_of(run))
    notes = run.config.notes
    head = [f"<h1>{name}</h1>", f'<p class="lead">{escape(sentence(run))}</p>']
    if notes:
        head.append(f"<p>{escape(notes)}</p>")
    if corpus is None:
        head.append(
            '<p class="small">Map, groups and texts are left out: the corpus was not open when this was made.</p>'
        )
    return document(name, head, sections)


def document(title: str, head: Sequence[str], sections: Iterable[Section | None]) -> str:
    """A report as one HTML file.

    Args:
        title: of the file, escaped. head: what stands first, as HTML. sections: the others; None: one that is left out.
    """
    body = "".join(f"<section><h2>{escape(part.title)}</h2>{part.body}</section>" for part in sections if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; '
        "style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{title} · datamask</title><style>{_style()}</style></head>"
        f"<body><main>{''.join(head)}{body}</main></body></html>\n"
    )


def _style() -> str:
    light, dark = (
        ";".join(f"--{name}:{color}" for name, color in asdict(palette.shades(dark)).items()) for dark in (False, True)
    )
    return STYLE % (light, dark, light)


def escape(text: object) -> str:
    """Text of any origin for a place between tags or in quotes; what no UTF-8 can hold is escaped too."""
    return html.escape(words.printable(str(text)), quote=True)


def map_section(chosen: np.ndarray, corpus: Corpus, cache_dir: Path | None) -> Section:
    """The map with the selected rows colored.

    Args:
        chosen: bool ``(N,)``. cache_dir: where the corpus's layout is kept.
    """
    layout = map_layout.layout(corpus, cache_dir) if cache_dir is not None else None
    picture = raster.picture(STAND_IN.coordinates(corpus.features) if layout is None else layout.points, chosen)
    reading = map_layout.reading(STAND_IN.name if layout is None else DEFAULT, layout)
    return Section(
        "Selection",
        f'<figure><img src="{raster.address(picture)}" alt="Map of all rows with the selected rows colored">'
        f'<div class="key small"><i style="background:{raster.CHOSEN}"></i>selected'
        f'<i style="background:{raster.OTHERS}"></i>not selected</div>'
        f"<figcaption>All {len(corpus):,} rows except far ones; {escape(reading)}.</figcaption></figure>",
    )


def groups_section(selected: np.ndarray, corpus: Corpus) -> Section | None:
    """The selected share of each group; None: the corpus has no groups.

    Args:
        selected: bool ``(N,)``.
    """
    _, classes = facets.columns_of(corpus.metadata, corpus.metadata_columns)
    grouped = dict(list(classes.items())[:COLUMNS])
    lengths, unit = facets.lengths(corpus)
    if lengths is not None:
        grouped[LENGTH] = groups.bands(lengths, unit)
    drawn = []
    for name, (codes, names) in grouped.items():
        table = groups.shares(codes, names, selected)
        if len(table) < 2:
            continue
        few = table.head(GROUPS)
        # bands of length have an order of their own
        order = few["group"].map(list(names).index) if name == LENGTH else few["share"]
        rows = [
            (
                " ".join(str(group).split()),
                f"{n:,}",
                words.percent(share, 1),
                f"{words.percent(low, 1)} to {words.percent(high, 1)}",
                verdict,
            )
            for group, n, share, low, high, verdict in few.iloc[order.argsort(kind="stable")][SHOWN].to_numpy().tolist()
        ]
        more = f", the {len(few)} of {len(table):,} that differ most" if len(few) < len(table) else ""
        drawn.append(
            f"<h3>By {escape(name)}{more}</h3>"
            + table_of((name, "rows", "selected", "95 % interval", ""), rows, numbers=(1, 2, 3))
        )
    if drawn:
        drawn.append(f'<p class="small">Of all rows {words.percent(float(selected.mean()), 1)} are selected.</p>')
    return Section("Under- and over-represented groups", "".join(drawn)) if drawn else None


def _frontier(run: Run, runs: Iterable[Run], fingerprint: str) -> Section | None:
    stored = frontier.survey({listed.id: listed for listed in (*runs, run)}.values(), fingerprint)
    for line in stored.lines:
        if len(line.levels) > 2 and any(spot.run_id == run.id for spot in line.spots):
            rows = [
                (
                    f"{spot.lamb:g}",
                    words.percent(spot.quality, 1),
                    words.percent(spot.diversity, 1),
                    "this run" if spot.run_id == run.id else "",
                )
                for spot in line.spots
            ]
            name = escape(frontier.names([line])[line.key])
            said = (
                f"{name}: {len(line.spots)} runs that differ in λ and seed alone. 0 % is random, 100 % the best found."
            )
            return Section(
                "Frontier",
                table_of(("λ", "quality", "diversity", ""), rows, numbers=(0, 1, 2)) + f'<p class="small">{said}</p>',
            )
    return None


def _ablation(fingerprint: str, cache_dir: Path | None) -> Section | None:
    """The newest finished ablation of the corpus: its answer, and its methods by their largest regret."""
    finished = [result for result in results(cache_dir, fingerprint) if not result.provisional] if cache_dir else []
    if not finished:
        return None
    result = finished[0]
    rows = [
        (
            summary.method.label,
            f"{summary.better} / {summary.worse}",
            f"{summary.better_than_simple} / {summary.worse_than_simple}",
            f"{summary.worst.label} {wording.signed(summary.worst_difference)}",
            f"{summary.regret:.3f}",
        )
        for summary in sorted(result.summaries, key=lambda summary: summary.regret)
    ]
    heads = ("method", "better / worse than random", "than the best simple", "worst target", "largest regret")
    return Section(
        "Which methods help",
        f"<p>{escape(wording.headline(result))}</p>"
        + table_of(heads, rows, numbers=(1, 2, 4))
        + f'<p class="small">{escape(" ".join([wording.method_note(result), *wording.pool_note(result)]))}</p>',
    )


def _values(run: Run) -> Section:
    proved = outcome.certificate(run) or "This objective has no known bound."
    return Section(
        "Values",
        table_of(outcome.VALUES, outcome.values(run, 6), numbers=(1, 2, 3, 4))
        + f'<p class="small">{escape(proved)}</p>',
    )


def _scoreboard(run: Run, runs: Iterable[Run], fingerprint: str, cache_dir: Path | None) -> Section | None:
    board = latest_board(run, fingerprint, cache_dir)
    if board is None:
        return None
    named = {listed.id: listing.name_of(listed) for listed in (*runs, run)}
    others = [key for key in board["selected"] if key not in (run.id, *scoreboards.BESIDE)]
    letters = {
        key: (letter, f"{letter} · {named.get(key, key)}") for letter, key in zip(comparison.LETTERS, [run.id, *others])
    }
    rows = scoreboards.rows(board, letters)
    table = scoreboards.table(rows)
    notes = "".join(f'<p class="small">{escape(note)}</p>' for note in (scoreboards.READING, *board["notes"]))
    cells = table_of(list(table.columns), table.to_numpy().tolist())
    return Section("Scoreboard", f"<p>{escape(scoreboards.summary(rows, letters))}</p>{cells}{notes}")


def latest_board(run: Run, fingerprint: str, cache_dir: Path | None) -> dict | None:
    """The latest stored scoreboard that has this run in it, of at most four runs; None: there is none.

    A whole one goes before one that was stopped in the middle.
    """
    if cache_dir is None or not fingerprint:
        return None
    part = None
    for board in read_boards(fingerprint, cache_dir):
        known = set(board["selected"]) - set(scoreboards.BESIDE)
        if run.id in known and len(known) <= comparison.MOST:
            if not board["left"]:
                return board
            part = part or board
    return part


def texts_section(listed: Mapping[str, Sequence[Sample]]) -> Section:
    """Samples with their texts, by heading."""
    parts = []
    for heading, shown in listed.items():
        has_text = any(sample.text is not None for sample in shown)
        rows = [
            (sample.id, words.value(sample.quality), *((sample.text or "",) if has_text else ())) for sample in shown
        ]
        parts.append(
            f"<h3>{escape(heading)}</h3>"
            + table_of(("id", "quality", *(("text",) if has_text else ())), rows, numbers=(1,))
        )
    return Section("Rows", "".join(parts))


def _provenance(run: Run, now: float | None) -> Section:
    table = provenance.table(run)
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    rows = [*table.itertuples(index=False, name=None), ("report made", made)]
    return Section(
        "Provenance",
        table_of(("", ""), rows) + "<h3>The same run again</h3><pre>" + escape(provenance.command(run)) + "</pre>",
    )


def summary_section(kept: Kept, fingerprint: str, cache_dir: Path | None) -> Section:
    """The sentences for a data lead."""
    stored = results(cache_dir, fingerprint) if cache_dir is not None and fingerprint else []
    # the first sentence of the page says how many rows there are
    return Section("Summary", "".join(f"<p>{_coded(sentence)}</p>" for sentence in summary(kept, stored)[1:]))


def _coded(sentence: str) -> str:
    """A sentence as HTML, what stands between two backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(sentence))


def table_of(heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[int] = ()) -> str:
    """A table as HTML; the columns in `numbers` are aligned to the right."""

    def line(cells: Sequence[object], tag: str) -> str:
        return (
            "<tr>"
            + "".join(
                f"<{tag}{' class=number' if k in numbers else ''}>{escape(cell)}</{tag}>"
                for k, cell in enumerate(cells)
            )
            + "</tr>"
        )

    head = f"<thead>{line(heads, 'th')}</thead>" if any(heads) else ""
    return f"<table>{head}<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>"
