"""What a run says: what is proved about it, its settings in a line, and the story of a run that is not finished."""

from __future__ import annotations

from dataclasses import dataclass

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.evaluation.result import LISTED, NO_RESULT, RunResult
from datamask.measured import Anchor, RowClasses
from datamask.options import OPTIONS
from datamask.options.amounts import tokens_text
from datamask.options.duplicates import duplicates_named
from datamask.runs.loose_bound import loose_bound
from datamask.runs.rule_book import rule_words
from datamask.runs.status import RunStatus
from datamask.runs.store import Run


@dataclass(frozen=True)
class Story:
    """How a run that is not finished stands: a heading, what happened, and the ways out.

    Attributes:
        heading, text: for the person who started it.
        kind: ``info``, ``warning`` or ``error``.
        actions: of ``stop`` and ``resume``.
    """

    heading: str
    text: str
    kind: str
    actions: tuple[str, ...]


def objective_label(objective: str) -> str:
    """The objective's name for people; a weighted sum as ``Facility location 30 % + Pair-wise similarity 70 %``."""
    from datamask.config import SelectionConfig

    terms = SelectionConfig.from_options(objective=objective).terms
    if len(terms) == 1:
        return catalogue.objective(terms[0][0]).label
    return " + ".join(f"{catalogue.objective(name).label} {words.percent(weight)}" for name, weight in terms)


def objective_choice(objective: str) -> str:
    """What a menu shows for an objective: its name, and before it *More* where it is one of those that come last."""
    known = next((entry for entry in catalogue.OBJECTIVES if entry.name == objective), None)
    return f"More: {known.label}" if known is not None and known.more else objective_label(objective)


def sample_words(run: Run) -> str:
    """Of a run on mapped arrays, that pages draw a sample of its rows; else nothing."""
    sample = (run.whole or {}).get("sample_rows")
    return "" if sample is None else f"; the map shows a uniform sample of {sample:,}"


VALUES = ("", "selected", "random subset", "best found", "share of the way")
"""Heads of the table of `values`."""

ROUNDING = 5e-7
"""A gap below this is rounding."""


def certificate(run: Run) -> str | None:
    """What is proved about a finished run, in the one sentence that is true; None where there is no bound."""
    result = run.status().result or NO_RESULT
    bound, gap, size = result.certificate.upper_bound, result.certificate.gap, result.size
    if bound is None or gap is None:
        return None
    kind = "on listed neighbors" if result.certificate.holds_for == LISTED else "for this objective"
    calibrated = run.config.selection.scale == "calibrated"
    optimal = calibrated and gap < ROUNDING
    near = f"{0.0 if optimal else words.gap_percent(gap):.2f}{words.GAP}%" if calibrated else words.value(gap)
    which = f"that fills {size.budget:,.0f} tokens" if size.budget else f"of {size.selected or 0:,} rows"
    which += f" with the {size.given:,} given rows" if size.given else ""
    which += " under the same rules" if rules(run) else ""
    head = f"Optimal {kind} (gap {near})" if optimal else f"Gap {near} {kind}"
    joint = words.percent(bound - gap, 2) if calibrated else words.value(bound - gap, 6)
    points = f"{words.gap_percent(gap):.2f} percentage points" if calibrated else near
    more = "higher" if optimal else f"more than {points} higher"
    return (
        f"{head}: the joint value is {joint}. No selection {which} has a joint value {more}."
        + (f" {loose}" if (loose := loose_bound(run, result)) else "")
        + classified(result.row_classes)
        + (f" Rules: {'; '.join(rules(run))}." if rules(run) else "")
    )


def classified(classes: RowClasses | None) -> str:
    """How many rows the proof requires, excludes and leaves interchangeable, in a sentence; empty where it cannot."""
    if classes is None or not classes.settled:
        return ""
    if not classes.open:
        return " All rows are required or excluded."
    return (
        f" {classes.inside:,} rows are required, {classes.outside:,} are excluded and {classes.open:,} are "
        "interchangeable."
    )


def rules(run: Run) -> list[str]:
    """The rules that the run was bound to, in words; empty where there was none."""
    return rule_words(run.config.selection, run.facts())


def neighbors(run: Run) -> str | None:
    """How the run's neighbour graph was found, in a sentence; None where it needed none, or does not say."""
    graph = run.graph()
    if graph is None:
        return None
    nearest = graph.k - 1
    if not graph.approximate:
        return f"Exact: each row with its {nearest:,} nearest other rows."
    return (
        f"Approximate: finds {words.percent(graph.recall, 1)} of the {nearest:,} nearest rows, measured on "
        f"{graph.recall_rows:,} random rows. {_values(run.status().result)}"
    )


def _values(result: RunResult | None) -> str:
    """What the values of a run on an approximate graph are, in a sentence; empty without a result."""
    if result is not None and (estimate := result.estimate) is not None:
        return (
            "The diversity is a lower bound on listed neighbors. The exact raw value is "
            f"{words.value(estimate.value, 5)} ({words.value(estimate.low, 5)} to "
            f"{words.value(estimate.high, 5)}, 95 %, from {estimate.rows:,} random rows)."
        )
    return "" if result is None else "The values at the end are exact."


def story(run: Run) -> Story | None:
    """The state of a run that is not done, in words; None for one that is."""
    status = run.status()
    step = _steps(run, status)
    at = "before its first step" if not step else f"at step {step:,}"
    at += f" of {status.total_steps:,}" if step and status.total_steps >= step else ""
    if status.state == "queued":
        return Story(
            "Waiting for its turn",
            "It starts when its device is free.",
            "info",
            ("stop",),
        )
    if status.state == "running":
        return Story("Learning", status.message or "starting", "info", ("stop",))
    if status.state == "stopped":
        if not step:
            kept = "It has learned nothing yet; resume to start it."
        elif run.keeps_progress:
            kept = "Its progress is kept. Resume it to get the same selection as without the stop."
        else:
            kept = "It has no checkpoint; resume to start from the beginning."
        return Story("Stopped", f"This run was stopped {at}. {kept}", "warning", ("resume",))
    if status.state == "interrupted":
        if not step:
            kept = "It has learned nothing yet; resume to start it."
        elif run.keeps_progress:
            kept = "Its last checkpoint is kept; resume to continue from there."
        else:
            kept = "It has no checkpoint; resume to start from the beginning."
        return Story(
            "Interrupted",
            f"The process of this run ended {at}: the server restarted, the memory was full or the machine was "
            f"switched off. {kept}",
            "warning",
            ("resume",),
        )
    if status.state == "failed":
        return Story("Failed", status.error or "The run failed without a message.", "error", ("resume",))
    return None


def _steps(run: Run, status: RunStatus) -> int:
    """How many steps are recorded: the status may be written before the first of them, or after a stop between two."""
    recorded = run.metrics().get("step")
    return max(status.step or 0, int(recorded[-1]) if recorded is not None and len(recorded) else 0)


def values(run: Run, digits: int = 4) -> list[tuple[str, ...]]:
    """Quality and diversity of a done run in words, in the columns `VALUES`."""
    result, objective = run.status().result or NO_RESULT, run.config.selection.objective
    objectives = result.objectives or {objective: result.raw.diversity}
    ends: dict[str, Anchor | None] = {}
    if result.anchors is not None:
        ends = {"quality": result.anchors.quality, **result.anchors.diversity}
    reached, shares = {"quality": result.raw.quality, **objectives}, {"quality": result.calibrated.quality}
    if len(objectives) == 1:  # of a sum, the share is of all its terms together
        shares |= dict.fromkeys(objectives, result.calibrated.diversity)
    rows = []
    for name, value in reached.items():
        label = "mean quality" if name == "quality" else f"diversity ({objective_label(name)})"
        end = ends.get(name)
        numbers = (value, *((None, None) if end is None else (end.random, end.best)))
        rows.append((label, *(words.value(number, digits) for number in numbers), words.percent(shares.get(name), 1)))
    return rows


def headline(run: Run) -> str:
    """The settings in one line: objective, lambda, ratio, estimator."""
    config = run.config.selection
    entry = catalogue.estimator(config.estimator)
    how = "paper preset" if config.preset == "paper" else entry.label
    balance = f"λ {config.lamb:g}"
    if not entry.guided:
        column = catalogue.quality_column(config.estimator)
        by = f" by {column}" if column else ""
        return " · ".join([f"{entry.label}{by}", *special_options(config), _amount(config)])
    masks = f"G {config.n_rollout} · " if config.n_rollout else ""
    extras = [f"worst {words.percent(config.prune)} skipped"] if config.prune else []
    if config.collapse != "none":
        extras.append(f"without {duplicates_named(config.collapse, run.facts().get('columns'))}")
    if config.center:
        extras.append("features centered")
    if config.components is not None:
        extras.append(f"{config.components} components")
    if config.scale == "raw":
        extras.append("raw scale")
    how = " · ".join([how, *extras])
    return f"{objective_label(config.objective)} · {balance} · {_amount(config)} · {masks}{how}"


def special_options(config: SelectionConfig) -> list[str]:
    """Options that only some estimators have, where they are not at this one's default, as in ``temperature 1``."""
    return [
        f"{OPTIONS[name].varied or OPTIONS[name].title.lower()} {OPTIONS[name].shown(getattr(config, name))}"
        for name, default in catalogue.estimator(config.estimator).defaults.items()
        if getattr(config, name) != default
    ]


def _amount(config: SelectionConfig) -> str:
    """How much is selected: a share of the rows, or tokens."""
    if config.budget is not None:
        return f"{tokens_text(config.budget)} tokens"
    return f"{words.percent(config.select_ratio, _digits(config.select_ratio))} of the rows"


def _digits(ratio: float) -> int:
    return 0 if round(100 * ratio) >= 1 and abs(100 * ratio - round(100 * ratio)) < 1e-9 else 2


def proposed_name(
    objective: str, lamb: float, ratio: float, estimator: str, budget: float | None = None, rules: int = 0
) -> str:
    """A name for a run that was given none: what sets it apart, short enough for a menu."""
    share = words.percent(ratio, _digits(ratio)) if budget is None else f"{tokens_text(budget)} tokens"
    bound = f", {rules} rule{'' if rules == 1 else 's'}" if rules else ""
    if not catalogue.estimator(estimator).guided:
        return f"{estimator}, {share}{bound}"
    label = objective if ":" not in objective else objective.replace(",", "+")
    how = "" if estimator == catalogue.auto(objective) else f", {estimator}"
    return f"{label}, λ {lamb:g}, {share}{how}{bound}"
