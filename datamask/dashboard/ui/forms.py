"""The Run form: every choice of a `SelectionConfig` as a control with label, help text and the catalogue's default."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from datamask import catalogue
from datamask.config import PAPER_PRESET, SelectionConfig
from datamask.dashboard import words
from datamask.dashboard.ui import option_control
from datamask.dashboard.views import outcome
from datamask.errors import OptionError
from datamask.options import LEARNER_OPTIONS, OPTIONS, Number, Whole
from datamask.options.amounts import tokens_text

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PAPER = "paper preset"
DEVICES = ("auto", "cpu", "cuda")
COLLAPSE = {"none": "Keep them all", "exact": "Keep the best of exact copies", "near": "Keep the best of near-copies"}

AMOUNTS = ("rows", "tokens")

DEFAULTS: dict[str, Any] = {
    "amount": "rows",
    "cosine": 0.95,
    "name": "",
    **{name: option.default for name, option in OPTIONS.items() if option.help and not option.owners},
    "estimator": catalogue.AUTO,
    "budget": "",
    **{name: next(iter(option.owners.values())) for name, option in OPTIONS.items() if option.owners},
    **catalogue.estimator(catalogue.auto(OPTIONS["objective"].default)).defaults,
}
"""Of every control; those of the learner's own options are automatic's, else the first estimator's that has them."""

HELP = {
    **{name: option.help for name, option in OPTIONS.items() if option.help},
    "amount": "Select a share of the rows, or as many rows as fill a number of tokens.",
    "cosine": "Rows at least this similar (cosine of their features) count as copies of each other.",
    "name": "What to call this run in lists and pictures. You can change it later.",
}
"""Of every control."""


def _key(name: str) -> str:
    return f"form_{name}"


def _prepare(defaults: dict[str, Any]) -> None:
    """Give every control its remembered value: Streamlit forgets a control's state when another page is shown."""
    remembered = st.session_state.setdefault("form_values", {})
    for name, value in {**DEFAULTS, **defaults}.items():
        st.session_state.setdefault(_key(name), remembered.get(name, value))


def _now(name: str) -> Any:
    """A control's value, to be passed as its default too: a browser that mounts a control anew starts it there.

    Without it, a number would fall to its least value and a menu to its first line, unasked, when a run begins or ends.
    """
    return st.session_state[_key(name)]


def _place_of(name: str, options: Sequence[str]) -> int:
    """Where a menu's present choice stands among its options."""
    value = _now(name)
    return list(options).index(value) if value in options else 0


def _remember() -> None:
    values = st.session_state["form_values"]
    for name in DEFAULTS:
        if _key(name) in st.session_state:
            values[name] = st.session_state[_key(name)]


def _resolved(estimator: str, objective: str) -> str:
    """The choice of an estimator, with the one that automatic takes for the objective in its place."""
    return catalogue.auto(objective) if estimator == catalogue.AUTO else estimator


def _options_of(estimator: str) -> Mapping[str, Any]:
    """The options that an estimator has, with their defaults; not of automatic, see `_resolved`."""
    if estimator == PAPER:
        return {name: value for name, value in PAPER_PRESET.items() if name in LEARNER_OPTIONS}
    return catalogue.estimator(estimator).defaults


def _estimator_changed() -> None:
    """Another estimator brings its own defaults: a step size of one is nonsense for another."""
    chosen = st.session_state[_key("estimator")]
    for name, value in _options_of(_resolved(chosen, st.session_state[_key("objective")])).items():
        st.session_state[_key(name)] = value
    st.session_state[_key("scale")] = "raw" if chosen == PAPER else "calibrated"


def _objective_changed(before: str) -> None:
    """Another objective may be another estimator's, where that is automatic. `before`: the estimator until now."""
    state = st.session_state
    after = _resolved(state[_key("estimator")], state[_key("objective")])
    if after != before:
        for name, value in _options_of(after).items():
            state[_key(name)] = value


def _estimators(columns: Sequence[str]) -> list[str]:
    """Automatic, the estimators that so many columns allow, the preset after the one it sets, and by each column."""
    names: list[str] = [catalogue.AUTO]
    for entry in catalogue.ESTIMATORS:
        if entry.least_columns > max(len(columns), 1):
            continue
        names.append(entry.name)
        if entry.name == PAPER_PRESET["estimator"]:
            names.append(PAPER)
        if entry.by_column and len(columns) > 1:
            names += [f"{entry.name}:{column}" for column in columns]
    current = st.session_state.get(_key("estimator"))
    return names if current in names or current is None else [*names, current]


def use_settings(config: SelectionConfig) -> None:
    """Fill the form with a run's settings. For a button's `on_click`."""
    values = {k: v for k, v in config.to_dict().items() if k in DEFAULTS and v is not None}
    if config.preset == "paper":
        values["estimator"] = PAPER
    elif config.estimator == catalogue.IMPORTED.name:
        del values["estimator"]  # how its ids were found is not known
    if config.collapse not in ("none", "exact"):
        values |= {"collapse": "near", "cosine": float(config.collapse)}
    values["amount"] = "rows" if config.budget is None else "tokens"
    if config.budget is not None:
        values["budget"] = tokens_text(config.budget)
    for name, value in values.items():
        st.session_state[_key(name)] = value
        st.session_state.setdefault("form_values", {})[name] = value


def _objectives() -> list[str]:
    """The catalogue's objectives, and a weighted sum where a run with one was loaded into the form."""
    names = [entry.name for entry in catalogue.OBJECTIVES]
    current = st.session_state.get(_key("objective"))
    return names if current in names or current is None else [*names, current]


def run_form(
    defaults: dict[str, Any] | None = None, quality_columns: Sequence[str] = (), tokens: float | None = None
) -> tuple[SelectionConfig | None, str, DeltaGenerator]:
    """Draw the controls in the present column.

    Args:
        defaults: defaults that differ from the catalogue's on this corpus.
        quality_columns: the open corpus's. tokens: all of its samples' together; None: they have no lengths.

    Returns:
        The settings, or None where they contradict each other (the sentence is drawn); the run's name; and the place
        for what it costs and the Start button, above the rarely used settings so that it never scrolls away.
    """
    _prepare(defaults or {})
    state = st.session_state
    chosen = state[_key("estimator")]
    estimator = _resolved(chosen, state[_key("objective")])
    fixed = estimator == PAPER
    guided = fixed or catalogue.estimator(estimator).guided
    with st.container(gap=None):
        st.slider(
            "Balance λ", 0.0, 1.0, _now("lamb"), step=0.05, key=_key("lamb"), help=HELP["lamb"], disabled=not guided
        )
        with st.container(horizontal=True, horizontal_alignment="distribute", gap=None):
            st.caption("diversity alone", width="content")
            st.caption("quality alone", width="content")
    _amount(tokens)
    with st.container(gap="xxsmall"):
        objectives = _objectives()
        st.selectbox(
            "Diversity objective",
            objectives,
            _place_of("objective", objectives),
            key=_key("objective"),
            help=HELP["objective"],
            format_func=outcome.objective_label,
            disabled=not guided,
            on_change=_objective_changed,
            args=(estimator,),
        )
        if guided:
            st.caption(_sees(state[_key("objective")]))
    _control("n_rollout", disabled=fixed or "n_rollout" not in _options_of(estimator))
    place = st.container()
    with st.expander("More settings"):
        estimators = _estimators(quality_columns)
        st.selectbox(
            "Estimator",
            estimators,
            _place_of("estimator", estimators),
            key=_key("estimator"),
            help=HELP["estimator"],
            format_func=_estimator_label,
            on_change=_estimator_changed,
        )
        st.caption(
            (f"{_estimator_label(estimator)} here. " if chosen == catalogue.AUTO else "") + _estimator_about(estimator)
        )
        _learner_options(_options_of(estimator), fixed)
        if guided:
            _control("scale", disabled=fixed)
        _corpus_options()
    name = state[_key("name")].strip()
    _remember()
    try:
        return _selection({key: state[_key(key)] for key in DEFAULTS if _key(key) in state}), name, place
    except OptionError as error:
        place.error(words.sentence(error), icon=":material/error:")
        return None, name, place


def _amount(tokens: float | None) -> None:
    """How much to select: a share of the rows, or tokens where samples have lengths."""
    if tokens:
        st.segmented_control(
            "How much", AMOUNTS, default=_now("amount"), required=True, key=_key("amount"), help=HELP["amount"]
        )
    else:
        st.session_state[_key("amount")] = "rows"
    if tokens and st.session_state[_key("amount")] == "tokens":
        st.session_state[_key("budget")] = _now("budget") or tokens_text(float(f"{0.3 * tokens:.2g}"))
        st.text_input(
            "Token budget",
            key=_key("budget"),
            help=f"{HELP['budget']} The corpus has {words.short(tokens)}.",
            placeholder="150M",
        )
    else:
        st.number_input(
            "Select ratio",
            0.0001,
            0.9999,
            _now("select_ratio"),
            step=0.05,
            format="%.4g",
            key=_key("select_ratio"),
            help=HELP["select_ratio"],
        )


def _control(name: str, place: DeltaGenerator | None = None, disabled: bool = False) -> None:
    option_control.draw(OPTIONS[name], _now(name), _key(name), place, disabled)


def _learner_options(options: Mapping[str, Any], fixed: bool) -> None:
    """The controls of those options the estimator has; number fields in two columns, choices below them.

    The group size has its place at the top of the form.
    """
    names = [name for name in LEARNER_OPTIONS if name != "n_rollout" and OPTIONS[name].control is not None]
    numbers = [name for name in names if isinstance(OPTIONS[name].kind, (Number, Whole))]
    columns = st.columns(2)
    for place, name in zip(itertools.cycle(columns), numbers):
        if name in options:
            _control(name, place, fixed)
    for name in names:
        if name in options and name not in numbers:
            _control(name, disabled=fixed)


def _corpus_options() -> None:
    """What every estimator has: which rows may be selected, the seed, the device, the name."""
    for name, option in OPTIONS.items():
        if option.control is not None and not option.owners and name != "scale":
            _copies() if name == "collapse" else _control(name)
    left, right = st.columns(2)
    left.number_input("Seed", 0, 2**53 - 1, _now("seed"), step=1, key=_key("seed"), help=HELP["seed"])
    devices = DEVICES if _now("device") in DEVICES else (*DEVICES, _now("device"))
    right.selectbox(
        "Device",
        devices,
        _place_of("device", devices),
        key=_key("device"),
        help=HELP["device"],
        accept_new_options=True,
    )
    st.text_input("Name", key=_key("name"), help=HELP["name"], max_chars=80, placeholder="made from the settings")


def _copies() -> None:
    """What becomes of copies, and from which cosine on two rows are copies of each other."""
    st.selectbox(
        OPTIONS["collapse"].label,
        tuple(COLLAPSE),
        _place_of("collapse", tuple(COLLAPSE)),
        key=_key("collapse"),
        help=HELP["collapse"],
        format_func=COLLAPSE.__getitem__,
    )
    if st.session_state[_key("collapse")] == "near":
        st.number_input(
            "Cosine of a near-copy",
            0.5,
            1.0,
            _now("cosine"),
            step=0.01,
            format="%.3g",
            key=_key("cosine"),
            help=HELP["cosine"],
        )


def remembered() -> SelectionConfig:
    """The settings the form was left with, or its defaults, without drawing it: what the next run will be.

    Raises:
        OptionError: they contradict each other.
    """
    return _selection({**DEFAULTS, **st.session_state.get("form_values", {})})


def _selection(values: Mapping[str, Any]) -> SelectionConfig:
    estimator, collapse = _resolved(values["estimator"], values["objective"]), values["collapse"]
    if own := [name for name in catalogue.objective_terms(values["objective"]) if catalogue.is_own(name)]:
        raise OptionError(
            f"{own[0]} is an objective of somebody's own. Its code is only run where its name is typed: "
            f"use `python -m datamask select ... --objective {own[0]}`, or choose another objective here"
        )
    amount = "budget" if values["amount"] == "tokens" else "select_ratio"
    options = {name: values[name] for name, option in OPTIONS.items() if name in values and not option.owners}
    del options["budget" if amount == "select_ratio" else "select_ratio"]
    options |= {"estimator": estimator, "collapse": f"{values['cosine']:g}" if collapse == "near" else collapse}
    if estimator == PAPER:
        return SelectionConfig.from_options(**{**options, **PAPER_PRESET, "preset": "paper"})
    return SelectionConfig.from_options(**options, **{name: values[name] for name in _options_of(estimator)})


def _sees(objective: str) -> str:
    return " ".join(catalogue.objective(name).sees for name in catalogue.objective_terms(objective))


def _estimator_label(name: str) -> str:
    if name == catalogue.AUTO:
        return "Automatic"
    if name == PAPER:
        return "Paper preset (REINFORCE, fixed)"
    column = catalogue.quality_column(name)
    return catalogue.estimator(name).label + (f" by {column}" if column else "")


def _estimator_about(name: str) -> str:
    if name == PAPER:
        return (
            "The published quick-test setting: REINFORCE, 128 masks, 5,000 steps, each on a tenth of the corpus, "
            "raw scale. Slow."
        )
    return catalogue.estimator(name).about
