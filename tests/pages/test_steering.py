"""Steering: rules made on the Map are obeyed to the sample by the run that is started, or refused with why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from datamask.analyses.steering import mixture_panel
from datamask.api import select
from datamask.config import Quota
from datamask.dashboard.map.filters import Among, Between
from datamask.dashboard.runs import outcome, provenance
from datamask.errors import OptionError
from datamask.runs.rule_book import RuleStore, share_words
from tests.pages.reading import brush, end_of, mix, mixture, view

pytestmark = pytest.mark.usefixtures("idle_queue")


def searched(app, text):
    app.text_input(key="explore_search").set_value(text).run()
    assert not app.exception
    return app


def rule_labels(app):
    return [button.label for button in app.button if button.icon == ":material/close:"]


def started(app, store):
    """The run that Start makes, ended. It may have ended, and left the address, before the page is drawn."""
    before = {run.id for run in store.list()}
    app.button(key="start").click().run()
    assert not app.exception and not app.error, [error.value for error in app.error]
    (run,) = (run for run in store.list() if run.id not in before)
    assert end_of(run) == "done", run.status().error
    return run


def on_run_page(page, app, opened):
    again = page("pages/runs.py", corpus=opened.key, objective="facility", rules=app.query_params["rules"])
    again.selectbox(key="form_objective").set_value("pairwise")
    again.selectbox(key="form_device").set_value("cpu")
    again.number_input(key="relaxed_n_epochs").set_value(5).run()
    return again


def learned_cold(opened, config):
    """The value of the same settings from nothing."""
    return select(opened.corpus, config).summary["joint"]


def sources(corpus):
    return np.array(corpus.metadata["source"].cast(pa.string()).to_pylist())


def quotas(app, runs_dir):
    """Those of the view, as a command line writes them."""
    rules = RuleStore(runs_dir).load(app.session_state["view"].rules).rules
    return [str(rule.quota) for rule in rules if rule.quota is not None]


def rows_holding(corpus, text):
    texts = corpus.metadata["text"].to_pylist()
    return np.flatnonzero([all(word in found for word in text.split()) for found in texts])


def test_a_pin_is_in_a_ban_is_out_and_a_quota_is_met_to_the_sample(page, opened, store, mapped, explained):
    corpus = opened.corpus
    app = page(corpus=opened.key)
    assert not [button for button in app.button if button.key == "rule_pin"]
    searched(app, "sample 11").button(key="rule_pin").click().run()
    searched(app, "sample 20").button(key="rule_ban").click().run()
    app.button(key="clear_all").click().run()
    # typed and pressed at once: the button was drawn before the share
    mix(app, code="50")
    pinned, banned = rows_holding(corpus, "sample 11"), rows_holding(corpus, "sample 20")
    assert len(pinned) == 12 and rule_labels(app)[0].startswith(f"Pinned {len(pinned)}")
    explained(app, 8)

    app = on_run_page(page, app, opened)
    assert len(rule_labels(app)) == 3
    run = started(app, store)
    selected = run.rows()["selected"].to_numpy().astype(bool)
    code = sources(corpus) == "code"
    assert selected.sum() == 72 and selected[pinned].all() and not selected[banned].any()
    assert selected[code].sum() == 36
    rules = outcome.rules(run)
    assert rules == ["12 rows pinned", f"{len(banned)} rows banned", "source code: 50 % of the selection"]
    assert "under the same rules" in outcome.certificate(run) and rules[0] in outcome.certificate(run)
    told = dict(provenance.table(run).itertuples(index=False))
    assert told["rules"] == "; ".join(rules)
    assert run.config.name.endswith("3 rules")


def test_given_samples_are_not_exported_and_a_budget_is_kept(page, opened, store, mapped):
    corpus = opened.corpus
    app = page(corpus=opened.key)
    searched(app, "sample 1").button(key="rule_given").click().run()
    given = rows_holding(corpus, "sample 1")
    app = on_run_page(page, app, opened)
    app.segmented_control(key="form_amount").set_value("tokens").run()
    app.text_input(key="form_budget").set_value("1.5k").run()
    run = started(app, store)
    assert run.config.selection.budget == 1500
    selected = run.rows()["selected"].to_numpy().astype(bool)
    exported = set(run.selection()["chunk_id"].to_pylist())
    assert exported and not exported & {corpus.ids[int(row)].as_py() for row in given}
    spent = corpus.lengths[selected & ~np.isin(np.arange(len(corpus)), given)].sum()
    assert 1500 - corpus.lengths.max() <= spent <= 1500  # filled up to less than its longest sample
    assert f"{len(given)} rows given" in outcome.rules(run)


def start_link(app):
    return next(link for link in app.get("page_link") if link.proto.label == "Start a run under these rules")


def said_impossible(app):
    return " ".join(error.value for error in app.error)


def test_impossible_rules_are_refused_where_they_are_made_until_one_is_removed(page, opened, store, mapped):
    app = page(corpus=opened.key)
    searched(app, "sample 11").button(key="rule_pin").click().run()
    assert not app.error and not start_link(app).proto.disabled
    app.button(key="rule_ban").click().run()
    assert "both name 12 rows" in said_impossible(app) and start_link(app).proto.disabled
    app = on_run_page(page, app, opened)
    assert "both name 12 rows" in said_impossible(app) and app.button(key="start").disabled
    app.button(key="rule_1").click().run()
    assert not app.error and len(rule_labels(app)) == 1 and not app.button(key="start").disabled
    app.button(key="rule_0").click().run()
    assert not rule_labels(app) and "rules" not in app.query_params


def test_rules_are_held_against_the_problem_of_the_view(page, opened, store, mapped):
    app = page(corpus=opened.key)
    searched(app, "sample").button(key="clear_all").click().run()
    draw = Between("quality", float(np.sort(opened.corpus.quality)[-80]), 1e9)
    brush(app, draw)
    app.run().button(key="rule_pin").click().run()
    assert "names 80 rows, but only 72 are to be selected" in said_impossible(app) and start_link(app).proto.disabled
    problem = app.session_state["view"].problem
    view(app, problem=replace(problem, select_ratio=0.5))
    assert not app.error and not start_link(app).proto.disabled
    view(app, problem=replace(problem, budget=50.0))
    assert "but only 50 are to be selected" in said_impossible(app)
    # a quota on a group that is banned, of the rows and of the tokens
    app.button(key="rule_0").click().run()
    view(app, problem=problem, rules="")
    brush(app, Among("source", ("code",)))
    app.run().button(key="rule_ban").click().run()
    assert not app.error
    mix(app, code="50 to 100")
    assert "must have at least 36 rows, but 0 may be selected" in said_impossible(app)
    view(app, problem=replace(problem, budget=2000.0))
    assert "must have at least 1,000 of the 2,000 tokens, but 0 may be selected" in said_impossible(app)
    shares = mixture(app).value.set_index("group")["corpus"]
    lengths = pd.Series(opened.corpus.lengths).groupby(sources(opened.corpus)).sum()
    assert shares.to_dict() == pytest.approx((100 * lengths / lengths.sum()).to_dict()), "of the tokens"


def test_a_mixture_shows_what_each_group_has_and_is_what_it_gets(page, opened, runs_dir, finished):
    corpus, run = opened.corpus, finished(name="mine")
    app = page(corpus=opened.key, run=run.id)
    table = mixture(app).value.set_index("group")
    source, selected = sources(corpus), run.rows()["selected"].to_numpy(zero_copy_only=False)
    counts = pd.Series(source).value_counts()
    assert table["corpus"].to_dict() == pytest.approx((100 * counts / len(corpus)).to_dict())
    assert table["now"].sum() == pytest.approx(100)
    for group, now in table["now"].items():
        rows = selected & (source == group)
        assert now == pytest.approx(100 * rows.sum() / selected.sum())
        assert table["tokens"][group] == corpus.lengths[rows].sum()
    mix(app, code="60 %", web="10 to 20")
    (label,) = rule_labels(app)
    assert label.startswith("Mixture by source") and "code 60" in label and "web 10" in label
    wanted = mixture(app).value.set_index("group")["share wanted"].str.replace("\u00a0", " ")
    assert wanted[wanted != ""].to_dict() == {"code": "60 %", "web": "10 % to 20 %"}
    assert quotas(app, runs_dir) == ["source=code:0.6:0.6", "source=web:0.1:0.2"]
    mix(app, web="")
    assert quotas(app, runs_dir) == ["source=code:0.6:0.6"]
    mix(app)
    assert quotas(app, runs_dir) == ["source=code:0.6:0.6"], "nothing was typed"
    mix(app, web="30 to 10")
    assert "got '30 to 10'" in said_impossible(app) and quotas(app, runs_dir) == ["source=code:0.6:0.6"]
    mix(app, press=False, web="50")
    assert "allow from" in said_impossible(app) and "together" in said_impossible(app)
    app.button(key="rule_mixture").click().run()
    assert not rule_labels(app) and not app.session_state["view"].rules


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("60", (0.6, 0.6)),
        (" 12.5 % ", (0.125, 0.125)),
        ("10 to 30", (0.1, 0.3)),
        (share_words(Quota("a", "b", 0.1, 0.3)), (0.1, 0.3)),
    ],
)
def test_a_share_is_read_as_it_is_written(typed, read):
    assert mixture_panel.share(typed) == pytest.approx(read)


@pytest.mark.parametrize("typed", ["sixty", "-5", "10 to", "1e3", "101", "30 to 10"])
def test_what_is_no_share_is_refused(typed):
    with pytest.raises(OptionError, match="must be from 0 to 100 %"):
        mixture_panel.share(typed)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([], "Type the share of the selected rows"),
        ([(0.6, 0.6)], "The other groups have 40.0 % of the rows."),
        ([(0.5, 0.6)], "The other groups have 40.0 % to 50.0 % of the rows."),
        ([(0.6, 0.9), (0.25, 0.25)], "The other groups have 0.0 % to 15.0 % of the rows."),
        ([(0.6, 0.6), (0.25, 0.25), (0.15, 0.15)], "Every group has a share"),
    ],
)
def test_what_a_mixture_leaves_is_said(wanted, said):
    assert said in mixture_panel.left_to_others(wanted, 3, "rows").replace("\u00a0", " ")


def test_a_solved_run_starts_from_no_earlier_one(page, opened, store):
    """Swaps that start from other rows may end in other rows than the page shows at that lambda."""
    app = page("pages/runs.py", corpus=opened.key)
    app.selectbox(key="form_objective").set_value("pairwise")
    app.selectbox(key="form_device").set_value("cpu")
    app.selectbox(key="form_estimator").set_value("relaxed").run()
    started(app, store)
    app.slider(key="form_lamb").set_value(0.6).run()
    second = started(app, store)
    assert "start_from" not in second.facts()
    cold = learned_cold(opened, second.config.selection)
    assert second.status().to_dict()["summary"]["joint"] == pytest.approx(cold, abs=1e-6)


def test_rules_of_another_corpus_or_of_no_name_are_not_taken(page, opened, store, mapped):
    for name in ("0" * 20, "../../x"):
        app = page("pages/runs.py", corpus=opened.key, rules=name)
        assert not rule_labels(app) and app.button(key="start")
