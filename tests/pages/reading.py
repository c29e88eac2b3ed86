"""Reading what a page drew."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
from plotly import graph_objects as go
from streamlit.testing.v1 import AppTest

from datamask.dashboard.frame.frame import PAGES
from datamask.dashboard.map import shared_view
from datamask.dashboard.map.filters import Condition, Filters
from datamask.dashboard.server.parcels import parcels as kept_parcels
from datamask.runs.store import Run
from tests.making.parcels import opened_parcel


def parcels(app: AppTest) -> dict[str, dict[str, Any]]:
    """What the page's map shows by place: ``slider``, ``ground``, ``dimming``, ``lambdas``, ``0``, ``1``."""
    told = map_data(app)
    if told is None:
        return {}
    found = {part: opened_parcel(kept_parcels().body(address)) for part, address in told["parcels"].items()}
    return {**found, "slider": told["slider"]}


def map_data(app: AppTest) -> dict[str, Any] | None:
    """What the map itself was told; None where the page has no map."""
    return _component(app, "datamask_map")


def answer(app: AppTest) -> dict[str, Any]:
    """What the answer bar was told."""
    told = _component(app, "datamask_answer")
    assert told is not None, "there is no answer"
    return told


def answered(app: AppTest) -> str:
    """What the answer bar says, in one line."""
    told = answer(app)
    said = told["answer"]
    meters = [f"{meter['term']} {meter['words']}" for meter in said["meters"] if meter["share"] is not None]
    parts = [said["name"], told["problem"], said["note"], said["size"], *meters, said["proof"]]
    return " · ".join(filter(None, parts))


def _component(app: AppTest, name: str) -> dict[str, Any] | None:
    for component in app.get("bidi_component"):
        if component.proto.component_name == name:
            return json.loads(component.proto.json)
    return None


def compared_runs(app: AppTest) -> pd.DataFrame:
    """The table of the compared runs, its spaces plain."""
    return app.table[0].value.replace("\u00a0", " ", regex=True)


def figure(app: AppTest, key: str) -> go.Figure:
    """The Plotly figure that the page drew under a key."""
    specs = [chart.proto.spec for chart in app.get("plotly_chart") if _key(chart.proto.id) == key]
    assert len(specs) == 1, f"{len(specs)} figures under {key}"
    return go.Figure(_decoded(json.loads(specs[0])))


def _decoded(part: Any) -> Any:
    """A figure's JSON with its arrays as lists."""
    if isinstance(part, list):
        return [_decoded(each) for each in part]
    if not isinstance(part, dict):
        return part
    if "bdata" in part:
        return np.frombuffer(base64.b64decode(part["bdata"]), part["dtype"]).tolist()
    return {name: _decoded(each) for name, each in part.items()}


def waterfall(app: AppTest) -> pd.DataFrame:
    """The bars of why a row is in or out, from top to bottom, as the pointer reads them: ``part, amount, end``."""
    (drawn,) = (each.proto.body for each in app.get("html") if 'class="why"' in each.proto.body)
    bars = re.findall(r'title="(.+?): adds (\S+), then at (\S+)"', drawn.replace("−", "-"))
    return pd.DataFrame(bars, columns=["part", "amount", "end"]).astype({"amount": float, "end": float})


def strip(app: AppTest) -> tuple[list[float], list[bool], list[float]]:
    """The lambdas where a row is selected: those of all runs, whether it is at each, and those of this run."""
    (line,) = (each.value for each in app.markdown if each.value.startswith("λ "))
    dots = re.findall(r"([●○])\u00a0(\**)([\d.e-]+)", line)
    return (
        [float(lamb) for *_, lamb in dots],
        [dot == "●" for dot, *_ in dots],
        [float(lamb) for _, own, lamb in dots if own],
    )


def end_of(run: Run) -> str:
    """The state of a run once it has ended."""
    deadline = time.monotonic() + 240
    while run.status().active:
        assert time.monotonic() < deadline, "the run did not end"
        time.sleep(0.05)
    return run.status().state


def view(app: AppTest, **parts: Any) -> AppTest:
    """The page once these parts of the view were changed."""
    app.session_state["view"] = replace(app.session_state["view"], **parts)
    app.run()
    assert not app.exception, app.exception[0].message
    return app


def brush(app: AppTest, *conditions: Condition) -> None:
    """Have the view hold these conditions, and no others, from the next drawing on."""
    filters = Filters(conditions)
    texts = {"where": shared_view.where_text(filters), "search": shared_view.search_text(filters)}
    app.session_state["view"] = replace(app.session_state["view"], **texts)


def follow(page: Callable[..., AppTest], app: AppTest, label: str, at: int = 0) -> AppTest:
    """The page that a link leads to, in a session of its own.

    Args:
        at: which of the links of that label.
    """
    link = [link.proto for link in app.get("page_link") if link.proto.label == label][at]
    script = next(script for script, title, _ in PAGES if title == label)
    return page(script, **{name: values[0] for name, values in parse_qs(link.query_string).items()})


def titles(app: AppTest) -> list[str]:
    """The titles of the map's panels."""
    sent = parcels(app)
    return [sent[str(i)]["title"] for i in range(map_data(app)["panels"])]


def captions(app: AppTest) -> str:
    """All captions of the page as one text, each with what opens on its question mark."""
    return " ".join(" ".join(filter(None, (caption.value, caption.proto.help))) for caption in app.caption)


def runs_table(app: AppTest) -> pd.DataFrame:
    """The table of runs as it is drawn; its proto is that of the first table with a selection."""
    return _table(app).value


def ticked(app: AppTest) -> list[str]:
    """Names of the runs that the table has ticked, as the page knows it."""
    element = _table(app)
    rows = app.session_state[_key(element.proto.id)]["selection"]["rows"]
    return element.value["name"].iloc[list(rows)].tolist()


def tick(app: AppTest, *names: str, clicked: str | None = None) -> AppTest:
    """Send what a browser sends once just these rows are ticked; or, besides, the name of one was clicked."""
    element = _table(app)
    places = element.value["name"].tolist()
    cells = [] if clicked is None else [[places.index(clicked), "name"]]
    rows = [places.index(name) for name in names]
    return _sent(app, element, {"selection": {"rows": rows, "columns": [], "cells": cells}})


def mix(app: AppTest, *, press: bool = True, **wanted: str) -> AppTest:
    """Type shares into the table of the mixture, by group, and press *Set mixture* at once."""
    table = mixture(app)
    places = table.value["group"].tolist()
    edited = {places.index(group): {"share wanted": text} for group, text in wanted.items()}
    if press:
        app.button(key="mixture_set").click()
    return _sent(app, table, {"edited_rows": edited, "added_rows": [], "deleted_rows": []})


def mixture(app: AppTest) -> Any:
    """The table of the mixture."""
    return next(table for table in app.dataframe if _key(table.proto.id).startswith("mixture_table"))


def _sent(app: AppTest, element: Any, state: dict[str, Any]) -> AppTest:
    """The page once a browser has sent this state of an element, and whatever was pressed."""
    states = app._tree.get_widget_states()
    widget = states.widgets.add()
    widget.id, widget.string_value = element.proto.id, json.dumps(state)
    app._run(states)
    assert not app.exception, app.exception[0].message
    return app


def _table(app: AppTest) -> Any:
    return next(table for table in app.dataframe if _key(table.proto.id).startswith("runs_table"))


def _key(widget_id: str) -> str:
    """A widget's key stands at the end of its id."""
    return widget_id.rpartition("-")[2]


def menu(app) -> dict[str, str]:
    """What each link of the menu holds, by its label."""
    return {link.proto.label: link.proto.query_string for link in app.get("page_link")[: len(PAGES)]}


def downloads(app) -> list[Any]:
    """The download buttons of the page, without that of the answer bar."""
    return [button for button in app.get("download_button") if not button.key.startswith("answer_")]
