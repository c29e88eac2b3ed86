"""Run: the form makes the configuration it shows, runs really learn, and every state has its words and its way out."""

import shlex
import threading
import time

import pytest
from streamlit.testing.v1 import AppTest

from datamask import catalogue
from datamask.config import PAPER_PRESET, RunConfig, SelectionConfig
from datamask.dashboard.data.openings import openings
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import form_panel
from datamask.dashboard.shell import session
from datamask.pages.runs import runs_panel
from datamask.polling import no_poll
from datamask.runs.health import learning
from datamask.runs.run_queue import run_queue
from datamask.work import lanes
from tests.making.runs import finish_run, write_shard
from tests.pages.reading import answer, end_of, runs_table, ticked

pytestmark = pytest.mark.usefixtures("idle_queue")


def said(app):
    kinds = ("markdown", "caption", "error", "warning", "info")
    return " ".join(element.value for kind in kinds for element in app.get(kind)).replace("\u00a0", " ")


def key(app, kind, name, method="form"):
    return getattr(app, kind)(key=f"{method}_{name}")


def create(store, opened, name="", **options):
    return store.create(RunConfig(opened.config, SelectionConfig.from_options(**options), name))


def ended(store, opened, state, error="", step=40, traceback="", **options):
    run = create(store, opened, **options)
    with run.writer() as writer:
        writer.set_status("running", total_steps=100)
        for done in (1, 2, 3, step):
            writer.append_metrics(
                {"step": done, "seconds": 2.0, "joint": 0.3, "batch_joint_mean": 0.2, "batch_joint_std": 0.05}
            )
        if state == "interrupted":
            writer.set_status("running", step=step, total_steps=100)
        else:
            writer.finish(state, step=step, total_steps=100, error=error, traceback=traceback)
    return run


def test_defaults_are_the_catalogues_and_everything_is_explained(page, opened, explained):
    app = page("pages/runs.py", corpus=opened.key)
    assert app.title[0].value == "Runs"
    assert key(app, "slider", "lamb").value == 0.5 and key(app, "number_input", "select_ratio").value == 0.3
    assert key(app, "selectbox", "estimator").value == "auto"
    assert "Automatic uses Solve" in said(app)
    assert key(app, "number_input", "n_epochs", "relaxed").value == catalogue.estimator("relaxed").defaults["n_epochs"]
    for name, value in catalogue.estimator("counterfactual").defaults.items():
        kind = "selectbox" if isinstance(value, str) else "number_input"
        assert key(app, kind, name, "counterfactual").value == value, name
    assert {button.label for button in app.button} >= {"Solve", "Learn masks", "Paper's preset"}
    assert catalogue.objective("facility").sees in said(app)
    assert "No run on this corpus yet" in [heading.value for heading in app.subheader]
    assert "Selects **72** of 240 rows" in said(app)
    explained(app, 15)


def test_automatic_follows_the_objective_and_each_method_keeps_what_was_typed(page, opened, store, monkeypatch):
    monkeypatch.setattr("datamask.runs.run_queue.RunQueue.submit", lambda self, run_id: None)
    app = page("pages/runs.py", corpus=opened.key)
    key(app, "number_input", "n_epochs", "relaxed").set_value(7).run()
    key(app, "selectbox", "objective").set_value("pairwise").run()
    assert key(app, "number_input", "n_epochs", "relaxed").value == 7
    key(app, "number_input", "n_rollout", "counterfactual").set_value(5).run()
    key(app, "selectbox", "objective").set_value("disf").run()
    assert "Automatic uses Counterfactual (exact credit) for this objective. This objective has no solver" in said(app)
    assert not [control for control in app.number_input if control.key == "relaxed_n_epochs"]
    key(app, "selectbox", "objective").set_value("facility").run()
    assert key(app, "number_input", "n_epochs", "relaxed").value == 7
    key(app, "selectbox", "learner").set_value("reinforce").run()
    group_size = key(app, "number_input", "n_rollout", "reinforce")
    assert group_size.value == catalogue.estimator("reinforce").defaults["n_rollout"]
    # the preset is fixed; what it hides comes back
    app.button(key="paper_preset").click().run()
    assert key(app, "number_input", "n_rollout", "paper_preset").value == 128
    key(app, "selectbox", "learner").set_value("counterfactual").run()
    assert key(app, "number_input", "n_rollout", "counterfactual").value == 5 and not app.exception


def test_the_four_settings_and_both_buttons_are_not_folded(page, opened):
    app = page("pages/runs.py", corpus=opened.key)
    folded = {
        control.key for fold in app.expander for kind in ("number_input", "selectbox") for control in fold.get(kind)
    }
    assert {f"counterfactual_{name}" for name in ("n_epochs", "partial", "init", "max_lr")} <= folded
    shown = {"form_lamb", "form_select_ratio", "form_objective", "counterfactual_n_rollout"}
    kinds = ("slider", "number_input", "selectbox")
    assert shown <= {control.key for kind in kinds for control in app.get(kind)} - folded
    assert not {"start", "learn"} & {button.key for fold in app.expander for button in fold.button}


def test_either_button_starts_its_own_way_with_its_own_steps(page, opened, store, monkeypatch):
    monkeypatch.setattr("datamask.runs.run_queue.RunQueue.submit", lambda self, run_id: None)
    app = page("pages/runs.py", corpus=opened.key)
    key(app, "slider", "lamb").set_value(0.25)
    key(app, "number_input", "n_epochs", "relaxed").set_value(7)
    key(app, "selectbox", "polish", "relaxed").set_value("none")
    for name, value in {"n_rollout": 6, "n_epochs": 9, "partial": 0.5, "max_lr": 2.0, "min_lr": 0.5}.items():
        key(app, "number_input", name, "counterfactual").set_value(value)
    key(app, "selectbox", "init", "counterfactual").set_value("quality").run()
    app.button(key="start").click().run()
    app.button(key="learn").click().run()
    assert not app.exception and not app.error
    learned, solved = (run.config.selection for run in store.list())
    assert solved == SelectionConfig.from_options(lamb=0.25, estimator="relaxed", n_epochs=7, polish="none")
    assert learned == SelectionConfig.from_options(
        lamb=0.25,
        estimator="counterfactual",
        n_rollout=6,
        n_epochs=9,
        partial=0.5,
        max_lr=2.0,
        min_lr=0.5,
        init="quality",
    )


def test_a_run_under_way_is_watched_and_the_current_selection_stays(page, opened, store, finished, mapped, monkeypatch):
    monkeypatch.setattr("datamask.runs.run_queue.RunQueue.submit", lambda self, run_id: None)
    options = {"objective": "pairwise", "select_ratio": 0.4}
    first = finished(name="first", **options)
    finished(-opened.corpus.quality, name="second", lamb=0.9)
    app = page("pages/runs.py", corpus=opened.key, run=first.id)
    app.button(key="learn").click().run()
    begun = store.list()[0]
    assert (begun.config.selection.select_ratio, begun.status().state) == (0.4, "queued")
    assert app.query_params["run"] == first.id and app.query_params["watch"] == begun.id
    assert ticked(app) == [begun.config.name] and answer(app)["answer"]["note"] == "run first"
    assert "Download 96 ids" in [button.proto.label for button in app.get("download_button")]
    # a reload shows the run that is under way, beside the same selection
    again = page("pages/runs.py", corpus=opened.key, run=first.id, watch=begun.id)
    assert ticked(again) == [begun.config.name] and answer(again)["answer"]["note"] == "run first"


def test_learning_continues_from_an_earlier_run_only_where_that_is_asked_for(
    page, opened, store, finished, monkeypatch
):
    monkeypatch.setattr("datamask.runs.run_queue.RunQueue.submit", lambda self, run_id: None)
    earlier = finished(estimator="counterfactual", name="earlier")
    app = page("pages/runs.py", corpus=opened.key, run=earlier.id, **{"lambda": "0.4"})
    app.button(key="learn").click().run()
    assert "start_from" not in store.list()[0].facts()
    box = app.checkbox(key="learn_continue")
    assert box.label == "Continue from earlier" and not box.value
    box.check().run()
    app.slider(key="form_lamb").set_value(0.45).run()
    app.button(key="learn").click().run()
    assert not app.exception and store.list()[0].facts()["start_from"] == earlier.id


def test_every_objective_can_be_chosen_and_says_what_it_sees(page, opened):
    app = page("pages/runs.py", corpus=opened.key)
    for entry in catalogue.OBJECTIVES:
        key(app, "selectbox", "objective").set_value(entry.name).run()
        assert entry.sees in said(app) and not app.exception
        offered = "Greedy (baseline)" in key(app, "selectbox", "estimator").options
        assert offered == (entry.name in ("facility", "pairwise", "disf"))


def test_objectives_that_come_last_say_more(page, opened):
    menu = key(page("pages/runs.py", corpus=opened.key), "selectbox", "objective")
    first, last = menu.options[:4], menu.options[4:]
    assert not any("More" in label for label in first) and first[-1] == "Vendi entropy"
    assert last == ["More: DiSF, fixed scale"]


def test_start_learns_for_real_and_shows_the_outcome(page, opened, store, runs_dir, explained):
    app = page("pages/runs.py", corpus=opened.key)
    key(app, "slider", "lamb").set_value(0.25)
    key(app, "selectbox", "objective").set_value("pairwise")
    key(app, "number_input", "n_epochs", "counterfactual").set_value(5)
    key(app, "selectbox", "device").set_value("cpu")
    key(app, "text_input", "name").set_value("mine *bold*").run()
    app.button(key="learn").click().run()
    assert not app.exception
    (run,) = store.list()
    assert run.config.selection == SelectionConfig.from_options(
        objective="pairwise", lamb=0.25, n_epochs=5, device="cpu", estimator="counterfactual"
    )
    assert run.config.corpus == opened.config and run.config.name == "mine *bold*"
    assert end_of(run) == "done", run.status().error
    app.run()
    assert not app.exception
    shares = run.status().to_dict()["summary"]["calibrated"]
    told = answer(app)["answer"]
    assert told["meters"][0]["words"].startswith(f"{100 * shares['quality']:.0f}".replace("-", "−"))
    assert told["size"].startswith("72 of 240 rows")
    assert app.get("vega_lite_chart") and "mean and spread" in said(app)
    assert learning(run) and words.plain(learning(run)) in [fold.label for fold in app.expander]
    assert "*bold*" not in said(app).replace("\\*bold\\*", "")
    explained(app, 15)


def test_the_command_line_repeats_the_run(page, opened, finished):
    run = finished(objective="disf", lamb=0.2)
    app = page("pages/runs.py", corpus=opened.key, run=run.id)
    words = shlex.split(app.code[0].value)
    assert words[:3] == ["python", "-m", "datamask"]
    assert words[3:] == run.config.arguments(words[words.index("--output") + 1])


def test_the_paper_preset_is_one_click_the_papers_and_cannot_be_changed(page, opened, store, monkeypatch):
    monkeypatch.setattr("datamask.runs.run_queue.RunQueue.submit", lambda self, run_id: None)
    app = page("pages/runs.py", corpus=opened.key)
    app.button(key="paper_preset").click().run()
    for name in ("n_rollout", "n_epochs", "partial", "max_lr", "min_lr"):
        control = key(app, "number_input", name, "paper_preset")
        assert control.value == PAPER_PRESET[name] and control.disabled
    assert key(app, "selectbox", "init", "paper_preset").value == PAPER_PRESET["init"]
    app.button(key="learn").click().run()
    assert store.list()[0].config.selection == SelectionConfig.from_options(preset="paper")
    key(app, "selectbox", "learner").set_value("reinforce").run()
    assert not key(app, "number_input", "n_rollout", "reinforce").disabled


def test_a_baseline_has_neither_lambda_nor_settings_of_a_solver(page, opened):
    app = page("pages/runs.py", corpus=opened.key)
    key(app, "selectbox", "estimator").set_value("random").run()
    assert not app.exception and "neither λ nor the objective" in said(app)
    assert not [n for n in app.number_input if n.key == "relaxed_n_epochs"]
    assert app.button(key="start").label == "Start"


@pytest.mark.parametrize(
    "name",
    ["auto", *(entry.name for entry in catalogue.ESTIMATORS), "paper preset"],
)
def test_every_estimator_starts_with_what_the_catalogue_says(page, opened, store, monkeypatch, name):
    monkeypatch.setattr("datamask.runs.run_queue.RunQueue.submit", lambda self, run_id: None)
    app = page("pages/runs.py", corpus=opened.key)
    learns = name in (*form_panel.LEARNERS, "paper preset")
    key(app, "selectbox", "learner" if learns else "estimator").set_value(name).run()
    app.button(key="learn" if learns else "start").click().run()
    assert not app.exception and not app.error
    wanted = {"preset": "paper"} if name == "paper preset" else {"estimator": name}
    assert store.list()[0].config.selection == SelectionConfig.from_options(**wanted)


@pytest.mark.parametrize("columns", [(), ("edu",), ("edu", "dclm")])
def test_the_form_offers_what_so_many_quality_columns_allow(columns):
    def form(columns):
        from datamask.config import SelectionConfig
        from datamask.dashboard.runs import form_panel

        form_panel.run_form(SelectionConfig.from_options(), print, quality_columns=columns)

    app = AppTest.from_function(form, default_timeout=60, args=(columns,)).run()
    labels = app.selectbox(key="form_estimator").options
    assert not app.exception
    assert [label for label in labels if " by " in label] == [
        f"Top quality (baseline) by {column}" for column in columns if len(columns) > 1
    ]


def test_settings_that_contradict_each_other_are_said_and_cannot_start(page, opened):
    app = page("pages/runs.py", corpus=opened.key)
    key(app, "number_input", "min_lr", "counterfactual").set_value(5.0).run()
    assert app.error[0].value.startswith("Last step size must be") and len(app.error) == 1
    # the other way has no such setting
    assert app.button(key="learn").disabled and not app.button(key="start").disabled


def test_a_ratio_too_small_for_the_corpus_is_said(page, opened):
    app = page("pages/runs.py", corpus=opened.key)
    key(app, "number_input", "select_ratio").set_value(0.001).run()
    assert "Select ratio" in app.error[0].value and len(app.error) == 1
    assert app.button(key="learn").disabled and app.button(key="start").disabled


@pytest.mark.parametrize(
    "state, words, action",
    [
        ("stopped", "stopped at step 40 of 100", "Resume"),
        ("interrupted", "The process of this run ended", "Resume"),
        ("failed", "There is no room", "Try again"),
    ],
)
def test_runs_that_did_not_finish_say_why_and_what_next(page, opened, store, state, words, action):
    run = ended(store, opened, state, "There is no room on the disk." if state == "failed" else "")
    app = page("pages/runs.py", corpus=opened.key, run=run.id)
    assert words in said(app).replace("\\", "")
    assert {b.label for b in app.button} >= {action, "Delete"}
    assert app.get("vega_lite_chart"), "what was learned before it ended is still to be seen"


def test_the_traceback_of_a_fault_stays_in_the_run_folder_and_the_page_says_where(page, opened, store):
    run = ended(store, opened, "failed", "datamask failed unexpectedly", traceback="Traceback: /a/folder")
    app = page("pages/runs.py", corpus=opened.key, run=run.id)
    assert not any(
        "/a/folder" in element.value for kind in ("code", "markdown", "caption", "error") for element in app.get(kind)
    )
    assert "status.json in the run" in said(app)


def test_a_waiting_run_says_its_place_in_the_queue(page, opened, store, runs_dir):
    with lanes.turn("cpu", lanes.Priority.LIVE, no_poll):
        first, second = (create(store, opened, name, device="cpu") for name in ("first", "second"))
        jobs = [run_queue(runs_dir).submit(run.id) for run in (first, second)]
        deadline = time.monotonic() + 120
        while not all(job.ahead for job in jobs) and time.monotonic() < deadline:
            time.sleep(0.05)
        shown = said(page("pages/runs.py", corpus=opened.key, run=second.id))
        assert "Number 2 in the queue, after other work. It starts" in shown.replace("\\", "")
        assert "Number 1 in the queue" in said(page("pages/runs.py", corpus=opened.key, run=first.id))
        for run in (first, second):
            run_queue(runs_dir).stop(run.id)
    # the next test has the lane to itself
    assert all(job.wait(120) for job in jobs)


def test_a_queued_run_that_is_prepared_says_so_in_whole_sentences(page, opened, store, runs_dir, monkeypatch):
    """Its state is queued until its corpus is open: it read "Starting It starts by itself"."""
    begun, over = threading.Event(), threading.Event()

    def work(entry, job):
        begun.set()
        over.wait(240)

    monkeypatch.setattr("datamask.runs.run_queue._Entry.work", work)
    run = create(store, opened, device="cpu")
    run_queue(runs_dir).submit(run.id)
    assert begun.wait(240)
    try:
        app = page("pages/runs.py", corpus=opened.key, run=run.id)
        assert "**Starting**" in said(app) and "Starting." in [
            caption.value.replace("\\", "") for caption in app.caption
        ]
        assert "Waiting" not in said(app)
    finally:
        over.set()


def test_a_running_run_is_live_on_every_page_and_stops(page, opened, store, runs_dir):
    run = create(
        store, opened, "long", objective="pairwise", estimator="counterfactual", n_epochs=1_000_000, device="cpu"
    )
    run_queue(runs_dir).submit(run.id)
    deadline = time.monotonic() + 240
    while not len(run.metrics().get("step", ())) and time.monotonic() < deadline:
        time.sleep(0.05)
    home = page(corpus=opened.key)
    assert any("**long**" in bar.proto.text for bar in home.get("progress"))
    app = page("pages/runs.py", corpus=opened.key, run=run.id)
    assert app.get("vega_lite_chart")
    app.button(key="stop_run").click().run()
    assert end_of(run) == "stopped"
    assert any(b.label == "Resume" for b in app.run().button)


def test_names_and_notes_are_kept_with_the_run(page, opened, finished):
    run = finished()
    app = page("pages/runs.py", corpus=opened.key, run=run.id)
    app.text_input(key=f"name_{run.id}").set_value("keeper").run()
    app.text_area(key=f"notes_{run.id}").set_value("<i>first</i> good one").run()
    app.button(key=f"save_{run.id}").click().run()
    assert (run.config.name, run.config.notes) == ("keeper", "<i>first</i> good one")
    app = page("pages/runs.py", corpus=opened.key, run=run.id)
    assert "\\<i\\>first" in said(app) and runs_table(app)["name"].tolist() == ["keeper"]
    app.multiselect(key="runs_columns").set_value(["note"]).run()
    assert runs_table(app)["note"].tolist() == ["<i>first</i> good one"]


def test_columns_of_the_table_can_be_chosen_and_the_first_ones_fit(page, opened, finished):
    finished(name="one")
    app = page("pages/runs.py", corpus=opened.key)
    shown = runs_table(app).columns.tolist()
    assert {"name", "state", "quality", "diversity"} < set(shown) and not {"note", "tags", "gap"} & set(shown)
    # at 1440 pixels the table is 1,056 wide; 40 are the boxes'
    widths = [runs_panel.WIDTHS.get(name, runs_panel.NARROW) for name in ("name", *runs_panel.FITTING)]
    assert sum(widths) + 40 <= 1056
    app.multiselect(key="runs_columns").set_value(["seconds", "state"]).run()
    assert runs_table(app).columns.tolist() == ["name", "state", "seconds"]
    app.multiselect(key="runs_columns").set_value([]).run()
    assert runs_table(app).columns.tolist() == ["name"]


def test_a_run_of_another_corpus_says_so_and_opens_it(page, opened, store, runs_dir, tmp_path):
    other = openings(runs_dir).start(write_shard(tmp_path / "other.parquet", 60, seed=1), "other")
    other.wait(240)
    run = finish_run(store, other.corpus, other.config, other.corpus.quality, name="elsewhere")
    app = page("pages/runs.py", corpus=opened.key, run=run.id)
    assert "Made on another corpus: other" in said(app)
    app.button(key="open_other").click().run()
    assert app.query_params["corpus"] == other.key and "another corpus" not in said(app)


@pytest.mark.parametrize("name", ["../../etc", "no-such-run", "<b>x</b>"])
def test_a_run_that_does_not_exist_is_said_once(page, opened, name):
    app = page("pages/runs.py", corpus=opened.key, run=name)
    assert app.warning and "run" not in app.query_params
    assert "<b>" not in app.warning[0].value


def test_a_link_to_a_run_that_does_not_exist_opens_what_a_bare_address_does(page, opened, finished):
    run = finished(name="newest")
    app = page("pages/evidence.py", run="no-such-run")
    assert not app.exception and "does not exist here" in app.warning[0].value
    assert (app.query_params["corpus"], app.query_params["run"]) == (opened.key, run.id)


def test_the_settings_of_a_run_fill_the_form(page, opened, finished):
    run = finished(
        objective="pairwise:0.7,facility:0.3", lamb=0.9, collapse="0.97", estimator="reinforce", n_rollout=16
    )
    app = page("pages/runs.py", corpus=opened.key, run=run.id)
    app.button(key="use_settings").click().run()
    assert not app.exception
    assert key(app, "slider", "lamb").value == 0.9 and key(app, "number_input", "n_rollout", "reinforce").value == 16
    assert key(app, "selectbox", "learner").value == "reinforce" and key(app, "selectbox", "estimator").value == "auto"
    assert key(app, "selectbox", "objective").value == run.config.selection.objective
    assert key(app, "number_input", "cosine").value == 0.97


def test_a_run_opens_its_own_corpus_when_none_is_open(page, opened, finished):
    run = finished(name="alone")
    app = page("pages/runs.py", run=run.id)
    assert app.query_params["corpus"] == opened.key
    assert answer(app)["answer"]["note"] == "run alone"


def test_the_server_reads_paths_freely_on_the_loopback_only(page, monkeypatch):
    monkeypatch.delenv("DATAMASK_ROOTS")
    monkeypatch.setattr(session.st, "get_option", lambda name: "0.0.0.0")
    assert session.roots() == ()
    monkeypatch.setattr(session.st, "get_option", lambda name: "127.0.0.1")
    assert len(session.roots()) == 2


def test_a_control_mounted_anew_starts_at_its_value(page, opened):
    app = page("pages/runs.py", corpus=opened.key)
    key(app, "number_input", "select_ratio").set_value(0.2).run()
    key(app, "selectbox", "collapse").set_value("exact").run()
    # what a browser shows, and sends back, until it hears otherwise
    assert key(app, "number_input", "select_ratio").proto.default == 0.2
    group_size = key(app, "number_input", "n_rollout", "counterfactual")
    assert group_size.proto.default == group_size.value
    menu = key(app, "selectbox", "collapse")
    assert menu.proto.options[menu.proto.default] == menu.options[menu.index] == "Keep the best of exact duplicates"
    assert not app.warning


def test_the_best_of_each_group_of_a_column_is_kept_by_a_choice_of_its_menu(page, opened):
    app = page("pages/runs.py", corpus=opened.key)
    menu = key(app, "selectbox", "collapse")
    (column,) = [name for name in opened.corpus.metadata.column_names if name == "source"]
    assert f"Keep the best of each group of {column}" in menu.options
    menu.set_value(f"column:{column}").run()
    assert not app.exception and app.query_params["collapse"] == f"column:{column}"
    assert key(app, "selectbox", "collapse").value == f"column:{column}"
