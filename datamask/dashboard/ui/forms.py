"""The Run form: every choice of a `SelectionConfig` as a control with label, help text and the catalogue's default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from datamask import catalogue
from datamask.config import LEARNER_OPTIONS, PAPER_PRESET, SelectionConfig
from datamask.dashboard import words
from datamask.dashboard.views import outcome
from datamask.errors import OptionError
from datamask.options.amounts import tokens_text

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PAPER = "paper preset"
DEVICES = ("auto", "cpu", "cuda")
NEIGHBORS = {"auto": "Automatic", "exact": "Exact", "approximate": "Approximate, quicker"}
COLLAPSE = {"none": "Keep them all", "exact": "Keep the best of exact copies",
            "near": "Keep the best of near-copies"}

AMOUNTS = ("rows", "tokens")

DEFAULTS: dict[str, Any] = {
    "lamb": 0.5, "amount": "rows", "select_ratio": 0.3, "budget": "", "objective": "facility",
    "estimator": catalogue.AUTO, "scale": "calibrated",
    "prune": 0.0, "collapse": "none", "cosine": 0.95, "center": False, "neighbors": "auto",
    "seed": 0, "device": "auto", "name": "",
    **{option: value for entry in reversed(catalogue.ESTIMATORS) for option, value in entry.defaults.items()},
    **catalogue.estimator(catalogue.auto("facility")).defaults,
}
"""Of every control; those of the learner's own options are automatic's, else the first estimator's that has them."""

HELP = {
    "lamb": "An exchange rate: 1 looks at quality alone, 0 at diversity alone. At 0.5 one point of quality, on a scale "
            "from a random subset (0) to the best one (100), weighs as much as one point of diversity.",
    "select_ratio": "Share of the corpus to keep, strictly between 0 and 1. Exactly this many rows are selected.",
    "amount": "Select a share of the rows, or as many rows as fill a number of tokens.",
    "budget": "Tokens to fill, such as 150M or 1.5G. How many rows that is follows from their lengths.",
    "objective": "What diversity means in this run. Each of them sees something else; try more than one. "
                 "Facility location, pair-wise similarity and DiSF with fixed scale come with a bound that no "
                 "selection exceeds; DiSF and graph cut have none.",
    "n_rollout": "G, the group size: how many candidate subsets (masks) are sampled and scored in each step. More of "
                 "them give steadier steps and take longer. 2 is enough with exact credit (Counterfactual); the "
                 "paper's REINFORCE uses 128.",
    "estimator": "How the selection is found. Automatic takes the quickest that comes with a proof: Relaxed for "
                 "facility location alone and for sums of concave objectives, else Counterfactual. The baselines learn "
                 "nothing and are there to be compared with. The paper preset is the published quick-test setting; it "
                 "cannot be changed.",
    "n_epochs": "A ceiling on update steps; the learner may stop earlier, once its selection no longer changes.",
    "partial": "Share of the rows that one step looks at. Small batches are quick, but each step then knows less.",
    "max_lr": "Step size at the beginning; it falls in a straight line to the last step size. Too large, and the "
              "selection freezes before it has learned anything.",
    "min_lr": "Step size at the end.",
    "init": "Where the logits start: all the same, or in proportion to quality.",
    "score": "How a sampled subset's value reaches its rows. By membership is the paper's step, an approximation of "
             "the gradient; by the draw's own probability, the step is the gradient in the mean.",
    "readout": "How the final subset is read off the logits: the strongest rows, or one last random draw.",
    "polish": "After learning, swap single rows in and out for as long as that raises the value. Quick, and it never "
              "makes a selection worse.",
    "scale": "Calibrated: λ weighs shares of the attainable gain, so that it means the same on every corpus. Raw: λ "
             "weighs the bare values, as in the paper; one of them then usually drowns the other.",
    "prune": "Drop this share of the rows, the worst by quality, before learning. Learning gets quicker.",
    "collapse": "What to do with copies before selecting. Rows with identical features count as exact copies, whatever "
                "their text. Pair-wise similarity and DiSF cannot see copies themselves.",
    "center": "Subtract the corpus's mean from the features first. For embeddings whose cosines are all high, such as "
              "E5's: what all texts share is taken away, and diversity looks at what differs.",
    "cosine": "Rows at least this similar (cosine of their features) count as copies of each other.",
    "neighbors": "Facility location, graph cut and near-copies look at each row's nearest rows. An approximate search "
                 "misses about 1 in 100 of them and is quicker. How many it finds is measured and shown. Automatic is "
                 "exact up to 200,000 rows, and on a GPU. A search that is kept and exact is always used again.",
    "seed": "Every random choice follows from it: the same seed on the same corpus gives the same selection.",
    "device": "Where to compute. Auto takes a GPU where there is one. cuda:1 names the second GPU.",
    "name": "What to call this run in lists and pictures. You can change it later.",
}


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
    """Automatic, the catalogue's estimators, the preset after the one it sets, and by each of several columns."""
    names: list[str] = [catalogue.AUTO]
    for entry in catalogue.ESTIMATORS:
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


def run_form(defaults: dict[str, Any] | None = None, quality_columns: Sequence[str] = (), tokens: float | None = None
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
        st.slider("Balance λ", 0.0, 1.0, _now("lamb"), step=0.05, key=_key("lamb"), help=HELP["lamb"],
                  disabled=not guided)
        with st.container(horizontal=True, horizontal_alignment="distribute", gap=None):
            st.caption("diversity alone", width="content")
            st.caption("quality alone", width="content")
    _amount(tokens)
    with st.container(gap="xxsmall"):
        objectives = _objectives()
        st.selectbox("Diversity objective", objectives, _place_of("objective", objectives), key=_key("objective"),
                     help=HELP["objective"], format_func=outcome.objective_label, disabled=not guided,
                     on_change=_objective_changed, args=(estimator,))
        if guided:
            st.caption(_sees(state[_key("objective")]))
    st.number_input("Masks per step (G)", 1, 4096, _now("n_rollout"), step=2, key=_key("n_rollout"),
                    help=HELP["n_rollout"], disabled=fixed or "n_rollout" not in _options_of(estimator))
    place = st.container()
    with st.expander("More settings"):
        estimators = _estimators(quality_columns)
        st.selectbox("Estimator", estimators, _place_of("estimator", estimators), key=_key("estimator"),
                     help=HELP["estimator"], format_func=_estimator_label, on_change=_estimator_changed)
        st.caption((f"{_estimator_label(estimator)} here. " if chosen == catalogue.AUTO else "")
                   + _estimator_about(estimator))
        _learner_options(_options_of(estimator), fixed)
        if guided:
            scales = ("calibrated", "raw")
            st.selectbox("Scale of λ", scales, _place_of("scale", scales), key=_key("scale"), help=HELP["scale"],
                         disabled=fixed, format_func={"calibrated": "calibrated shares",
                                                      "raw": "raw, as in the paper"}.get)
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
        st.segmented_control("How much", AMOUNTS, default=_now("amount"), required=True, key=_key("amount"),
                             help=HELP["amount"])
    else:
        st.session_state[_key("amount")] = "rows"
    if st.session_state[_key("amount")] == "tokens":
        st.session_state[_key("budget")] = _now("budget") or tokens_text(float(f"{0.3 * tokens:.2g}"))
        st.text_input("Token budget", key=_key("budget"), help=f"{HELP['budget']} The corpus has "
                      f"{words.short(tokens)}.", placeholder="150M")
    else:
        st.number_input("Select ratio", 0.0001, 0.9999, _now("select_ratio"), step=0.05, format="%.4g",
                        key=_key("select_ratio"), help=HELP["select_ratio"])


def _learner_options(options: Mapping[str, Any], fixed: bool) -> None:
    """The controls of those options the estimator has; number fields in two columns, choices below them."""
    numbers = (
        ("n_epochs", "Steps, at most", {"min_value": 1, "max_value": 1_000_000, "step": 50}),
        ("partial", "Batch share", {"min_value": 0.001, "max_value": 1.0, "step": 0.1, "format": "%.3g"}),
        ("max_lr", "First step size", {"min_value": 0.0001, "max_value": 1000.0, "step": 0.5, "format": "%.4g"}),
        ("min_lr", "Last step size", {"min_value": 0.0, "max_value": 1000.0, "step": 0.05, "format": "%.4g"}),
    )
    choices = (
        ("init", "Logits start", {"same": "all the same", "quality": "in proportion to quality"}),
        ("score", "Credit of a draw", {"mask": "by membership, as in the paper",
                                       "exact": "by the draw's probability"}),
        ("readout", "Final subset", {"top": "the strongest rows", "sample": "one last draw"}),
        ("polish", "Polish at the end", {"swaps": "swap rows while it helps", "none": "no"}),
    )
    left, right = st.columns(2)
    for place, (name, label, limits) in zip((left, right, left, right), numbers):
        if name in options:
            place.number_input(label, value=_now(name), key=_key(name), help=HELP[name], disabled=fixed, **limits)
    for name, label, said in choices:
        if name in options:
            st.selectbox(label, tuple(said), _place_of(name, tuple(said)), key=_key(name), help=HELP[name],
                         disabled=fixed, format_func=said.get)


def _corpus_options() -> None:
    """What every estimator has: which rows may be selected, the seed, the device, the name."""
    st.number_input("Prune by quality first", 0.0, 0.99, _now("prune"), step=0.1, format="%.3g", key=_key("prune"),
                    help=HELP["prune"])
    st.selectbox("Copies", tuple(COLLAPSE), _place_of("collapse", tuple(COLLAPSE)), key=_key("collapse"),
                 help=HELP["collapse"], format_func=COLLAPSE.get)
    if st.session_state[_key("collapse")] == "near":
        st.number_input("Cosine of a near-copy", 0.5, 1.0, _now("cosine"), step=0.01, format="%.3g",
                        key=_key("cosine"), help=HELP["cosine"])
    st.checkbox("Center the features", _now("center"), key=_key("center"), help=HELP["center"])
    st.selectbox("Nearest rows", tuple(NEIGHBORS), _place_of("neighbors", tuple(NEIGHBORS)), key=_key("neighbors"),
                 help=HELP["neighbors"], format_func=NEIGHBORS.get)
    left, right = st.columns(2)
    left.number_input("Seed", 0, 2**53 - 1, _now("seed"), step=1, key=_key("seed"), help=HELP["seed"])
    devices = DEVICES if _now("device") in DEVICES else (*DEVICES, _now("device"))
    right.selectbox("Device", devices, _place_of("device", devices), key=_key("device"), help=HELP["device"],
                    accept_new_options=True)
    st.text_input("Name", key=_key("name"), help=HELP["name"], max_chars=80, placeholder="made from the settings")


def remembered() -> SelectionConfig:
    """The settings the form was left with, or its defaults, without drawing it: what the next run will be.

    Raises:
        OptionError: they contradict each other.
    """
    return _selection({**DEFAULTS, **st.session_state.get("form_values", {})})


def _selection(values: Mapping[str, Any]) -> SelectionConfig:
    estimator, collapse = _resolved(values["estimator"], values["objective"]), values["collapse"]
    if own := [name for name in catalogue.objective_terms(values["objective"]) if catalogue.is_own(name)]:
        raise OptionError(f"{own[0]} is an objective of somebody's own. Its code is only run where its name is typed: "
                          f"use `python -m datamask select ... --objective {own[0]}`, or choose another objective here")
    amount = "budget" if values["amount"] == "tokens" else "select_ratio"
    options = {name: values[name] for name in (amount, "objective", "lamb", "center", "prune", "neighbors", "seed",
                                               "device")}
    options["collapse"] = f"{values['cosine']:g}" if collapse == "near" else collapse
    if estimator == PAPER:
        return SelectionConfig.from_options(preset="paper", **options)
    options |= {"estimator": estimator, "scale": values["scale"]}
    options |= {name: values[name] for name in _options_of(estimator)}
    return SelectionConfig.from_options(**options)


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
        return ("The published quick-test setting: REINFORCE, 128 masks, 5,000 steps, each on a tenth of the corpus, "
                "raw scale. Slow.")
    return catalogue.estimator(name).about
