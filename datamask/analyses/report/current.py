"""The report of a selection that is no run: what is selected and what it is worth; nothing of how a run learned."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

from datamask.analyses.report.page import (
    Section,
    document,
    escape,
    groups_section,
    map_section,
    summary_section,
    table_of,
    texts_section,
)
from datamask.analyses.report.samples import at_random
from datamask.analyses.report.summary import Kept
from datamask.config import RunConfig
from datamask.corpus import Corpus
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.drawing import words
from datamask.dashboard.workspace import wording
from datamask.dashboard.workspace.selection import Selection


def report_of(selection: Selection, opened: OpenCorpus, cache_dir: Path, now: float | None = None) -> str:
    """The report as one HTML file.

    Args:
        opened: the corpus that it selects from. cache_dir: where the corpus's layout is kept.
        now: the moment on the page, seconds since 1970; None: the present.
    """
    corpus, mask = opened.corpus, selection.mask
    title = escape(f"Selection at {selection.name}")
    head = [f"<h1>{title}</h1>", f'<p class="lead">{escape(" · ".join(wording.parts(corpus, selection)))}</p>']
    if selection.preview:
        head.append('<p class="small">A preview: solving this λ may find a slightly better selection.</p>')
    sections = [
        summary_section(kept(selection, corpus), corpus.fingerprint, cache_dir),
        map_section(mask, corpus, cache_dir),
        groups_section(mask, corpus),
        _values(selection, opened),
        texts_section(at_random(mask, corpus)),
        _origin(selection, opened, now),
    ]
    return document(title, head, sections)


def kept(selection: Selection, corpus: Corpus) -> Kept:
    """What the summary is about."""
    tokens, columns = selection.tokens(corpus), corpus.provenance.columns
    return Kept(selection.settings, selection.count, len(corpus), tokens, columns=columns)


def _values(selection: Selection, opened: OpenCorpus) -> Section:
    quality, tokens = opened.corpus.quality, selection.tokens(opened.corpus)
    rows = [
        ("rows", words.count(selection.count)),
        *([("tokens", words.count(tokens))] if tokens is not None else []),
        ("mean quality", words.value(float(quality[selection.mask].mean()), 6)),
        ("mean quality of all rows", words.value(float(quality.mean()), 6)),
        ("quality (0 % random, 100 % best found)", words.percent(selection.quality, 1)),
        ("diversity (0 % random, 100 % best found)", words.percent(selection.diversity, 1)),
    ]
    return Section("Values", table_of(("", ""), rows, numbers=(1,)))


def _origin(selection: Selection, opened: OpenCorpus, now: float | None) -> Section:
    corpus = opened.corpus
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now))
    rows = [
        ("corpus", ", ".join(opened.config.inputs)),
        ("rows", words.of_total(len(corpus), corpus.provenance.total_rows)),
        ("fingerprint", corpus.fingerprint),
        ("report made", made),
    ]
    arguments = RunConfig(opened.config, selection.settings).arguments("selection.parquet")
    line = "python -m datamask " + shlex.join(arguments)
    return Section("Provenance", table_of(("", ""), rows) + f"<h3>Solve it as a run</h3><pre>{escape(line)}</pre>")
