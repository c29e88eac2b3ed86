"""The frontier, the sweeps and the report in a real browser, each number held against the package's answer."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from datamask.analyses.frontier import sweeping
from datamask.config import CorpusConfig
from datamask.dashboard.data.openings import openings
from datamask.runs.store import RunStore
from datamask.runs.sweep import sweep
from datamask.runs.varying import Plan, points
from datamask.work.context import Work
from tests.e2e.serving import served
from tests.e2e.steps import choose

TINY = CorpusConfig((str(Path(__file__).resolve().parents[2] / "sample_data" / "tiny"),))
LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0)
BETWEEN = 0.45

# of the marks of a chart, what they are said to stand for
HOVERS = """chart => chart.data.flatMap(trace => [...(trace.text || [])])"""
CURVES = """chart => chart.data.filter(trace => trace.customdata?.length > 1).map(trace =>
    trace.customdata.map((run, i) => [String(run), trace.x[i], trace.y[i]]))"""


def press(page: Page, name: str) -> None:
    """One of the choices that lie side by side."""
    page.get_by_test_id("stMain").get_by_role("radio", name=name, exact=True).click()


def pairwise(page: Page) -> None:
    """Choose it in a view of one objective."""
    choose(page, "Diversity objective", "Pair-wise similarity")
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")


def said(mark: str) -> dict[str, str]:
    """``<b>title</b><br>a: 1<br>b: 2`` as a dictionary, the title under its own name."""
    parts = [part.removeprefix("<b>").removesuffix("</b>") for part in mark.split("<br>")]
    return dict(part.split(": ", 1) if ": " in part else (part, part) for part in parts)


@pytest.mark.timeout(900)
def test_every_view_says_what_the_package_says(tmp_path, browser_page: Page):
    store, page = RunStore(tmp_path / "runs"), browser_page
    opening = openings(store.root).start(TINY, "tiny")
    opening.wait(240)
    sizes = (2, 8)
    plans = [
        Plan(TINY, swept, "made for the test")
        for swept in (
            sweeping.along_lambda(["pairwise"], [*LAMBDAS, BETWEEN]),
            points({"objective": "pairwise", "lamb": 0.5}, [("select_ratio", (0.1, 0.5))]),
            points(
                {"objective": "pairwise", "estimator": "reinforce", "n_epochs": 12}, [("n_rollout", sizes)], seeds=2
            ),
        )
    ]
    small = sweeping.slices(TINY, len(opening.corpus))
    plans += [Plan(small[name], sweeping.along_lambda(["pairwise"], LAMBDAS), name) for name in small if name != "N"]
    runs = {run.id: run for plan in plans for done in sweep(store, plan, Work(threads=1)) for run in [done.run]}
    summaries = {key: run.status().to_dict()["summary"] for key, run in runs.items()}
    settings = {key: run.config.selection for key, run in runs.items()}
    own = {
        settings[key].lamb: key
        for key, run in runs.items()
        if settings[key].estimator == "relaxed" and settings[key].select_ratio == 0.3 and run.config.corpus == TINY
    }

    with served(tmp_path) as address:
        main = page.get_by_test_id("stMain")
        page.goto(f"{address}/runs?view=frontier&corpus={opening.key}&run={own[0.25]}")
        # the price lies between what the stored steps to the left and to the right of the point really cost
        price = main.get_by_text(re.compile(r"costs [\d.]+ % diversity"))
        expect(price).to_be_visible()
        price = float(re.search(r"costs ([\d.]+) %", price.inner_text()).group(1))
        left, point, right = (summaries[own[lamb]]["calibrated"] for lamb in (0.0, 0.25, BETWEEN))
        costs = [
            (one["diversity"] - two["diversity"]) / (two["quality"] - one["quality"])
            for one, two in ((left, point), (point, right))
        ]
        assert 0 < costs[0] - 0.005 <= price <= costs[1] + 0.005
        # "keep at least": the most diverse stored point that keeps so much
        press(page, "minimum quality")
        kept = {lamb: summaries[key]["calibrated"]["quality"] for lamb, key in own.items()}
        enough = max(
            (lamb for lamb in own if kept[lamb] >= 0.95),
            key=lambda lamb: summaries[own[lamb]]["calibrated"]["diversity"],
        )
        expect(main.get_by_text(re.compile(rf"^λ {enough:g} has quality {100 * kept[enough]:.1f}"))).to_be_visible()

        # the select ratio
        page.goto(f"{address}/runs?view=sweep&corpus={opening.key}")
        chart = main.locator(".st-key-sweep_chart .js-plotly-plot")
        expect(chart.locator(".trace").first).to_be_attached()
        marks = [said(mark) for mark in chart.evaluate(HOVERS)]
        assert len(marks) == 6
        for mark in marks:
            key = next(
                key
                for key, one in settings.items()
                if one.estimator == "relaxed"
                and one.lamb == 0.5
                and runs[key].config.corpus == TINY
                and one.select_ratio == pytest.approx(float(mark["Select ratio"].removesuffix("%")) / 100)
            )
            term = next(value for value in mark.values() if value in ("quality", "diversity"))
            told = float(mark["share, %"].replace("−", "-"))
            assert told == pytest.approx(100 * summaries[key]["calibrated"][term], abs=0.06)

        # the group size: the mean over seeds at the moment at which the first of them ends
        page.goto(f"{address}/runs?view=sweep&corpus={opening.key}&vary=n_rollout")
        chart = main.locator(".st-key-sweep_chart .js-plotly-plot")
        expect(chart.locator(".trace").first).to_be_attached()
        marks = [said(mark) for mark in chart.evaluate(HOVERS)]
        for size in sizes:
            # in the order of their time, which is rounded in the words
            last = [mark for mark in marks if mark["Masks per step (G)"] == str(size)][-1]
            curves = [run.metrics() for key, run in runs.items() if settings[key].n_rollout == size]
            curves = [
                (one["seconds"][there], one["joint"][there])
                for one in curves
                for there in [np.isfinite(one["joint"]) & (one["seconds"] > 0)]
            ]
            end = min(seconds[-1] for seconds, _ in curves)
            # on a busy machine one may end before the other has a value: then their ends are what compares
            apart = end <= max(seconds[0] for seconds, _ in curves)
            own_mean = np.mean(
                [values[-1] if apart else np.interp(np.log(end), np.log(seconds), values) for seconds, values in curves]
            )
            assert len(curves) == 2
            assert float(last["mean"].replace("−", "-")) == pytest.approx(own_mean, abs=1e-3)
            assert last["seeds"] == "2"

        # slices of the corpus over the whole one
        choose(page, "Vary", "λ, one curve for each part of the corpus")
        pairwise(page)
        expect(main.get_by_text(re.compile("^Against all rows"))).to_be_visible()
        expect(page.locator(".js-plotly-plot")).to_have_count(1)
        page.wait_for_function("document.querySelector('.js-plotly-plot')?.data?.length > 4")
        curves = page.locator(".js-plotly-plot").evaluate(CURVES)
        # besides what the arrows at the edge stand for
        assert sum(len(curve) >= len(LAMBDAS) for curve in curves) == len(small) > 1
        for run_id, x, y in (point for curve in curves for point in curve):
            shares = summaries[run_id]["calibrated"]
            inside = min(shares["quality"], shares["diversity"]) >= -0.2
            assert not inside or (x, y) == pytest.approx((shares["quality"], shares["diversity"]), abs=1e-9)
        for name in [name for name in small if name != "N"]:
            part = {
                settings[key].lamb: summaries[key]["calibrated"]
                for key, run in runs.items()
                if run.config.corpus == small[name]
            }
            far = max(
                np.hypot(
                    part[lamb]["quality"] - summaries[own[lamb]]["calibrated"]["quality"],
                    part[lamb]["diversity"] - summaries[own[lamb]]["calibrated"]["diversity"],
                )
                for lamb in LAMBDAS
            )
            expect(main.get_by_text(f"{name} differs by at most {100 * far:.1f} %")).to_be_visible()

        # the report opens without a network, and its first sentence says the run's numbers
        page.goto(f"{address}/export?corpus={opening.key}&run={own[0.5]}")
        with page.expect_download() as waiting:
            main.get_by_role("button", name="Download report (HTML)").click()
        target = tmp_path / "report.html"
        waiting.value.save_as(target)
    asked: list[str] = []
    page.goto("about:blank")  # the page before asks for its server, which has ended
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))
    page.goto(target.as_uri())
    assert all(url.startswith(("file:", "data:")) for url in asked)
    assert page.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
    sentence, summary = page.locator(".lead").inner_text(), summaries[own[0.5]]
    assert sentence.startswith(f"The run keeps {summary['selected']:,} of {summary['n']:,} rows")
    quality, diversity = (
        float(number.replace("−", "-"))
        for number in re.findall(r"(?:quality|diversity[^:;]*?) ([−\d.]+)\s*%", sentence)
    )
    assert quality == pytest.approx(100 * summary["calibrated"]["quality"], abs=0.051)
    assert diversity == pytest.approx(100 * summary["calibrated"]["diversity"], abs=0.051)
    assert "λ = 0.5" in sentence and page.locator("svg").count() >= 2 and page.locator("img").count() >= 2
