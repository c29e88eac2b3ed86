"""The Run form: every choice of a `SelectionConfig` as a control with label, help text and the catalogue's default.

What to select is asked once, and two ways lead to it. *Solve* takes the quickest estimator that comes with a proof, or
another one that draws no masks, chosen under More settings. *Learn masks* is the paper's way: its number of masks
stands above the buttons, its other settings are folded below them. Options that both have (steps, polish) are two
controls each, since their defaults differ. Another method brings its own defaults, and leaves what a person typed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from datamask import catalogue
from datamask.config import PAPER_PRESET, SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import objective_help, outcome
from datamask.dashboard.shell import option_control
from datamask.errors import OptionError
from datamask.options import LEARNER_OPTIONS, OPTIONS, Number, Whole
from datamask.options.amounts import parse_tokens, tokens_text

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PAPER = "paper preset"
DEVICES = ("auto", "cpu", "cuda")
COLLAPSE = {
    "none": "Keep all",
    "exact": "Keep the best of exact duplicates",
    "near": "Keep the best of semantic duplicates",
}

AMOUNTS = ("rows", "tokens")

SOLVE, LEARN = "solve", "learn"
"""The two ways of the form."""

LEARNERS = tuple(entry.name for entry in catalogue.ESTIMATORS if entry.draws_masks)
"""Estimators that draw masks: those of Learn masks. The others are those of Solve."""

MASKS = "n_rollout"
"""The option of a learner that always shows, above the two buttons."""

FIRST = ("n_epochs", "partial", "init", "max_lr", "min_lr")
"""Options of a learner that come first where they are folded, in pairs."""

TYPED = "form_typed"
"""Of the session: by control the value that a person chose in the place of a method's default."""

FOLLOWED, FILLED = "form_followed", "form_filled"
"""Of the session: the problem that the form has started at, as values of its controls; names of those filled since."""

DEFAULTS: dict[str, Any] = {
    "amount": "rows",
    "cosine": 0.95,
    "name": "",
    "training": "",
    "way": SOLVE,
    **{name: option.default for name, option in OPTIONS.items() if option.help and not option.owners},
    "estimator": catalogue.AUTO,
    "budget": "",
    **{name: next(iter(option.owners.values())) for name, option in OPTIONS.items() if option.owners},
    **catalogue.estimator(catalogue.auto(OPTIONS["objective"].default)).defaults,
    "learner": LEARNERS[0],
    **{
        f"learn_{name}": next(option.owners[owner] for owner in LEARNERS if owner in option.owners)
        for name, option in OPTIONS.items()
        if set(option.owners) & set(LEARNERS)
    },
}
"""Of every control; those of the solver's own options are automatic's, else the first estimator's that has them; those
of the learner's are the first learner's that has them."""

HELP = {
    **{name: option.help for name, option in OPTIONS.items() if option.help},
    "cosine": "Rows with at least this cosine are semantic duplicates of each other.",
    "training": "Tokens that the model reads in training. Up to four epochs of repeated text are worth nearly as much "
    "as new text (arXiv 2305.16264).",
}
"""Of every control."""


@dataclass(frozen=True)
class RunForm:
    """What the form says.

    Attributes:
        solve, learn: the settings of either way; None where they contradict each other, which is then said.
        solver: what the button of the first is called.
        name: of the run; empty: made from the settings.
        training: tokens that are trained on; None: not said.
        place: for the cost and the buttons, above the settings of the learner.
    """

    solve: SelectionConfig | None
    learn: SelectionConfig | None
    solver: str
    name: str
    training: float | None
    place: DeltaGenerator


def _key(name: str) -> str:
    return f"form_{name}"


def _prepare() -> None:
    """Give every control its remembered value: Streamlit forgets a control's state when another page is shown."""
    remembered = st.session_state.setdefault("form_values", {})
    for name, value in DEFAULTS.items():
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


def _draws_masks(estimator: str) -> bool:
    return estimator == PAPER or estimator in LEARNERS


def _estimator_changed(before: str) -> None:
    """Another estimator brings its own defaults. `before`: the one until now, as `_resolved` gives it."""
    after = _resolved(st.session_state[_key("estimator")], st.session_state[_key("objective")])
    if after != before:
        _change_method(before, after)


def _learner_changed(before: str) -> None:
    """Another learner brings its own defaults. `before`: the one until now."""
    _change_method(before, st.session_state[_key("learner")], "learn_")


def _take_preset(before: str) -> None:
    st.session_state[_key("learner")] = PAPER
    _learner_changed(before)


def _change_method(before: str, after: str, prefix: str = "") -> None:
    """Give the options of a method their defaults, and those that a person changed their own values.

    Args:
        before, after: methods. prefix: of the controls; empty for those of Solve.
    """
    state = st.session_state
    typed = state.setdefault(TYPED, {})
    # a learner that automatic takes is at its defaults, and has its own controls; the preset is fixed
    if before != PAPER and (prefix or not _draws_masks(before)):
        for name, default in _options_of(before).items():
            # Streamlit forgets a control that is not drawn
            if (value := state.get(_key(prefix + name), default)) != default:
                typed[prefix + name] = value
            else:
                typed.pop(prefix + name, None)
    if prefix or not _draws_masks(after):
        for name, default in _options_of(after).items():
            state[_key(prefix + name)] = default if after == PAPER else typed.get(prefix + name, default)


def _estimators(columns: Sequence[str]) -> list[str]:
    """Automatic, the estimators of the objective that draw no masks, and by each of several columns."""
    names: list[str] = [catalogue.AUTO]
    for entry in catalogue.ESTIMATORS:
        if entry.name in LEARNERS or not entry.selects_by(st.session_state[_key("objective")]):
            continue
        names.append(entry.name)
        if entry.by_column and len(columns) > 1:
            names += [f"{entry.name}:{column}" for column in columns]
    current = st.session_state.get(_key("estimator"))
    return names if current in names or current is None else [*names, current]


def _follow(problem: SelectionConfig) -> None:
    """Start the form at the objective, the size and the lambda of a problem. What is chosen since stays until that part
    of the problem is another one.
    """
    state = st.session_state
    before, filled = state.get(FOLLOWED, {}), state.pop(FILLED, ())
    note_problem(problem)
    if any(catalogue.is_own(name) for name in catalogue.objective_terms(problem.objective)):
        return  # one that the form cannot run
    solver = _resolved(state[_key("estimator")], state[_key("objective")])
    for name, value in state[FOLLOWED].items():
        if name not in filled and (name not in before or before[name] != value):
            state[_key(name)] = value
    _estimator_changed(solver)


def note_problem(problem: SelectionConfig) -> None:
    """The form stands at this problem already: a run of its own is no reason to change it."""
    values: dict[str, Any] = {"objective": problem.objective, "lamb": problem.lamb}
    if problem.budget is None:
        values |= {"amount": "rows", "select_ratio": problem.select_ratio}
    else:
        values |= {"amount": "tokens", "budget": tokens_text(problem.budget)}
    st.session_state[FOLLOWED] = values


def use_settings(config: SelectionConfig) -> None:
    """Fill the form with a run's settings. For a button's `on_click`."""
    values = {k: v for k, v in config.to_dict().items() if k in DEFAULTS and v is not None}
    learner = PAPER if config.preset == "paper" else config.estimator
    if _draws_masks(learner):
        own = {name: values.pop(name) for name in LEARNER_OPTIONS if name in values}
        values |= {f"learn_{name}": value for name, value in own.items()}
        values |= {"learner": learner, "way": LEARN}
        del values["estimator"]  # the other way is left as it is
        if learner == PAPER:
            del values["scale"]
    elif config.estimator == catalogue.IMPORTED.name:
        del values["estimator"]  # how its ids were found is not known
    else:
        values["way"] = SOLVE
        if config.estimator == catalogue.auto(config.objective):
            values["estimator"] = catalogue.AUTO
    if config.collapse not in ("none", "exact"):
        values |= {"collapse": "near", "cosine": float(config.collapse)}
    values["amount"] = "rows" if config.budget is None else "tokens"
    if config.budget is not None:
        values["budget"] = tokens_text(config.budget)
    _fill(values)


def _fill(values: Mapping[str, Any]) -> None:
    """Set controls, wherever the form is drawn next: where it starts at another problem then, these stay."""
    state = st.session_state
    for name, value in values.items():
        state[_key(name)] = value
        state.setdefault("form_values", {})[name] = value
    state[FILLED] = {*state.get(FILLED, ()), *values}


def choose_way(way: str) -> None:
    """Remember which way was taken last: rules are held against it. For a button's `on_click`."""
    st.session_state[_key("way")] = way
    st.session_state.setdefault("form_values", {})["way"] = way


def _objectives() -> list[str]:
    """The catalogue's objectives, and a weighted sum where a run with one was loaded into the form."""
    names = [entry.name for entry in catalogue.OBJECTIVES]
    current = st.session_state.get(_key("objective"))
    return names if current in names or current is None else [*names, current]


def run_form(
    quality_columns: Sequence[str] = (),
    tokens: float | None = None,
    problem: SelectionConfig | None = None,
) -> RunForm:
    """Draw the controls in the present column.

    Args:
        quality_columns: the open corpus's. tokens: all of its rows' together; None: they have no lengths.
        problem: the current selection's, at its lambda, which the form starts at; None: it stays as it is.
    """
    _prepare()
    if problem is not None:
        _follow(problem)
    state = st.session_state
    with st.container(gap=None):
        st.slider("Balance λ", 0.0, 1.0, _now("lamb"), step=0.05, key=_key("lamb"), help=HELP["lamb"])
        with st.container(horizontal=True, horizontal_alignment="distribute", gap=None):
            st.caption("diversity alone", width="content")
            st.caption("quality alone", width="content")
    training = _amount(tokens)
    estimator = _resolved(state[_key("estimator")], state[_key("objective")])
    with st.container(gap="xxsmall"):
        objectives = _objectives()
        st.selectbox(
            "Diversity objective",
            objectives,
            _place_of("objective", objectives),
            key=_key("objective"),
            help=objective_help.text(),
            format_func=outcome.objective_choice,
            on_change=_estimator_changed,
            args=(estimator,),
        )
        st.caption(_sees(state[_key("objective")]))
    _control(MASKS, disabled=_now("learner") == PAPER, prefix="learn_")
    place = st.container()
    with st.expander("Settings of Learn masks"):
        _learner()
    with st.expander("More settings"):
        _solver(quality_columns)
        st.markdown("**Both**")
        _control("scale")
        _corpus_options()
    _remember()
    values = {key: state[_key(key)] for key in DEFAULTS if _key(key) in state}
    chosen = {}
    refused = []
    for way in (SOLVE, LEARN):
        try:
            chosen[way] = _selection({**values, "way": way})
        except OptionError as error:
            refused.append(words.sentence(error))
    for sentence in dict.fromkeys(refused):
        place.error(sentence, icon=":material/error:")
    solver = "Solve" if state[_key("estimator")] == catalogue.AUTO else "Start"
    return RunForm(chosen.get(SOLVE), chosen.get(LEARN), solver, state[_key("name")].strip(), training, place)


def _learner() -> None:
    """The learner and its settings, but for the number of masks."""
    learner = str(_now("learner"))
    learners = [*LEARNERS, PAPER]
    st.selectbox(
        "Learner",
        learners,
        _place_of("learner", learners),
        key=_key("learner"),
        format_func=_estimator_label,
        on_change=_learner_changed,
        args=(learner,),
    )
    st.caption(_estimator_about(learner))
    st.button(
        "Paper's preset",
        key="paper_preset",
        type="tertiary",
        icon=":material/description:",
        on_click=_take_preset,
        args=(learner,),
    )
    options, fixed = _options_of(learner), learner == PAPER
    _controls_of(FIRST, options, "learn_", fixed, in_pairs=True)
    _controls_of([name for name in LEARNER_OPTIONS if name not in (MASKS, *FIRST)], options, "learn_", fixed)


def _solver(quality_columns: Sequence[str]) -> str:
    """What Solve takes, and its settings; in a few words what it takes now."""
    estimators = _estimators(quality_columns)
    before = _resolved(_now("estimator"), st.session_state[_key("objective")])
    chosen = st.selectbox(
        "Method of Solve",
        estimators,
        _place_of("estimator", estimators),
        key=_key("estimator"),
        help=HELP["estimator"],
        format_func=_estimator_label,
        on_change=_estimator_changed,
        args=(before,),
    )
    estimator = _resolved(chosen, st.session_state[_key("objective")])
    about = f"Automatic uses {_estimator_label(estimator)} for this objective. " if chosen == catalogue.AUTO else ""
    if _draws_masks(estimator):
        st.caption(f"{about}This objective has no solver with a proof, so *Solve* learns masks.")
    else:
        st.caption(about + _estimator_about(estimator))
        _controls_of(LEARNER_OPTIONS, _options_of(estimator))
    if not catalogue.estimator(estimator).guided:
        st.caption("This method uses neither λ nor the objective.")
    return _estimator_label(estimator)


def _amount(tokens: float | None) -> float | None:
    """How much to select: a share of the rows, or tokens where samples have lengths.

    Returns:
        The tokens that are trained on; None where that was not said.
    """
    if not tokens:
        st.session_state[_key("amount")] = "rows"
        _ratio()
        return None
    st.segmented_control("How much", AMOUNTS, default=_now("amount"), required=True, key=_key("amount"))
    selected, trained = st.columns(2, gap="small")
    with selected:
        if st.session_state[_key("amount")] == "tokens":
            st.session_state[_key("budget")] = _now("budget") or tokens_text(float(f"{0.3 * tokens:.2g}"))
            st.text_input(
                "Token budget",
                key=_key("budget"),
                help=f"{HELP['budget']} The corpus has {words.short(tokens)}.",
                placeholder="150M",
            )
        else:
            _ratio()
    text = trained.text_input("Training tokens", key=_key("training"), help=HELP["training"], placeholder="optional")
    try:
        return parse_tokens(text) if text.strip() else None
    except OptionError:
        st.caption("Training tokens must be a number above 0, such as 150M, 1.5B or 2T.")
        return None


def _ratio() -> None:
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


def _control(name: str, place: DeltaGenerator | None = None, disabled: bool = False, prefix: str = "") -> None:
    option_control.draw(OPTIONS[name], _now(prefix + name), _key(prefix + name), place, disabled)


def _controls_of(
    names: Iterable[str], options: Mapping[str, Any], prefix: str = "", fixed: bool = False, in_pairs: bool = False
) -> None:
    """The controls of those options that the estimator has: number fields in two columns, choices below them.

    Args:
        in_pairs: choices stand in the two columns too.
    """
    offered = [name for name in names if name in options and OPTIONS[name].control is not None]
    paired = [name for name in offered if in_pairs or isinstance(OPTIONS[name].kind, (Number, Whole))]
    columns = st.columns(2) if paired else ()
    for place, name in zip(itertools.cycle(columns), paired):
        _control(name, place, fixed, prefix)
    for name in offered:
        if name not in paired:
            _control(name, None, fixed, prefix)


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
    st.text_input("Name", key=_key("name"), max_chars=80, placeholder="automatic")


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
            "Cosine of semantic duplicates",
            0.5,
            1.0,
            _now("cosine"),
            step=0.01,
            format="%.3g",
            key=_key("cosine"),
            help=HELP["cosine"],
        )


def remembered(way: str | None = None) -> SelectionConfig:
    """The settings the form was left with, or its defaults, without drawing it: what the next run will be.

    Args:
        way: `SOLVE` or `LEARN`; None: the one that was taken last.

    Raises:
        OptionError: they contradict each other.
    """
    values = {**DEFAULTS, **st.session_state.get("form_values", {})}
    return _selection(values if way is None else {**values, "way": way})


def _selection(values: Mapping[str, Any]) -> SelectionConfig:
    """The settings of the way that is among the values."""
    if own := [name for name in catalogue.objective_terms(values["objective"]) if catalogue.is_own(name)]:
        raise OptionError(
            f"{own[0]} is your own objective. Solve it on the command line with `python -m datamask select ... "
            f"--objective {own[0]}`, or choose another objective here"
        )
    learns = values["way"] == LEARN
    estimator = values["learner"] if learns else _resolved(values["estimator"], values["objective"])
    amount = "budget" if values["amount"] == "tokens" else "select_ratio"
    options = {name: values[name] for name, option in OPTIONS.items() if name in values and not option.owners}
    del options["budget" if amount == "select_ratio" else "select_ratio"]
    collapse = values["collapse"]
    options |= {"estimator": estimator, "collapse": f"{values['cosine']:g}" if collapse == "near" else collapse}
    if estimator == PAPER:
        return SelectionConfig.from_options(**{**options, **PAPER_PRESET, "preset": "paper"})
    own_options = _options_of(estimator)
    if learns:
        own_options = {name: values[f"learn_{name}"] for name in own_options}
    elif not _draws_masks(estimator):
        own_options = {name: values[name] for name in own_options}
    return SelectionConfig.from_options(**options, **own_options)


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
        return "REINFORCE with 128 masks and 5,000 steps, each on a tenth of the corpus, and raw scale. Slow."
    return catalogue.estimator(name).about
