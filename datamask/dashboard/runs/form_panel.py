"""The Run form: the problem of the view, and how it is searched for, as controls with label, help text and default.

What to select is a part of the view: its controls show it and change it. Two ways lead to a selection. *Solve* takes
the quickest estimator that comes with a proof, or another one that draws no masks, chosen under More settings. *Learn
masks* is the paper's way: its number of masks stands above the buttons, its other settings are folded below them. Each
method has controls of its own, which start at its defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from datamask import catalogue
from datamask.config import PAPER_PRESET, SelectionConfig
from datamask.config.selection import PROBLEM, RULES
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import objective_help, outcome
from datamask.dashboard.shell import option_control
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.option_control import KEPT
from datamask.errors import OptionError
from datamask.options import LEARNER_OPTIONS, OPTIONS, Choice, Device, Number, Whole
from datamask.options.amounts import parse_tokens, tokens_text
from datamask.options.duplicates import GROUPS, column_of, is_cosine
from datamask.runs.run_queue import device_name

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PAPER = "paper preset"
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

FOLDED = tuple(
    name
    for name, option in OPTIONS.items()
    if option.control is not None and option.control.more and not option.owners and name not in RULES
)
"""Options of every method that stand under More settings."""

OTHERS = tuple(name for name in FOLDED if name not in PROBLEM)
"""Those of them that do not pose the problem."""


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


def _key(name: str, method: str = "") -> str:
    """Key of a control: of the form, or of one of its methods."""
    return f"{method.replace(' ', '_')}_{name}" if method else f"form_{name}"


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


def _estimators(columns: Sequence[str], objective: str) -> list[str]:
    """Automatic, the estimators of the objective that draw no masks, and by each of several columns."""
    names: list[str] = [catalogue.AUTO]
    for entry in catalogue.ESTIMATORS:
        if entry.name in LEARNERS or not entry.selects_by(objective):
            continue
        names.append(entry.name)
        if entry.by_column and len(columns) > 1:
            names += [f"{entry.name}:{column}" for column in columns]
    current = st.session_state.get(_key("estimator"))
    return names if current in names or current is None else [*names, current]


def use_method(config: SelectionConfig) -> None:
    """Have the form search as a run does. For a button's `on_click`."""
    state = st.session_state
    method = PAPER if config.preset == "paper" else config.estimator
    if _draws_masks(method):
        state[_key("learner")] = method
    elif method != catalogue.IMPORTED.name:  # how imported ids were found is not known
        state[_key("estimator")] = catalogue.AUTO if method == catalogue.auto(config.objective) else method
    if method not in (PAPER, catalogue.IMPORTED.name):
        state.update({_key(name, method): getattr(config, name) for name in _options_of(method)})
    state.update({_key(name): getattr(config, name) for name in OTHERS})


def run_form(
    problem: SelectionConfig,
    pose: Callable[[SelectionConfig], None],
    quality_columns: Sequence[str] = (),
    tokens: float | None = None,
    group_columns: Sequence[str] = (),
) -> RunForm:
    """Draw the controls in the present column.

    Args:
        problem: of the view, with its rules and λ. pose: called with another one, in which only what a control says has
            changed.
        quality_columns: the open corpus's. tokens: all of its rows' together; None: they have no lengths.
        group_columns: its columns whose groups duplicates may be.
    """
    _show(problem)

    def changed() -> None:
        try:
            pose(_posed(problem))
        except OptionError as error:
            st.session_state["trouble"] = str(error)

    def posed(name: str, place: DeltaGenerator | None = None, **about: Any) -> Any:
        about = {"on_change": changed, **about}
        return option_control.draw(OPTIONS[name], None, _key(name), place, **about)

    with st.container(gap=None):
        posed("lamb")
        with st.container(horizontal=True, horizontal_alignment="distribute", gap=None):
            st.caption("diversity alone", width="content")
            st.caption("quality alone", width="content")
    training = _amount(posed, tokens, changed)
    names = [entry.name for entry in catalogue.OBJECTIVES]
    names += [] if problem.objective in names else [problem.objective]
    with st.container(gap="xxsmall"):
        posed("objective", choices=names, shown=outcome.objective_choice, help=objective_help.text())
        st.caption(" ".join(catalogue.objective(name).sees for name in catalogue.objective_terms(problem.objective)))
    masks, place = st.container(), st.container()
    device = st.session_state.get(_key("device"), OPTIONS["device"].default)
    with st.expander(f"Settings of Learn masks · on {device_name(device)}"):
        learner = _learner()
    _control(MASKS, learner, masks)
    with st.expander("More settings"):
        _solver(quality_columns, problem.objective)
        st.markdown("**Both**")
        for name in FOLDED:
            if name == "collapse":
                _copies(posed, changed, group_columns)
            elif name in PROBLEM:
                posed(name)
        others = {name: OPTIONS[name] for name in OTHERS}
        option_control.draw_in_pairs(
            others.values(), {name: option.default for name, option in others.items()}, _key, (Whole, Device), **KEPT
        )
        st.text_input("Name", key=_key("name"), max_chars=80, placeholder="automatic", **KEPT)
    return _said(problem, place, training)


def _said(problem: SelectionConfig, place: DeltaGenerator, training: float | None) -> RunForm:
    """What the form says of a problem; settings that contradict each other are said in its place for buttons."""
    chosen = {}
    refused = []
    for way in (SOLVE, LEARN):
        try:
            chosen[way] = settings_now(problem, way)
        except OptionError as error:
            refused.append(words.sentence(error))
    for sentence in dict.fromkeys(refused):
        place.error(sentence, icon=":material/error:")
    state = st.session_state
    solver = "Solve" if state[_key("estimator")] == catalogue.AUTO else "Start"
    return RunForm(chosen.get(SOLVE), chosen.get(LEARN), solver, state[_key("name")].strip(), training, place)


def _show(problem: SelectionConfig) -> None:
    """Put the controls of the problem where the view is."""
    near = is_cosine(problem.collapse)
    values = {name: getattr(problem, name) for name in PROBLEM} | {
        "lamb": problem.lamb,
        "amount": "rows" if problem.budget is None else "tokens",
        "collapse": "near" if near else problem.collapse,
        "cosine": float(problem.collapse) if near else 0.95,
        "training": views.now().training,
    }
    values["budget"] = "" if problem.budget is None else tokens_text(problem.budget)
    for name, value in values.items():
        st.session_state[_key(name)] = value


def _posed(problem: SelectionConfig) -> SelectionConfig:
    """The problem as the controls say it.

    Raises:
        OptionError: they contradict each other.
    """
    state = st.session_state
    values = {name: state.get(_key(name), getattr(problem, name)) for name in (*PROBLEM, "lamb")}
    if state[_key("amount")] == "rows":
        del values["budget"]
    elif values["budget"]:
        del values["select_ratio"]
    if values["collapse"] == "near":
        values["collapse"] = f"{state.get(_key('cosine'), 0.95):g}"
    return SelectionConfig.from_options(**values)


def _learner() -> str:
    """The learner and its settings, but for the number of masks."""
    learner: str = st.selectbox(
        "Learner",
        learners := [*LEARNERS, PAPER],
        learners.index(st.session_state.get(_key("learner"), LEARNERS[0])),
        key=_key("learner"),
        format_func=_estimator_label,
        **KEPT,
    )
    st.caption(_estimator_about(learner))
    st.button(
        "Paper's preset",
        key="paper_preset",
        type="tertiary",
        icon=":material/description:",
        on_click=st.session_state.update,
        args=({_key("learner"): PAPER},),
    )
    _controls_of(FIRST, learner, (Number, Whole, Choice))
    _controls_of([name for name in LEARNER_OPTIONS if name not in (MASKS, *FIRST)], learner)
    return learner


def _solver(quality_columns: Sequence[str], objective: str) -> None:
    """What Solve takes, and its settings."""
    estimators, key = _estimators(quality_columns, objective), _key("estimator")
    if st.session_state.get(key, catalogue.AUTO) not in estimators:  # of another objective, or of other columns
        st.session_state[key] = catalogue.AUTO
    chosen = option_control.draw(
        OPTIONS["estimator"],
        catalogue.AUTO,
        key,
        choices=estimators,
        shown=_estimator_label,
        label="Method of Solve",
        **KEPT,
    )
    estimator = _resolved(chosen, objective)
    about = f"Automatic uses {_estimator_label(estimator)} for this objective. " if chosen == catalogue.AUTO else ""
    if _draws_masks(estimator):
        st.caption(f"{about}This objective has no solver with a proof, so *Solve* learns masks.")
    else:
        st.caption(about + _estimator_about(estimator))
        _controls_of(LEARNER_OPTIONS, estimator)
    if not catalogue.estimator(estimator).guided:
        st.caption("This method uses neither λ nor the objective.")


def _amount(posed: Callable[..., Any], tokens: float | None, changed: Callable[[], None]) -> float | None:
    """How much to select: a share of the rows, or tokens where samples have lengths.

    Returns:
        The tokens that are trained on; None where that was not said.
    """
    if not tokens:
        posed("select_ratio")
        return None

    def measured() -> None:
        if st.session_state[_key("amount")] == "tokens":
            st.session_state[_key("budget")] = tokens_text(float(f"{0.3 * tokens:.2g}"))
        changed()

    amount = st.session_state[_key("amount")]
    st.segmented_control("How much", AMOUNTS, default=amount, required=True, key=_key("amount"), on_change=measured)
    selected, trained = st.columns(2, gap="small")
    if amount == "tokens":
        posed("budget", selected, help=f"{OPTIONS['budget'].help} The corpus has {words.short(tokens)}.")
    else:
        posed("select_ratio", selected)
    text = trained.text_input(
        "Training tokens",
        st.session_state[_key("training")],
        key=_key("training"),
        help="Tokens that the model reads in training. Up to four epochs of repeated text are worth nearly as much as "
        "new text (arXiv 2305.16264).",
        placeholder="optional",
        on_change=lambda: views.change(training=st.session_state[_key("training")].strip()),
    )
    try:
        return parse_tokens(text) if text.strip() else None
    except OptionError:
        st.caption("Training tokens must be a number above 0, such as 150M, 1.5B or 2T.")
        return None


def _control(name: str, method: str, place: DeltaGenerator | None = None) -> None:
    """A control of a method's own option; the preset's are fixed."""
    value = _options_of(method)[name]
    option_control.draw(OPTIONS[name], value, _key(name, method), place, disabled=method == PAPER, **KEPT)


def _controls_of(names: Iterable[str], method: str, paired: tuple[type, ...] = (Number, Whole)) -> None:
    """The controls of those options that the method has; the preset's are fixed. `paired`: kinds in two columns."""
    values = _options_of(method)
    options = [OPTIONS[name] for name in names if name in values and OPTIONS[name].control is not None]
    option_control.draw_in_pairs(
        options, values, lambda name: _key(name, method), paired, disabled=method == PAPER, **KEPT
    )


def _copies(posed: Callable[..., Any], changed: Callable[[], None], group_columns: Sequence[str]) -> None:
    """What becomes of copies, and from which cosine on two rows are copies of each other."""
    now = st.session_state[_key("collapse")]
    ways = list(dict.fromkeys([*COLLAPSE, *(f"{GROUPS}{name}" for name in group_columns), now]))

    def shown(way: str) -> str:
        return COLLAPSE.get(way) or f"Keep the best of each group of {words.plain(column_of(way))}"

    posed("collapse", choices=ways, shown=shown)
    if now == "near":
        st.number_input(
            "Cosine of semantic duplicates",
            0.5,
            1.0,
            st.session_state[_key("cosine")],
            step=0.01,
            format="%.3g",
            key=_key("cosine"),
            help="Rows with at least this cosine are semantic duplicates of each other.",
            on_change=changed,
        )


def settings_now(problem: SelectionConfig, way: str) -> SelectionConfig:
    """The settings of a way as its controls stand now, which in a callback may be later than they were drawn.

    Raises:
        OptionError: they contradict each other.
    """
    if way == LEARN:
        return _selection(problem, st.session_state.get(_key("learner"), LEARNERS[0]))
    estimator = st.session_state.get(_key("estimator"), catalogue.AUTO)
    return _selection(problem, _resolved(estimator, problem.objective))


def _selection(problem: SelectionConfig, method: str) -> SelectionConfig:
    """The settings of a run that searches for the problem with a method."""
    if own := [name for name in catalogue.objective_terms(problem.objective) if catalogue.is_own(name)]:
        raise OptionError(
            f"{own[0]} is your own objective. Solve it on the command line with `python -m datamask select ... "
            f"--objective {own[0]}`, or choose another objective here"
        )
    options = {name: getattr(problem, name) for name in (*PROBLEM, *RULES, "lamb")}
    if problem.budget is not None:
        del options["select_ratio"]
    options |= {name: st.session_state[_key(name)] for name in OTHERS}
    if method == PAPER:
        return SelectionConfig.from_options(**{**options, **PAPER_PRESET, "preset": "paper"})
    defaults = _options_of(method)
    own_options = {name: st.session_state.get(_key(name, method), default) for name, default in defaults.items()}
    return SelectionConfig.from_options(**options, **own_options, estimator=method)


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
