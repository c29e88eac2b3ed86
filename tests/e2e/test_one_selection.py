"""What the page says is one selection: while λ is dragged, and whatever a visitor does, in any order.

All that is shown is held against pandas over the shard and the downloaded ids; these ids against the library's solver,
which is asked for the same λ.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Locator, Page, expect

from datamask.analyses.samples.extremes_panel import HEADINGS
from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus import Corpus, open_corpus
from datamask.dashboard.data import demo
from datamask.dashboard.drawing import words
from datamask.dashboard.map import map_layout
from datamask.dashboard.map.areas import areas_of
from datamask.dashboard.map.named_regions import load
from datamask.dashboard.runs import listing
from datamask.evaluation.live import Live, open_live
from datamask.runs.store import Run, RunStore
from tests.e2e.serving import STILL, served
from tests.e2e.steps import go, lasso, named, saved
from tests.making.maps import lay_out
from tests.making.runs import execute_run, write_shard

N = 600
LAMBDAS = (0.37, 0.9)

STEPS, SEED = (int(os.environ.get(f"DATAMASK_WALK_{name}", usual)) for name, usual in (("STEPS", "10"), ("SEED", "0")))
"""Of the suite; hundreds of steps are walked by hand."""

DRAWN = "map => [[...map.held.ground.rows], [...map.held.panels[0].layer.codes]]"
"""The rows that the map draws, and the class of each."""


@dataclass(frozen=True)
class Shard:
    """What is known of a corpus without the dashboard: its shard, and what a selection of it is worth.

    Attributes:
        live: the library's solver of the slider's problem; of it, the ends of diversity's scale.
        compared: bool ``(N,)``, the selection of the run that is compared.
        regions: the name of the region in which each row is drawn.
    """

    disk: pd.DataFrame
    live: Live
    compared: np.ndarray
    regions: np.ndarray

    @cached_property
    def unit(self) -> np.ndarray:
        """The features, float64, each of length 1."""
        features = np.stack(self.disk.feature_arr).astype(float)
        return features / np.linalg.norm(features, axis=1, keepdims=True)

    @cached_property
    def score(self) -> pd.Series:
        """Quality, as it stands in the shard."""
        return self.disk.quality_score.astype(float)

    def kept(self, ids: list[str]) -> np.ndarray:
        """Which rows these ids are, bool ``(N,)``."""
        kept = self.disk.chunk_id.isin(ids).to_numpy()
        assert kept.sum() == len(ids)
        return kept

    def raw_diversity(self, kept: np.ndarray) -> float:
        """By the objective's definition, in float64."""
        chosen = self.unit[kept]
        if self.live._config.objective == "pairwise":
            total = chosen.sum(axis=0)
            return -(total @ total - len(chosen)) / (len(chosen) * (len(chosen) - 1))
        return float((self.unit @ chosen.T).max(axis=1).clip(0).mean())

    def worth(self, kept: np.ndarray) -> tuple[float, float]:
        """Quality and diversity as shares of the attainable gain; 0 is random, 1 the best that either reaches alone."""
        mean, best = self.score.mean(), self.score.nlargest(int(kept.sum())).mean()
        scale = self.live.posed.calibrated.terms[0].scale
        return (self.score[kept].mean() - mean) / (best - mean), (self.raw_diversity(kept) - scale.zero) * scale.slope

    def is_as_good_as_solved(self, kept: np.ndarray, lamb: float) -> None:
        """The selection is worth what the library finds at this λ; a search by swaps may end elsewhere, as high."""
        self.live.solve(lamb)
        if self.live.provable(lamb):
            self.live.prove(lamb)
        solved = self.live.answer(lamb)
        quality, diversity = self.worth(kept)
        assert kept.sum() == solved.mask.sum()
        assert abs(lamb * quality + (1 - lamb) * diversity - solved.joint) <= solved.gap + 1e-5
        if self.live._config.objective == "pairwise" and not self.live._config.ruled:
            assert np.array_equal(kept, solved.mask)


def placed(config: CorpusConfig, store: RunStore) -> Corpus:
    """The corpus, with a layout and neighbors on disk, so that nothing but λ is under way."""
    corpus = open_corpus(config)
    lay_out(corpus, store.cache_dir)
    map_layout.prepare(corpus, store.cache_dir)
    return corpus


def region_of_each(corpus: Corpus, cache_dir: Path) -> np.ndarray:
    """The name of the region in which each row is drawn, by the grid of the layout; empty in none."""
    areas, kept = areas_of(map_layout.layout(corpus, cache_dir).points), load(corpus, cache_dir, "UMAP")
    name_of = [*kept.names, ""]  # the last one is read by -1
    names = [name_of[int(kept.codes[areas.codes == area][0])] for area in range(len(areas.peaks))]
    return np.array([*names, ""])[areas.codes]


def selected_in(folder: Path) -> np.ndarray:
    """The selection of a run's folder, bool ``(N,)``."""
    return pd.read_parquet(folder / "rows.parquet").selected.to_numpy().astype(bool)


def solved_along(page: Page) -> None:
    """Wait until λ is solved and proved all along, so that nothing changes by itself any more."""
    expect(page.locator(".signs .solved").nth(20)).to_be_attached()
    expect(page.locator(".st-key-menu").get_by_role("button", name="Stop", exact=True)).to_have_count(0)
    expect(page.locator(".answer")).not_to_contain_text("not proved yet")


def drag(page: Page, lamb: float) -> None:
    """Drag the slider there, let go, and wait until the page around it has followed."""
    slider = page.get_by_role("slider", name=re.compile("^Balance λ"))
    expect(slider).to_be_enabled()
    box, value = slider.bounding_box(), float(slider.input_value())
    assert box is not None

    def to(share: float) -> None:
        # the middle of the thumb moves along the track less its own width
        page.mouse.move(box["x"] + 8 + (box["width"] - 16) * share, box["y"] + box["height"] / 2)

    to(value)
    page.mouse.down()
    for share in np.linspace(value, lamb, 12):
        to(float(share))
    expect(page.locator(".st-key-answer_buttons")).to_have_css("opacity", "0.4")
    # the bar names the λ that the map draws
    expect(page.locator(".answer.moved .head b")).to_have_text(
        f"λ {page.locator('.lambda').get_attribute('data-shown')}"
    )
    # shares follow while the hand is on the slider, those of the λ that is drawn
    expect(page.locator(".st-key-explore_figures")).to_have_css("opacity", "1")
    drawn, before = page.locator(".lambda").get_attribute("data-shown"), counted(page)
    page.mouse.up()
    followed(page, lamb)
    if drawn == f"{lamb:g}":
        # a browser draws what has come when it finds the time
        expect_soon(page, lambda: counted(page)["regions"], before["regions"])
        expect_soon(page, lambda: counted(page)["bars"], before["bars"])
        both = before["groups"].keys() & counted(page)["groups"].keys()
        assert both
        expect_soon(
            page,
            lambda: {name: bar for name, bar in counted(page)["groups"].items() if name in both},
            {name: before["groups"][name] for name in both},
        )
    else:
        assert abs(float(drawn or 1) - lamb) <= 0.03, "the nearest one that is solved"


def drag_keep(page: Page, percent_kept: int, rows: str, sent: list[bytes | str]) -> None:
    """Drag the amount there, see its preview, and let go.

    Args:
        rows: what the bar says of it under the hand. sent: what the page tells the server, which is nothing meanwhile.
    """
    slider, moved = page.get_by_role("slider", name="Keep, in percent of all"), page.locator(".answer.moved")
    box, value = slider.bounding_box(), int(slider.input_value())
    assert box is not None

    def to(percent: float) -> None:
        page.mouse.move(box["x"] + 8 + (box["width"] - 16) * (percent - 1) / 98, box["y"] + box["height"] / 2)

    to(value)
    page.mouse.down()
    sent.clear()
    for at in np.linspace(value, percent_kept, 12):
        to(float(at))
    expect(moved.locator(".head b")).to_have_text(f"Keep {percent_kept} %")
    expect(moved.locator(".size")).to_contain_text(rows)
    # the map shows it hatched, and no number but its size, no list and no file is of it
    expect(page.locator(".preview .stage")).to_be_visible()
    expect(page.locator(".answer .meter")).to_have_count(0)
    expect(page.locator(".st-key-answer_buttons")).to_have_css("opacity", "0.4")
    assert not sent
    page.mouse.up()


def expect_soon(page: Page, look: Callable[[], object], expected: object) -> None:
    """Wait until the page shows what is expected, as `expect` does; fail with the difference."""
    for _ in range(200):
        if look() == expected:
            return
        page.wait_for_timeout(50)
    assert look() == expected


def counted(page: Page) -> dict:
    """What the page says of regions, groups and bars, in words and heights."""
    groups = page.locator(".st-key-explore_figures .bar.share").evaluate_all(TITLES)
    heights = "bars => bars.map((bar) => Number(bar.getAttribute('height')).toFixed(6))"
    return {
        "regions": page.locator(".names .name").evaluate_all(TITLES),
        "groups": {bar.partition(":")[0]: bar for bar in groups},
        "bars": page.locator(".st-key-explore_figures rect").evaluate_all(heights),
    }


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def followed(page: Page, lamb: float) -> str:
    """What the answer bar says below the welcome, once it says that λ and all is drawn."""
    bar = page.locator(".answer:not(.moved)")
    expect(bar.locator(".head b")).to_have_text(f"λ {lamb:g}")
    expect(page.locator(".st-key-answer_buttons")).to_have_css("opacity", "1")
    page.wait_for_function(STILL)
    return plain(bar.inner_text().removeprefix(bar.locator(".welcome").inner_text()).lstrip())


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f} %".replace("-", "−")


def grid(table: Locator) -> pd.DataFrame:
    """What a table shows, cell by cell; one that scrolls holds the rows in view alone."""
    expect(table.locator("td").first).to_be_attached()
    rows = table.locator("tr").evaluate_all("rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    return pd.DataFrame(rows[1:], columns=rows[0])


TITLES = "all => all.map((one) => one.title)"
TOLD = """plots => plots.map((plot) => {
  const box = plot.getBoundingClientRect(), told = [];
  for (let x = box.left + 0.75; x < box.right; x += 1.5) {
    plot.dispatchEvent(new PointerEvent("pointermove", {clientX: x, clientY: box.top + 2, bubbles: true}));
    const bar = plot.parentElement.querySelector(".counts").textContent;
    if (told.at(-1) !== bar) told.push(bar);
  }
  plot.dispatchEvent(new PointerEvent("pointerleave"));
  return told;
})"""
"""What each histogram says under the pointer, from its first bar to its last."""

BARS = 40


def hold_the_map(page: Page, shard: Shard, kept: np.ndarray) -> None:
    """The answer bar, regions, groups, histograms and list, against pandas."""
    n, count = len(shard.disk), int(kept.sum())
    tokens = f"{shard.disk.n_tokens[kept].sum() / 1000:.3g} k tokens"
    said = [plain(part) for part in page.locator(".answer").inner_text().splitlines()]
    worth = zip(("Quality", "Diversity"), shard.worth(kept), strict=True)
    for wanted in (f"{count:,} of {n:,} rows · {tokens}", *(f"{term} {percent(share)}" for term, share in worth)):
        assert wanted in said, (wanted, said)
    expect(page.get_by_text(f"of {n:,} rows")).to_have_count(1)

    shares = pd.Series(kept).groupby(shard.disk.source.astype(str).to_numpy()).agg(["sum", "size", "mean"])
    bars = page.locator(".st-key-explore_figures .bar.share")
    told = [plain(bar) for bar in bars.evaluate_all(TITLES)]
    assert len(told) == min(8, len(shares))
    for bar in told:
        row = shares.loc[bar.partition(":")[0]]
        assert f": {row['sum']:,.0f} of {row['size']:,.0f} selected, {percent(row['mean'])}; " in bar, bar
    regions = page.locator(".names .name").evaluate_all(TITLES)
    inside = pd.Series(kept).groupby(shard.regions).agg(["size", "mean"])
    assert len(regions) >= 3
    for region in regions:
        row = inside.loc[region.partition(":")[0]]
        said = f"{row['size']:,.0f} rows, {percent(row['mean'])} of them selected (all rows: {percent(count / n)})"
        assert said in plain(region), region

    histograms = page.locator(".st-key-explore_figures [role=group]").evaluate_all(TOLD)
    kept_of = [[int(bar.rsplit(", ", 1)[1].split()[0].replace(",", "")) for bar in bars] for bars in histograms]
    assert kept_of and all(sum(bars) == count for bars in kept_of), "every histogram counts every row once"
    # quality bar by bar, between the percentiles 0.5 and 99.5; what lies beyond is counted at the ends
    edges = np.linspace(*np.percentile(shard.score, [0.5, 99.5]), BARS + 1)
    counted = [np.histogram(shard.score[rows].clip(edges[0], edges[-1]), edges)[0] for rows in (kept | True, kept)]
    for place, bar in enumerate(histograms[0]):
        rows, rows_kept = (int(counts[place]) for counts in counted)
        assert bar == f"{edges[place]:,.4g} to {edges[place + 1]:,.4g}: {rows:,} rows, {rows_kept:,} selected"

    listed = grid(page.locator(".st-key-explore_reader table")).set_index("chunk_id")
    ticks = pd.Series(kept, shard.disk.chunk_id.to_numpy()).loc[listed.index]
    assert len(listed) >= 5 and (listed.selected == "true").tolist() == ticks.tolist()


def hold_the_comparison(page: Page, shard: Shard, kept: np.ndarray) -> None:
    """Overlap and values of the run and the current selection."""
    a, shares = shard.compared, (shard.compared.mean(), kept.mean())
    chance = percent(1 / (1 / shares[0] + 1 / shares[1] - 1))
    if shares[0] != shares[1]:
        chance += f", at most {percent(min(shares) / max(shares))}"
    table = page.get_by_test_id("stTable").first
    names = table.locator("th").all_inner_texts()
    shown = dict(zip(names, map(plain, table.locator("tbody tr").nth(1).locator("td").all_inner_texts()), strict=True))
    quality, diversity = shard.worth(kept)
    wanted = {
        "Quality": percent(quality),
        "Diversity": percent(diversity),
        "Mean score": f"{shard.score[kept].mean():.4g}",
        "Rows": f"{kept.sum():,}",
        "Tokens": plain(words.short(shard.disk.n_tokens[kept].sum())),
        "Overlap": f"{percent((a & kept).sum() / (a | kept).sum())} ({chance})",
    }
    assert wanted.items() <= shown.items(), [(key, shown.get(key), wanted[key]) for key in wanted]
    for name, rows in {"Both": a & kept, "Left out": a & ~kept, "Added": kept & ~a}.items():
        expect(page.get_by_role("radio", name=f"{name} {rows.sum():,}")).to_be_visible()


def hold(page: Page, folder: Path, shard: Shard, lamb: float) -> None:
    """All four pages at one λ."""
    said, ids, download = "", [], re.compile(r"^Download [\d,]+ ids$")
    while said != (now := followed(page, lamb)):  # until all λ are solved, an answer may become better in between
        said, ids = now, pq.read_table(saved(page, download, folder))["chunk_id"].to_pylist()
    kept = shard.kept(ids)
    shard.is_as_good_as_solved(kept, lamb)
    n, count, (quality, diversity) = len(kept), int(kept.sum()), shard.worth(kept)
    for worth in (f"{count:,} of {n:,} rows", f"Quality {percent(quality)}", f"Diversity {percent(diversity)}"):
        assert worth in said, (worth, said)
    hold_the_map(page, shard, kept)

    go(page, "Compare", "Compare")
    expect(page.get_by_test_id("stTable").first).to_be_visible()
    assert followed(page, lamb) == said
    hold_the_comparison(page, shard, kept)
    go(page, "Export", "Export")
    assert followed(page, lamb) == said
    assert pq.read_table(saved(page, "Download selected ids", folder))["chunk_id"].to_pylist() == ids
    report = saved(page, "Download report", folder).read_text(encoding="utf-8")
    assert f"λ {lamb:g}" in report and f"{shard.score[kept].mean():.6g}" in report and f"--lamb {lamb:g}" in report
    go(page, "Map", "Map")
    assert followed(page, lamb) == said


@pytest.mark.timeout(600)
def test_on_the_demo_all_pages_follow_lambda(browser_page: Page, tmp_path):
    page, sent = browser_page, list[bytes | str]()
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(data)))
    shard = Shard(
        pd.read_parquet(demo.CORPUS),
        open_live(open_corpus(demo.config()), SelectionConfig.from_options(), tmp_path / "cache"),
        selected_in(demo.results() / demo.RUN_ID),
        region_of_each(open_corpus(demo.config()), demo.results() / "cache"),
    )
    with served(tmp_path, DATAMASK_SAMPLE="") as address:
        page.goto(f"{address}/?lambda=0.8")  # a stored point that is no run: the solver is begun once it is drawn
        followed(page, 0.8)
        expect(page.get_by_text(HEADINGS[0])).to_be_visible()
        page.goto(address)
        followed(page, 0.5)
        for lamb in LAMBDAS:
            drag(page, lamb)
            solved_along(page)  # the demo's points come with it: what answers between them proves its bounds only now
            hold(page, tmp_path, shard, lamb)
        # another amount is another problem: the λ that stands is solved first
        drag_keep(page, 27, "1,617 of 5,988 rows", sent)
        fewer = SelectionConfig.from_options(select_ratio=0.27)
        shard = replace(shard, live=open_live(open_corpus(demo.config()), fewer, tmp_path / "cache"))
        hold(page, tmp_path, shard, LAMBDAS[-1])
        solved_along(page)
        drag(page, LAMBDAS[0])
        hold(page, tmp_path, shard, LAMBDAS[0])


@dataclass
class Walk:
    """A visitor who does anything in any order, and what follows from it.

    Attributes:
        shard: the corpus without the dashboard. corpus, store: as the dashboard has them.
        lamb: what was chosen. place: the page. run: the stored run that the selection must be; None: it is none's.
        pinned, passing: bool ``(N,)``, the rows that must be selected, and those that are shown.
    """

    page: Page
    folder: Path
    shard: Shard
    corpus: Corpus
    store: RunStore
    rng: np.random.Generator
    lamb: float
    place: str = "Map"
    run: Run | None = None
    pinned: np.ndarray = field(default_factory=lambda: np.zeros(N, bool))
    passing: np.ndarray = field(default_factory=lambda: np.ones(N, bool))

    def drag(self) -> None:
        solved_along(self.page)
        self.lamb, self.run = float(self.rng.choice([lamb for lamb in (0.2, *LAMBDAS) if lamb != self.lamb])), None
        drag(self.page, self.lamb)

    def keep(self) -> None:
        if self.run is not None:  # it is kept
            return
        before = {run.id for run in self.store.list()}
        self.page.get_by_role("button", name="Keep as run", exact=True).click()
        expect_soon(self.page, lambda: named(self.page) in {"", *before}, False)
        self.run = self.store.get(named(self.page))

    def pin(self) -> None:
        """Pin what a lasso and a word leave."""
        self.filter()
        lasso(self.page, 0)
        expect(self.page.locator(".st-key-chip_region")).to_be_visible()
        self.page.wait_for_function(STILL)
        listed = self.listed()
        assert not (listed & ~self.passing).any()
        if listed.any():
            self.page.get_by_role("button", name=f"Pin these {listed.sum()}", exact=True).click()
            expect(self.page.get_by_role("button", name=re.compile(f"^Pinned {listed.sum()}:")).first).to_be_visible()
            self.pinned, self.run = self.pinned | listed, None
        self.show_all()

    def let_go(self) -> None:
        pins = self.page.get_by_role("button", name=re.compile("^Pinned "))
        for left in reversed(range(pins.count())):
            pins.first.click()
            expect(pins).to_have_count(left)
            self.pinned, self.run = np.zeros(N, bool), None

    def filter(self) -> None:
        self.show_all()
        word = str(self.rng.integers(10, 60))
        self.passing = self.shard.disk.text.str.contains(word).to_numpy()
        box = self.page.get_by_role("textbox", name="Search the texts")
        box.fill(word)
        box.press("Enter")

    def show_all(self) -> None:
        if not self.passing.all():
            self.page.get_by_role("button", name="Show all rows").click()
            self.passing = np.ones(N, bool)
            self.headline()

    def turn(self) -> None:
        self.place = str(self.rng.choice(["Frontier", "Runs", "Compare", "Evidence", "Data", "Export"]))
        go(self.page, self.place, self.place)

    def reload(self) -> None:
        self.page.reload()

    def choose_run(self) -> None:
        runs = self.store.list()
        self.run = runs[self.rng.integers(len(runs))]
        names = listing.unlike({run.id: listing.name_of(run) for run in runs})
        self.page.get_by_role("combobox", name="Selected by").click()
        self.page.get_by_role("option", name=names[self.run.id], exact=True).click()
        expect_soon(self.page, lambda: named(self.page), self.run.id)
        settings = self.run.config.selection
        ids = [] if settings.pin is None else pd.read_parquet(settings.pin).iloc[:, 0].tolist()
        self.lamb, self.pinned = settings.lamb, self.shard.kept(ids)

    DOES = (drag, keep, pin, let_go, filter, turn, reload, choose_run)

    def step(self) -> None:
        """Do one of these, and hold what is shown and given against what follows from it."""
        act = self.DOES[self.rng.integers(len(self.DOES))]
        print(act.__name__, self.lamb, self.pinned.sum(), self.passing.sum(), self.run and self.run.id)  # of a failure
        if act not in (Walk.turn, Walk.reload) and self.place != "Map":
            self.place = "Map"
            go(self.page, "Map", "Map")
        act(self)
        self.hold()

    def hold(self) -> None:
        page, said = self.page, followed(self.page, self.lamb)
        download = re.compile(r"^Download [\d,]+ ids$")
        kept = self.shard.kept(pq.read_table(saved(page, download, self.folder))["chunk_id"].to_pylist())
        quality, diversity = self.shard.worth(kept)
        for worth in (
            f"{kept.sum():,} of {N:,} rows",
            f"Quality {percent(quality)}",
            f"Diversity {percent(diversity)}",
        ):
            assert worth in said, (worth, said)
        assert ("with rules" in said) == self.pinned.any(), said
        assert kept.sum() == round(0.3 * N) and kept[self.pinned].all()
        if self.run is not None:
            assert f"run {listing.name_of(self.run)}" in said, said
            assert np.array_equal(kept, selected_in(self.run.path))
        elif self.pinned.any():
            self.shard.disk.loc[self.pinned, ["chunk_id"]].to_parquet(self.folder / "pins.parquet")
            settings = replace(self.shard.live._config, pin=str(self.folder / "pins.parquet"))
            ruled = replace(self.shard, live=open_live(self.corpus, settings, self.store.cache_dir))
            ruled.is_as_good_as_solved(kept, self.lamb)
        else:
            self.shard.is_as_good_as_solved(kept, self.lamb)
        if self.place == "Map":
            drawn = page.locator(".map")
            expect(drawn).to_have_attribute("data-drawn", "1")
            wanted = kept[drawn.evaluate(DRAWN)[0]].astype(int).tolist()
            expect_soon(page, lambda: drawn.evaluate(DRAWN)[1], wanted)
            self.headline()
            assert np.array_equal(self.listed(), self.passing)

    def listed(self) -> np.ndarray:
        """The rows of the list, bool ``(N,)``, by its file; a list of all rows has none."""
        if self.passing.all():
            expect(self.page.get_by_role("button", name=re.compile("ids .CSV"))).to_have_count(0, timeout=60_000)
            return self.passing
        return self.shard.kept(pd.read_csv(saved(self.page, re.compile("ids .CSV"), self.folder)).chunk_id.tolist())

    def headline(self) -> None:
        shown = self.page.get_by_text(f"{self.passing.sum():,} of {N:,} rows shown")
        expect(shown).to_have_count(int(not self.passing.all()))


@pytest.mark.timeout(3600)
def test_whatever_a_visitor_does_bar_map_and_files_are_one_selection(browser_page: Page, tmp_path):
    page, store, path = browser_page, RunStore(tmp_path / "runs"), tmp_path / "shard.parquet"
    config = write_shard(path, N)
    run = execute_run(store, config, "first", objective="pairwise", estimator="relaxed")
    corpus = placed(config, store)
    solver, regions = open_live(corpus, run.config.selection, store.cache_dir), region_of_each(corpus, store.cache_dir)
    shard = Shard(pd.read_parquet(path), solver, selected_in(run.path), regions)
    walk = Walk(page, tmp_path, shard, corpus, store, np.random.default_rng(SEED), LAMBDAS[0])
    with served(tmp_path) as address:
        page.goto(f"{address}/?run={run.id}&lambda={walk.lamb}")
        walk.hold()
        for _ in range(STEPS):
            walk.step()
