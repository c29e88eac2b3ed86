"""What the page Frontier varies: λ, any option of a selection, or the arms of a preset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from datamask import catalogue
from datamask.dashboard.runs import outcome
from datamask.dashboard.tradeoff import amounts
from datamask.errors import OptionError
from datamask.options import OPTIONS, Choice, Number, Whole
from datamask.runs.varying import Value, parse_vary, variable

LAMBDA = "lamb"
"""Quality against diversity, the frontier itself."""

Levels = Mapping[str, Value]


@dataclass(frozen=True)
class Preset:
    """A figure of the paper: its name in the menu, and its arms with what each sets.

    An arm with {} in its name is repeated for each objective. One that names its own method takes no learning options.
    """

    label: str
    arms: Mapping[str, Levels]


PLAIN: Levels = {"partial": 0.1, "prune": 0.0, "init": "same"}
REFERENCE: dict[str, Levels] = {"reference: best solver": {"estimator": catalogue.AUTO}}
RATES: dict[str, Levels] = {f"lr {rate:g}": {"max_lr": rate, "min_lr": rate / 10} for rate in (1.0, 3.0, 10.0, 30.0)}
STEPS: dict[str, Levels] = {f"{count:,} steps": {"n_epochs": count} for count in (250, 500, 2000)}
PRESETS = {
    "G": Preset(
        "Paper: masks per step (G)",
        {**{f"G {size}": {"n_rollout": size} for size in (32, 64, 128, 256, 512)}, **REFERENCE},
    ),
    "single": Preset(
        "Paper: single metrics",
        {
            "random": {"estimator": "random"},
            "quality alone": {"estimator": "top-quality", "lamb": 1.0},
            "{} alone": {"lamb": 0.0},
            "{} with quality": {},
        },
    ),
    "acceleration": Preset(
        "Paper: acceleration",
        {
            "plain": PLAIN,
            **{f"batch share {share:g}": {**PLAIN, "partial": share} for share in (0.05, 0.25, 1.0)},
            **{f"pruned by {share:g}": {**PLAIN, "prune": share} for share in (0.2, 0.4, 0.5)},
            "start from quality": {**PLAIN, "init": "quality"},
            "pruned by 0.5, start from quality": {**PLAIN, "prune": 0.5, "init": "quality"},
            **REFERENCE,
        },
    ),
    "ablation": Preset(
        "Paper: step size and initial logits",
        {
            f"{name}, init {init}": {**levels, "init": init}
            for init in ("same", "quality")
            for name, levels in (*RATES.items(), *STEPS.items())
        }
        | REFERENCE,
    ),
}
"""By the word in the address."""

FIRST = (LAMBDA, "select_ratio", "n_rollout")
"""Options that stand before the presets."""

LABELS: dict[str, str] = {
    **{name: OPTIONS[name].label for name in FIRST},
    **{name: preset.label for name, preset in PRESETS.items()},
    **{name: OPTIONS[name].label for name in variable() if name not in FIRST},
    "estimator": "Method",
}
"""By the word in the address, what the menu calls it."""

VALUES = {
    LAMBDA: "0:1:11",
    "select_ratio": "0.05, 0.1, 0.2, 0.3, 0.5",
    "n_rollout": "8, 32, 128",
    "partial": "0.05, 0.1, 0.25, 1",
    "max_lr": "1, 3, 10",
    "min_lr": "0, 0.05, 0.5",
    "temperature": "0.5, 1, 2, 4",
    "clip": "0.1, 0.5, 1",
    "prune": "0, 0.2, 0.4, 0.5",
    "n_epochs": "50, 100, 200, 400",
    "clusters": "25, 50, 100, 200",
    "seed": "0, 1, 2, 3, 4",
    "collapse": "none, exact, 0.95",
}
"""What a text field of values starts with."""

CHOSEN = {
    "objective": ("facility", "pairwise"),
    "estimator": ("relaxed", "counterfactual", "top-quality", "random"),
}
"""What a menu of values starts with; for other options with all of them."""


def choices(word: str) -> tuple[str, ...]:
    """The values that an option can have, where they can be counted; else empty."""
    if word == "objective":
        return tuple(entry.name for entry in catalogue.OBJECTIVES)
    if word == "estimator":
        return tuple(entry.name for entry in catalogue.ESTIMATORS)
    kind = OPTIONS[word].kind if word in OPTIONS else None
    return tuple(kind.meanings) if isinstance(kind, Choice) else ()


def named(option: str, value: Value) -> str:
    """What a value of an option is called."""
    if option == "objective":
        return outcome.objective_label(str(value))
    if option == "estimator":
        return catalogue.estimator(str(value)).label.partition(" (")[0]
    return amounts.share_words(float(value)) if option == "select_ratio" else OPTIONS[option].shown(value)


def fitting(word: str, values: Iterable[Value], objective: str) -> tuple[Value, ...]:
    """Return the values without the methods that cannot select by the objective."""
    return tuple(
        value for value in values if word != "estimator" or catalogue.estimator(str(value)).selects_by(objective)
    )


def counted(word: str) -> bool:
    """Whether the values are numbers, so that an axis has them in order."""
    return isinstance(OPTIONS[word].kind, (Number, Whole))


def methods(word: str) -> tuple[str, ...]:
    """The methods that have an option, the quickest to understand first; empty where the method is what varies.

    `datamask.catalogue.AUTO` among them: the solver of the objective.
    """
    masks = tuple(entry.name for entry in catalogue.ESTIMATORS if entry.draws_masks)
    if word in ("estimator", "single"):
        return ()
    if word in PRESETS:
        return tuple(sorted(masks, key=lambda name: name != "reinforce"))
    owners = OPTIONS[word].owners
    if not owners:
        return catalogue.AUTO, *(entry.name for entry in catalogue.ESTIMATORS if entry.learns)
    # REINFORCE is the paper's method, of which the paper's figures are
    return tuple(sorted(owners, key=lambda name: name != "reinforce"))


def draws_masks(method: str) -> bool:
    """Whether a method learns by drawing masks, so that it takes steps and has a curve over time."""
    return method != catalogue.AUTO and catalogue.estimator(method).draws_masks


def seeded(word: str, method: str, objectives: Iterable[str]) -> bool:
    """Whether runs of a kind depend on their seed, so that each value can be repeated with several.

    Args:
        method: of `methods`; where methods vary, some always depend on it. objectives: of the runs.
    """
    if word == "estimator" or word in PRESETS:
        return True
    solvers = [method] if method != catalogue.AUTO else [catalogue.auto(objective) for objective in objectives]
    return any(catalogue.estimator(name).seeded for name in solvers)


def over_time(word: str) -> bool:
    """Whether it is drawn as values over seconds: what changes how masks are drawn and learned from."""
    if word in OPTIONS:
        return any(catalogue.estimator(owner).draws_masks for owner in OPTIONS[word].owners)
    return word in ("G", "acceleration")


def values_of(word: str, given: str | Sequence[str]) -> tuple[Value, ...]:
    """The values that were typed or chosen. Raises OptionError: they are none of the option's."""
    if not isinstance(given, str):
        return tuple(given)
    try:
        return parse_vary(f"{word}={given}")[1]
    except OptionError:
        shape = "names such as none, exact, 0.95"
        if counted(word):
            shape = "numbers such as 0.1, 0.3, 0.5 or START:STOP:COUNT such as 0:1:11"
            if isinstance(OPTIONS[word].kind, Whole):
                shape = "whole numbers such as 8, 32, 128 or START:STOP:COUNT such as 10:50:5"
        raise OptionError(f"Values must be different {shape}, got {given!r}") from None
