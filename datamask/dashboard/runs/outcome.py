"""What a run says: few numbers as share of the attainable gain, the raw ones behind them, and the story of a run that
is not finished."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.options import OPTIONS
from datamask.options.amounts import tokens_text
from datamask.runs.rule_book import rule_words
from datamask.runs.store import Run


@dataclass(frozen=True)
class Number:
    """A large number: ``label``, ``value`` as text, ``caption`` below it, ``help`` with the raw values."""

    label: str
    value: str
    caption: str
    help: str


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


def numbers(run: Run) -> tuple[Number, ...]:
    """Quality, diversity and size of a finished run; empty before."""
    summary = run.status().summary
    if not summary:
        return ()
    calibrated, anchors = summary.get("calibrated") or {}, summary.get("anchors") or {}
    config = run.config.selection
    quality = _number(
        "Quality",
        calibrated.get("quality"),
        summary.get("quality"),
        anchors.get("quality"),
        "the best quality",
        "mean quality",
    )
    name = objective_label(config.objective)
    single = (anchors.get("diversity") or {}).get(config.objective)
    diversity = _number(
        "Diversity", calibrated.get("diversity"), summary.get("diversity"), single, "the best diversity", name
    )
    selected, n = int(summary.get("selected") or 0), int(summary.get("n") or 0)
    tokens = summary.get("tokens")
    took = words.duration(summary.get("seconds_total") or summary.get("seconds"))
    size = Number(
        "Selected",
        words.count(selected),
        f"of {n:,} rows" + (f", {words.count(tokens)} tokens" if tokens else "") + sample_words(run),
        f"{summary.get('steps') or 0:,} steps in {words.duration(summary.get('seconds'))}; with neighbour "
        f"graph, references and polish {took}.",
    )
    return quality, diversity, size


def sample_words(run: Run) -> str:
    """Of a run on all rows of a corpus beyond memory, that pages draw a sample of them; else nothing."""
    sample = (run.whole or {}).get("sample_rows")
    return "" if sample is None else f"; drawn is a uniform sample of {sample:,}"


def _number(label: str, share: float | None, raw: float | None, anchor: dict | None, best: str, what: str) -> Number:
    if share is None:
        return Number(
            label,
            words.value(raw),
            f"raw {what}",
            f"{label} has no calibrated value here: the term is "
            "constant on this corpus, so no subset is better than another.",
        )
    meaning = f"Raw value ({what}): {words.value(raw, 5)}."
    if anchor:
        kind = anchor.get("best_kind")
        meaning += (
            f" A random subset has {words.value(anchor.get('random'), 5)}; the best this term reaches alone is "
            f"{words.value(anchor.get('best'), 5)}" + (f" ({kind})" if kind else "") + "."
        )
    caption = f"of the way from random to {best}" if share >= 0 else "below a random subset"
    return Number(label, words.percent(share), caption, meaning)


def certificate(run: Run) -> str | None:
    """What is proved about a finished run, in the one sentence that is true; None where there is no bound."""
    summary = run.status().summary or {}
    bound, gap = summary.get("upper_bound"), summary.get("gap")
    if bound is None or gap is None:
        return None
    listed = summary.get("bound_holds_for", "exact") == "listed"
    what = "the listed-neighbour objective" if listed else "this objective"
    beside = f" beside the {summary['given']:,} given ones" if summary.get("given") else ""
    budget = summary.get("budget")
    which = f"that fills {budget:,.0f} tokens" if budget else f"of {summary.get('selected', 0):,} samples"
    proved = "Proved of the listed-neighbour objective only" if listed else "Proved"
    beside += " under the same rules" if rules(run) else ""
    return (
        f"{proved}: no selection {which}{beside} has a higher value of {what} on these features than "
        f"{words.value(bound)}; this one has {words.value(bound - gap)}."
        # older runs on all rows carry what was settled of their sample, which is another problem
        + ("" if run.whole is not None else settled(summary))
        + (f" Rules: {'; '.join(rules(run))}." if rules(run) else "")
    )


def settled(summary: Mapping[str, Any]) -> str:
    """How far the proof determines which samples these are, in a sentence after the proof; empty where it does not."""
    counts = summary.get("settled")
    certain = counts["inside"] + counts["outside"] if counts else 0
    if not counts or not certain:
        return ""
    eligible = certain + counts["open"]
    share = words.percent(math.floor(1e4 * certain / eligible) / 1e4, 2)  # rounded down: not all are settled
    return (
        f" It settles {share} of the samples: every selection as good as this one has {counts['inside']:,} of these "
        f"and none of the other {counts['outside']:,}."
        + (f" The {counts['open']:,} left are a matter of taste." if counts["open"] else "")
    )


def rules(run: Run) -> list[str]:
    """The rules that the run was bound to, in words; empty where there was none."""
    return rule_words(run.config.selection, run.facts())


def neighbors(run: Run) -> str | None:
    """How the run's neighbour graph was found, in a sentence; None where it needed none, or does not say."""
    graph = run.facts().get("neighbors")
    if not graph:
        return None
    nearest = graph["k"] - 1
    if graph["kind"] == "exact":
        return f"Exact: every row with its {nearest:,} nearest other rows."
    return (
        f"Approximate: it lists {words.percent(graph['recall'], 1)} of the {nearest:,} truly nearest rows, "
        f"measured on {graph['recall_rows']:,} random rows. {_values(run.status().summary)}"
    )


def _values(summary: Mapping[str, Any] | None) -> str:
    """What the values of a run on an approximate graph are, in a sentence; runs of before say nothing of it."""
    estimate = (summary or {}).get("estimate")
    if estimate:
        return (
            f"Its diversity is a lower bound, of listed neighbours; the exact raw value is "
            f"{words.value(estimate['value'], 5)} ({words.value(estimate['low'], 5)} to "
            f"{words.value(estimate['high'], 5)}, 95 %, from {estimate['rows']:,} random rows)."
        )
    return "Values at the end are exact all the same." if summary else ""


def story(run: Run) -> Story | None:
    """The state of a run that is not done, in words; None for one that is."""
    status = run.status()
    at = f"at step {status.step:,} of {status.total_steps:,}" if status.step else "before its first step"
    if status.state == "queued":
        return Story(
            "Waiting for its turn",
            "It starts by itself as soon as its device is free. The first run after "
            "the server's start takes some seconds longer.",
            "info",
            ("stop",),
        )
    if status.state == "running":
        return Story("Learning", status.message or "starting", "info", ("stop",))
    if status.state == "stopped":
        kept = (
            "What it has learned is kept: resumed, it ends in the same selection as if it had never stopped."
            if status.step
            else "Nothing had been learned yet; resuming starts it."
        )
        return Story("Stopped", f"This run was stopped {at}. {kept}", "warning", ("resume",))
    if status.state == "interrupted":
        if not status.step:
            kept = "Nothing had been learned yet; resuming starts it."
        elif run.keeps_progress:
            kept = "Its last checkpoint is kept; resuming continues from there."
        else:
            kept = "It ended before its first checkpoint; resuming starts from the beginning."
        return Story(
            "Interrupted",
            f"The program that ran this ended without a word {at}: a restarted server, a full "
            f"memory, a switched-off machine. {kept}",
            "warning",
            ("resume",),
        )
    if status.state == "failed":
        return Story("Failed", status.error or "The run ended on an error it did not explain.", "error", ("resume",))
    return None


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
    extras = [f"worst {words.percent(config.prune)} pruned"] if config.prune else []
    if config.collapse != "none":
        exact = config.collapse == "exact"
        extras.append("exact copies collapsed" if exact else f"copies collapsed at {config.collapse}")
    if config.center:
        extras.append("features centered")
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
