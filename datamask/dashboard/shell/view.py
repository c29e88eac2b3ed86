"""The view: what a visitor has chosen, as one value. Every page shows it, and every button acts on it.

`read` takes it once at the start of a drawing: from the address where that has changed since it was written, as at a
link or a step back; else from the session. Controls change it (`change`, `choose_run`, `pose`), and the address follows
when the page is drawn next. Anybody may edit an address, so what it says is checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from datamask.config import SelectionConfig
from datamask.config.selection import PROBLEM
from datamask.errors import OptionError
from datamask.options import OPTIONS, Tokens
from datamask.runs.formats import parse_json

POSED_BY = (*PROBLEM, "seed")
"""Options that stand in the address; λ and rules have parts of their own."""

LONGEST = 1_800
"""Letters of one part; addresses of more than some thousands are cut by programs they are sent through."""

STEPS = ("corpus", "run")
"""Parts whose change is a step of Back (`browser/steps.js`)."""

_VIEW, _WRITTEN = "view", "view_written"


@dataclass(frozen=True)
class View:
    """What a visitor has chosen.

    Attributes:
        corpus: key of its opening; empty: the server's first.
        run: id of the stored run that is shown; it poses the problem. Empty: `problem` does.
        problem: what is to be selected, without λ and rules; None: nobody has chosen it yet.
        rules: name of the list of pins, bans, given rows and quotas, beside `problem`; empty: no rules.
        lamb: λ; None: the run's own, or the middle.
        sample: id of the marked row; empty: none is.
        search, where: the words that are searched for; the other conditions on the rows, as the map's `shared_view`
            writes them.
        like: to which rows others must be similar, and how much, as `more_like_panel` writes it.
        show: which of the rows the list holds; empty: all.
        compared: ids of the runs that are compared; empty: nobody has chosen them.
        against: id of the run that the Map holds the current selection against; empty: none.
        region, at: what is drawn on the map, by `shared_view`; where the map was moved to, by `browser/sight.js`.
        training: tokens that the model reads in training, as they were typed.
        watched: id of the run that the Runs page shows while it is under way. It is not the current selection.
    """

    corpus: str = ""
    run: str = ""
    problem: SelectionConfig | None = None
    rules: str = ""
    lamb: float | None = None
    sample: str = ""
    search: str = ""
    where: str = ""
    like: str = ""
    show: str = ""
    compared: tuple[str, ...] = ()
    against: str = ""
    region: str = ""
    at: str = ""
    training: str = ""
    watched: str = ""

    @property
    def selects(self) -> tuple[object, ...]:
        """What the current selection follows from."""
        return self.corpus, self.run, self.problem, self.rules, self.lamb

    @property
    def texts(self) -> dict[str, str]:
        """Its parts as an address names them; empty ones do not stand there."""
        problem = {} if self.problem is None or self.run else _texts_of(self.problem)
        parts = {"corpus": self.corpus, "run": self.run, **problem, "watch": self.watched}
        parts["rules"] = "" if self.run else self.rules
        parts["lambda"] = "" if self.lamb is None else f"{self.lamb:g}"
        parts |= {name: getattr(self, name) for name in PLAIN} | {"runs": ",".join(self.compared)}
        return parts

    @property
    def address(self) -> dict[str, str]:
        """What stands in the address of a page that shows it."""
        return {name: text for name, text in self.texts.items() if text and len(text) <= LONGEST}

    @property
    def fits(self) -> bool:
        """Whether the address holds all of it."""
        return max(map(len, self.texts.values())) <= LONGEST


PLAIN = ("sample", "search", "where", "like", "show", "against", "region", "at", "training")
"""Parts that are texts of that name."""

NAMES = ("corpus", "run", *POSED_BY, "watch", "rules", "lambda", "runs", *PLAIN)
"""Of the parts of an address that the view stands in."""


def read() -> View:
    """The view, at the start of a drawing.

    A browser sends its address with all it asks for, also before it knows of a change that the server has written. So
    what was written stays known until the browser has sent the latest of it: an older one until then is no step back.
    """
    asked = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    written: list[dict[str, str]] = st.session_state.get(_WRITTEN, [])
    if written and asked == written[-1]:
        st.session_state[_WRITTEN] = [asked]
    elif _VIEW not in st.session_state or (asked and asked not in written):
        st.session_state[_VIEW] = view_of(asked)
    return now()


def write() -> None:
    """Bring the address to the view.

    The browser hears of these changes one after the other, and may ask for something in between. What is a step of Back
    changes first: the step that is left keeps the rest of its address.
    """
    address = now().address
    stands = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    written: list[dict[str, str]] = st.session_state.setdefault(_WRITTEN, [])

    def drop(*names: str) -> None:
        for name in names:
            if name in stands and name not in address:
                del st.query_params[name], stands[name]
                written.append(dict(stands))

    drop(*STEPS)
    if stands != stands | address:
        st.query_params.update(address)
        stands |= address
        written.append(dict(stands))
    drop(*NAMES)
    if written[-1:] != [address]:
        written.append(address)


def now() -> View:
    """The view as it is now, callbacks and earlier panels of this drawing included."""
    view: View = st.session_state.setdefault(_VIEW, View())
    return view


def change(**parts: Any) -> None:
    """Change some parts of the view."""
    st.session_state[_VIEW] = replace(now(), **parts)


def choose_run(run_id: str) -> None:
    """Show a finished run: it comes with its own problem, rules and λ. Empty: the first that a page would show."""
    change(run=run_id, problem=None, rules="", lamb=None, watched="")


def address_with(**parts: Any) -> dict[str, str]:
    """The address of the view with some parts changed. For links."""
    return replace(now(), **parts).address


def address_of_run(run_id: str) -> dict[str, str]:
    """The address of the view with this run in the place of what poses the problem. For links."""
    return address_with(run=run_id, lamb=None, watched="")


def page_link(
    script: str,
    label: str,
    icon: str = ":material/arrow_forward:",
    *,
    address: dict[str, str] | None = None,
    **about: Any,
) -> None:
    """Draw a link to a page that shows the view, or what an `address` names in its place.

    Args:
        about: further arguments of the link.
    """
    address = now().address if address is None else address
    st.page_link(script, label=label, icon=icon, query_params=address, **about)


def show_corpus(key: str) -> None:
    """Show another corpus, about which nothing was chosen yet."""
    st.session_state[_VIEW] = View(key)


def pose(problem: SelectionConfig, rules: str, lamb: float) -> None:
    """Choose the problem itself, in the place of a run's.

    Args:
        problem: options of `POSED_BY`. rules: name of a kept list, or empty. lamb: λ.
    """
    change(run="", problem=problem, rules=rules, lamb=lamb)


def view_of(address: dict[str, str]) -> View:
    """The view that an address names; parts that cannot be read are left out."""
    return View(
        address.get("corpus", ""),
        address.get("run", ""),
        _problem_of(address),
        address.get("rules", ""),
        _lambda_of(address.get("lambda", "")),
        **{name: address.get(name, "")[:LONGEST] for name in PLAIN},
        compared=tuple(filter(None, address.get("runs", "")[:LONGEST].split(","))),
        watched=address.get("watch", ""),
    )


def _texts_of(problem: SelectionConfig) -> dict[str, str]:
    """The options that differ from their defaults, and always the objective, which says that a problem was chosen."""
    values = {name: getattr(problem, name) for name in POSED_BY}
    if problem.budget is not None:
        del values["select_ratio"]
    return {
        name: "true" if value is True else OPTIONS[name].kind.text(value)
        for name, value in values.items()
        if name == "objective" or value != OPTIONS[name].default
    }


def _problem_of(address: dict[str, str]) -> SelectionConfig | None:
    if address.get("run") or "objective" not in address:
        return None
    values = {}
    try:
        for name in (name for name in POSED_BY if name in address):
            kind = OPTIONS[name].kind
            values[name] = address[name] if kind.is_text or isinstance(kind, Tokens) else parse_json(address[name])
        return SelectionConfig.from_options(**values)
    except (OptionError, ValueError):
        return None


def _lambda_of(text: str) -> float | None:
    try:
        lamb = float(text)
    except ValueError:
        return None
    return lamb if math.isfinite(lamb) and 0 <= lamb <= 1 else None
