"""Names and texts of a corpus are text on every page: no markup, no link, no picture is made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf.message import Message

from datamask.config import CorpusConfig
from datamask.dashboard.data.openings import openings
from tests.making.maps import lay_out
from tests.making.runs import finish_run, write_shard

MARKDOWN = {"body", "label", "help", "caption", "content", "labels"}
"""Fields of Streamlit's messages that a browser reads as markdown."""

MARKED = re.compile(r"(?<!\\)(!\[hostile|\*\*hostile)")
"""Hostile markdown of which nothing is escaped."""


def hostile(where: str) -> str:
    """A text that is cut short on some pages, so the marks come first."""
    return f"![hostile](//evil.example) **hostile** <b>hostile</b><img src=x onerror=alert('{where}')>"


class Tags(HTMLParser):
    """The tags of a piece of HTML, and whether one of them has a script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripted = False
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append(tag)
        self.scripted |= any(name.startswith("on") or "javascript:" in (value or "") for name, value in attrs)


def texts(message: Message, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a message and of those in it, with the names that lead to it."""
    for field, value in message.ListFields():
        for one in value if field.is_repeated and not hasattr(value, "items") else [value]:
            if isinstance(one, Message):
                yield from texts(one, f"{path}.{field.name}")
            elif isinstance(one, str):
                yield f"{path}.{field.name}", one


def markup(app) -> list[str]:
    """What is wrong on a page: a field, and the text in it that is more than text."""
    wrong, seen = [], 0
    for element in app._tree:
        proto = getattr(element, "proto", None)
        if not isinstance(proto, Message):
            continue
        for path, text in texts(proto, type(proto).__name__):
            if "hostile" not in text:
                continue
            seen += 1
            if path.endswith("spec"):  # Plotly reads some tags in all text
                bad = [one for one in strings(json.loads(text)) if "<img" in one or "<b>hostile" in one]
            elif path.startswith("Html") or getattr(proto, "allow_html", False):
                tags = Tags(text)
                bad = [text] if tags.scripted or {"img", "script"} & set(tags.tags) else []
            else:
                bad = [text] if path.rpartition(".")[2] in MARKDOWN and MARKED.search(text) else []
            wrong += [f"{path}: {one[:200]}" for one in bad]
    assert seen, "the page shows nothing of the corpus"
    return wrong


def strings(value) -> Iterator[str]:
    """Every text in a value read from JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)


@pytest.fixture
def world(runs_dir, store, tmp_path):
    """A corpus whose ids, texts, columns, classes, runs, tags and tasks are hostile: its opening and a run."""
    path = tmp_path / "shard.parquet"
    write_shard(path)
    table = pq.read_table(path)
    columns = {name: table[name] for name in table.column_names}
    columns["chunk_id"] = pa.array([f"{hostile('id')}{row}" for row in range(len(table))])
    columns["text"] = pa.array([f"{hostile('text')} {row}" for row in range(len(table))])
    columns[hostile("class")] = pa.array([hostile(f"value{row % 3}") for row in range(len(table))])
    columns[hostile("number")] = pa.array(np.arange(len(table), dtype=float))
    columns[hostile("quality")] = columns.pop("quality_score")
    pq.write_table(pa.table(columns), path)
    config = CorpusConfig((str(path),), quality_columns=(hostile("quality"),))
    opening = openings(runs_dir).start(config, hostile("title"))
    opening.wait(240)
    corpus = opening.corpus
    lay_out(corpus, store.cache_dir, corpus.features[:, :2], corpus.features[:, 0])
    for lamb in (0.2, 0.8):
        run = finish_run(
            store,
            corpus,
            opening.config,
            lamb * corpus.quality - (1 - lamb) * corpus.features[:, 0],
            name=f"{hostile('run')} {lamb}",
            lamb=lamb,
            objective="pairwise",
            estimator="relaxed",
            shares={"quality": lamb, "diversity": 0.9 - lamb},
        )
        run.relabel(notes=hostile("notes"), tags=[hostile("tag")])
    return opening, run


@pytest.mark.parametrize(
    "script",
    ["app.py", "pages/data.py", "pages/runs.py", "pages/frontier.py", "pages/compare.py", "pages/export.py"],
)
def test_names_and_texts_of_a_corpus_are_text(page, world, script):
    opening, run = world
    app = page(script, corpus=opening.key, run=run.id)
    assert markup(app) == []
