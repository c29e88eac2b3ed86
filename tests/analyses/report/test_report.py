"""The report: whole, safe and true: no script, nothing fetched, foreign text escaped, numbers those of the summary."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from datamask.ablation import wording
from datamask.analyses.report import raster, report, sentence
from datamask.analyses.report.page import latest_board
from datamask.analyses.report.samples import EACH, samples
from datamask.corpus import open_corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import provenance
from datamask.runs.ablation_results import save
from datamask.runs.store import RunStore
from datamask.runs.stored_measures import stored_board
from tests.making.ablations import ROBUST, made_result
from tests.making.runs import finish_run, write_shard

EVIL = "<script>alert('x')</script><img src=https://evil.example/a.png onerror=alert(1)>"


VOID = {"meta", "img", "link", "br", "line", "rect"}


class Reader(HTMLParser):
    """Every tag with its attributes, the plain text, and whether tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        self.text += data + " "


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.open
    return reader


@pytest.fixture
def world(tmp_path):
    """A corpus whose ids, texts and domains are hostile, and a run over lambda with a hostile name."""
    path = tmp_path / "shard.parquet"
    config = write_shard(path)
    table = pq.read_table(path)
    columns = {name: table[name] for name in table.column_names}
    columns["chunk_id"] = pa.array([f"{EVIL}{k}" for k in range(len(table))])
    columns["text"] = pa.array([f"{EVIL} text {k} " * 30 for k in range(len(table))])
    columns["source"] = pa.array([f"{EVIL}{k % 3}" for k in range(len(table))])
    pq.write_table(pa.table(columns), path)
    corpus, store = open_corpus(config), RunStore(tmp_path / "runs")
    scores = np.random.default_rng(0).normal(size=len(corpus))
    runs = [
        finish_run(
            store,
            corpus,
            config,
            scores,
            name=f"{EVIL} {lamb}",
            lamb=lamb,
            shares={"quality": lamb, "diversity": 0.9 - lamb},
        )
        for lamb in (0.2, 0.5, 0.8)
    ]
    runs[1].relabel(notes=f"notes {EVIL}", tags=[EVIL])
    return store, corpus, runs


def test_nothing_foreign_becomes_markup_and_nothing_is_fetched(world):
    store, corpus, runs = world
    page = report(runs[1], runs, corpus, store.cache_dir)
    reader = read(page)
    assert {tag for tag, _ in reader.tags}.isdisjoint({"script", "iframe", "object", "embed", "base", "form", "a"})
    for tag, attributes in reader.tags:
        assert not any(name.startswith("on") for name in attributes), tag
        for name in ("src", "href", "xlink:href", "action", "poster", "srcset", "data"):
            assert attributes.get(name, "data:").startswith("data:"), (tag, name)
    assert "url(" not in page and "@import" not in page
    assert reader.text.count(EVIL) > 20, "it is all still there to read"
    policy = next(a["content"] for tag, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy


def test_the_newest_finished_ablation_of_the_corpus_is_in_it(world):
    store, corpus, runs = world
    assert "Which methods help" not in report(runs[1], runs, corpus, store.cache_dir)
    result = replace(made_result(ROBUST), fingerprint=corpus.fingerprint)
    save(store.cache_dir, result)
    save(store.cache_dir, replace(result, question=replace(result.question, seeds=20), created=2.0))
    text = " ".join(read(report(runs[1], runs, corpus, store.cache_dir)).text.split())
    assert "Which methods help" in text and wording.headline(result) in text
    assert "better / worse than random" in text and "10 of 10 seeds" in text


def test_numbers_are_the_summarys(world):
    store, corpus, runs = world
    summary = runs[1].status().to_dict()["summary"]
    said = sentence(runs[1])
    n, size = summary["n"], summary["selected"]
    assert said.startswith(f"The run selects {size} of {n} rows ({words.percent(size / n, 1)})")
    assert f"quality {words.percent(0.5, 1)}" in said and "λ = 0.5" in said
    page = report(runs[1], runs, corpus, store.cache_dir, now=0)
    text = read(page).text
    for part in (
        said,
        words.value(summary["quality"], 6),
        corpus.fingerprint,
        provenance.command(runs[1]),
        "1970-01-01 00:00 UTC",
        words.value(summary["diversity"], 6),
    ):
        assert part in text
    heads = re.findall("<h2>(.*?)</h2>", page)
    groups = "Under- and over-represented groups"
    assert heads == ["Summary", "Selection", groups, "Frontier", "Values", "Rows", "Provenance"]


def test_a_file_name_that_is_no_utf8_is_told(world):
    store, _, runs = world
    path = runs[1].path / "config.json"
    record = json.loads(path.read_text())
    record["config"]["corpus"]["inputs"] = ["caf\udce9.parquet"]
    path.write_text(json.dumps(record))
    page = report(runs[1], runs, None, store.cache_dir)
    assert "caf\\udce9.parquet" in page and page.encode("utf-8")


def test_less_than_random_and_a_proof_are_said(world):
    _, corpus, runs = world
    config = runs[0].config.corpus
    store = RunStore(runs[0].path.parent)
    run = finish_run(store, corpus, config, corpus.quality, shares={"quality": 1.0, "diversity": -0.5}, lamb=1.0)
    assert "less diversity (Facility location) than a random subset (−50.0" in sentence(run)
    path = run.path / "status.json"
    status = json.loads(path.read_text())
    status["summary"] |= {"upper_bound": 1.01, "gap": 0.01}
    path.write_text(json.dumps(status))
    assert sentence(run).endswith(
        "; by this objective at this λ, no selection of this size is "
        "better by more than 1\u00a0% of the range from random to best."
    )
    for gap, told in ((0.01234, "1.3\u00a0%"), (3.21e-6, "0.00033\u00a0%"), (4e-7, "a millionth")):
        status["summary"]["gap"] = gap
        path.write_text(json.dumps(status))
        assert sentence(run).endswith(f"by more than {told} of the range from random to best."), "rounded up"
    status["summary"]["budget"] = 1000
    path.write_text(json.dumps(status))
    assert "no selection that fills these tokens is better" in sentence(run)
    status["summary"]["bound_holds_for"] = "listed"
    path.write_text(json.dumps(status))
    assert "no selection" not in sentence(run), "a bound on listed neighbours proves nothing of the objective itself"


def test_a_proof_names_the_rules_it_holds_under(world):
    _, corpus, runs = world
    run = finish_run(RunStore(runs[0].path.parent), corpus, runs[0].config.corpus, corpus.quality, prune=0.2)
    path = run.path / "status.json"
    status = json.loads(path.read_text())
    status["summary"] |= {"upper_bound": 1.01, "gap": 0.01}
    path.write_text(json.dumps(status))
    assert "no selection of this size under the same rules is better by more than 1" in sentence(run)


def test_without_its_corpus_the_rest_is_there(world):
    text = read(report(world[2][1])).text
    assert "was not open" in text and "Groups" not in text and "rows colored" not in text and "Provenance" in text


def test_texts_are_those_at_the_threshold(world):
    _, corpus, runs = world
    table = runs[1].rows()
    score, selected = table["score"].to_numpy(), table["selected"].to_numpy(zero_copy_only=False)
    ids = np.array(corpus.ids.to_pylist(), object)
    found = samples(runs[1], corpus)
    kept = sorted(np.flatnonzero(selected), key=lambda row: score[row])[:EACH]
    out = sorted(np.flatnonzero(~selected), key=lambda row: -score[row])[:EACH]
    assert [one.id for one in found["Selected, nearest to the threshold"]] == list(ids[kept])
    assert [one.id for one in found["Not selected, nearest to the threshold"]] == list(ids[out])
    assert {one.id for one in found["Selected, at random"]} <= set(ids[selected])


def test_a_stored_scoreboard_comes_along(world):
    store, corpus, runs = world
    cell = {"value": 1.0, "low": 0.5, "high": 1.5, "verdict": "", "note": ""}
    board = {
        "n": 240,
        "left": [],
        "selected": {runs[1].id: 72, "random": 72},
        "notes": [],
        "measures": [
            {
                "measure": "vendi",
                "label": "Vendi score",
                "says": EVIL,
                "better": "higher",
                "best": runs[1].id,
                "tied": [],
                "selections": {runs[1].id: cell, "random": cell},
            }
        ],
    }
    stored_board([runs[1]], corpus.fingerprint, store.cache_dir).keep(board)
    assert latest_board(runs[1], corpus.fingerprint, store.cache_dir) == board
    assert latest_board(runs[0], corpus.fingerprint, store.cache_dir) is None
    assert "A is best" in read(report(runs[1], runs, corpus, store.cache_dir)).text


def test_the_map_shows_each_sample_where_it_lies():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    png = Image.open(io.BytesIO(raster.picture(points, np.array([1, 0, 0, 0], bool)))).convert("RGBA")
    picture = np.asarray(png).astype(int)
    assert picture.shape == (raster.SIDE, raster.SIDE, 4)
    middle = raster.SIDE // 2
    for vertical in (slice(None, middle), slice(middle, None)):
        for across in (slice(None, middle), slice(middle, None)):
            assert (picture[vertical, across, 3] > 0).sum() > 5
    corner = picture[middle:, :middle]  # y grows upwards
    rest = picture[:middle, middle:]
    blue = corner[corner[..., 3] > 0].mean(axis=0)
    grey = rest[rest[..., 3] > 0].mean(axis=0)
    assert blue[2] - blue[0] > 100 and abs(grey[2] - grey[0]) < 60 and blue[3] > grey[3]


def test_light_dark_and_paper_have_their_colours(world):
    page = report(world[2][0])
    style = re.search(r"<style>(.*?)</style>", page, re.S)[1]
    assert "prefers-color-scheme:dark" in style and "@media print" in style
    used = set(re.findall(r"var\(--(\w+)\)", page))
    assert used <= set(re.findall(r"--(\w+):", style))
