"""The catalogue: every objective and every estimator, one line each, and the words people read about them.

Light on purpose: the command line, the forms and the tests read this table, and reading it loads no torch. `code` names
where the thing lives; `datamask.objectives.load` and `datamask.learning.load` fetch it from there.

To add an objective: write `datamask/objectives/<name>.py` with a `SetFunction`, then one line in `OBJECTIVES`. It then
appears in the command line, the forms, the scoreboard and the contract tests by itself. Estimators likewise; which
options an estimator has stands at the options (`datamask.options.table`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from datamask.errors import OptionError
from datamask.options import OPTIONS
from datamask.options.components import COMPONENTS


@dataclass(frozen=True)
class ObjectiveEntry:
    """One diversity objective.

    Attributes:
        name: how it is called everywhere, e.g. ``"facility"``.
        code: ``"module:Class"`` of its `SetFunction`.
        aliases: other spellings accepted on the command line (the paper's), lower case.
        label: what a form shows.
        sees: one sentence for a newcomer: what it rewards, and what it is blind to.
        needs_neighbors: whether it is computed on the corpus's k-nearest-neighbour graph.
        proof: where an upper bound comes from: ``relaxation`` (a concave function of inclusion weights), ``dual``
            (prices on neighbour lists), or empty: there is none.
        warm: whether a learner of it may go on from where another run ended, because that was measured to end as high.
            On 18 000 texts warm learners of DiSF ended 0.005 to 0.008 of the scale lower; an objective of one's own
            starts cold because nobody has measured it.
        more: whether menus have it last, under *More*.
        live: how it follows a slider of lambda: ``quick`` (selects anew at every lambda), ``slow`` (answers with what
            was solved before, once *Prepare λ* is pressed), or empty: not at all. Slow are those of which one lambda
            takes too long to answer a hand: on 5,988 rows of 128 dimensions a core needs 0.6 s for DiSF of either scale
            and 3 s for Vendi, against 0.15 s for pair-wise similarity, and theirs grows with the square of the
            dimensions.
        live_seconds: of one idle core per row and dimension, to pose a problem and solve every lambda that the slider
            solves before anyone asks: without rules, with rules, with a token budget. Measured on 20,000 rows of 256
            dimensions (4 to 28 s); None: not known.
        components: whether it can be defined on the leading principal components of a corpus. leading: on how many it
            is unless ``--components`` says otherwise; None: on all dimensions.
        rule: whether its best selections are a rule of one row's own numbers.
        one_end: whether swaps end where they end, however many steps of masks came before.
        run_seconds: of one core per row and listed neighbor (dimension, where it needs no neighbors): for the ends of
            the scales, the references, one mask, one whole solution, and the ending after steps and after one solution.
        effort: of computing its value once more, as the scoreboard forecasts it.
        comparison: how a row compares with the corpus, with room for *less* or *more* and for the share of the corpus.
        unit: what its raw value is called, plus `offset`, so that more of it is more diverse.
    """

    name: str
    code: str
    aliases: tuple[str, ...]
    label: str
    sees: str
    needs_neighbors: bool = False
    proof: str = ""
    warm: bool = False
    more: bool = False
    live: str = ""
    live_seconds: tuple[float, float, float] | None = None
    components: bool = False
    leading: int | None = None
    rule: bool = False
    one_end: bool = False
    run_seconds: tuple[float, float, float, float, float, float] = (1e-6, 4e-8, 1.8e-8, 1e-6, 6e-7, 6e-7)
    effort: float = 0.5
    comparison: str = ""
    unit: str = "Diversity value"
    offset: float = 0.0


@dataclass(frozen=True)
class EstimatorEntry:
    """One way to find a selection.

    Attributes:
        name: how it is called everywhere.
        code: ``"module:Class"`` of its learner.
        label: what a form shows.
        about: one sentence for a newcomer.
        objectives: the ones that it selects by, never by a sum; empty: any.
        guided: whether lambda has a say in what it selects.
        seeded: whether two seeds give two selections, beyond the cut of equal scores.
        spends: whether it can fill a token budget, in the place of a number of rows.
        learns: whether it searches for what is best under objective and lambda, so that its runs make a curve along
            lambda; the baselines do not, and stand beside the curves as points.
        by_column: whether ``name:COLUMN`` does it by one of the corpus's quality columns alone.
        weighs: whether it has inclusion weights, how much of each row belongs to what it found, beside in and out.
        warm: whether it can go on from where another run of it ended. Not `reinforce`, which is here as the paper's
            method, equal logits or quality's at the start; and not the baselines, which have nothing to go on from.
    """

    name: str
    code: str
    label: str
    about: str
    objectives: tuple[str, ...] = ()
    guided: bool = True
    seeded: bool = False
    spends: bool = True
    learns: bool = True
    by_column: bool = False
    weighs: bool = False
    warm: bool = False

    @property
    def defaults(self) -> dict[str, Any]:
        """Its options with their defaults: those of `datamask.options` that name it; all others are refused for it."""
        return {name: option.owners[self.name] for name, option in OPTIONS.items() if self.name in option.owners}

    def selects_by(self, objective: str) -> bool:
        """Return whether it can select by an objective, or a sum of them as `objective_terms` reads it."""
        names = list(objective_terms(objective))
        return not self.objectives or (len(names) == 1 and names[0] in self.objectives)

    @property
    def draws_masks(self) -> bool:
        """Whether it learns from masks that it draws."""
        return "n_rollout" in self.defaults


_CORRELATED = "it makes the feature dimensions of the selected rows {} correlated than {} of the corpus would"

OBJECTIVES: tuple[ObjectiveEntry, ...] = (
    ObjectiveEntry(
        "facility",
        "datamask.objectives.facility:Facility",
        (),
        "Facility location",
        "Every row should be near a selected row. Duplicates earn little credit.",
        needs_neighbors=True,
        proof="dual",
        warm=True,
        live="quick",
        live_seconds=(3.6e-6, 3.6e-6, 5.5e-6),
        one_end=True,
        run_seconds=(3e-7, 4e-8, 1e-8, 2.5e-7, 1.2e-6, 1.2e-6),
        effort=0.2,
        unit="Coverage",
    ),
    ObjectiveEntry(
        "pairwise",
        "datamask.objectives.pairwise:Pairwise",
        ("pair_simi", "pairsimi", "pair-simi"),
        "Pair-wise similarity",
        "Selected rows should be dissimilar on average. Thins out crowded directions; does not avoid duplicates.",
        proof="relaxation",
        warm=True,
        live="quick",
        live_seconds=(8e-7, 1.3e-6, 2.2e-6),
        rule=True,
        one_end=True,
        run_seconds=(6e-7, 2e-8, 1.1e-8, 1.1e-7, 7.5e-7, 1.4e-7),
        effort=0.06,
        comparison="it is {} similar to the selection as a whole than {} of the corpus",
        unit="Mean dissimilarity",
        offset=1.0,
    ),
    ObjectiveEntry(
        "disf",
        "datamask.objectives.disf:DiSF",
        (),
        "DiSF (feature decorrelation)",
        "The feature dimensions of the selected rows should be uncorrelated. Does not avoid duplicates; needs many "
        "more selected rows than dimensions.",
        components=True,
        live="slow",
        effort=0.85,
        comparison=_CORRELATED,
        unit="Decorrelation",
    ),
    ObjectiveEntry(
        "vendi",
        "datamask.objectives.vendi:Vendi",
        (),
        "Vendi entropy",
        "Selected rows should point in many directions evenly: the logarithm of the Vendi score. Does not avoid "
        "duplicates.",
        proof="relaxation",
        components=True,
        leading=COMPONENTS,
        live="slow",
        effort=0.2,
        comparison="the selected rows point its way {} than that of {} of the corpus",
        unit="Entropy",
    ),
    ObjectiveEntry(
        "disf_fixed",
        "datamask.objectives.disf_fixed:DiSFFixed",
        ("disf-fixed",),
        "DiSF, fixed scale",
        "DiSF with the mean and scale of the corpus: another value, but with a provable optimum.",
        proof="relaxation",
        warm=True,
        more=True,
        components=True,
        live="slow",
        rule=True,
        effort=0.54,
        comparison=_CORRELATED,
        unit="Decorrelation",
    ),
)

ESTIMATORS: tuple[EstimatorEntry, ...] = (
    EstimatorEntry(
        "counterfactual",
        "datamask.learning.counterfactual:Counterfactual",
        "Counterfactual (exact credit)",
        "Credits each row with its own exact contribution to the score of a mask.",
        seeded=True,
        weighs=True,
        warm=True,
    ),
    EstimatorEntry(
        "reinforce",
        "datamask.learning.reinforce:Reinforce",
        "REINFORCE (the paper's method)",
        "Credits each row with the score of its mask, compared with the mean of the G masks.",
        seeded=True,
        weighs=True,
    ),
    EstimatorEntry(
        "relaxed",
        "datamask.learning.relaxed:relaxed",
        "Solve",
        "It takes seconds and reports a gap.",
        weighs=True,
        warm=True,
    ),
    EstimatorEntry(
        "greedy",
        "datamask.learning.greedy:Greedy",
        "Greedy (baseline)",
        "Picks one row after another, each time the row that adds most, by facility location, pair-wise similarity or "
        "DiSF. Ranks are the order of picking.",
        objectives=("facility", "pairwise", "disf"),
        spends=False,
        learns=False,
    ),
    EstimatorEntry(
        "semdedup",
        "datamask.learning.semdedup:SemDeDup",
        "SemDeDup-style (baseline)",
        "Clusters the corpus and skips rows near a better row of their cluster. Uses neither λ nor the objective.",
        guided=False,
        seeded=True,
        spends=False,
        learns=False,
    ),
    EstimatorEntry(
        "cluster-balanced",
        "datamask.learning.cluster_balanced:ClusterBalanced",
        "Cluster-balanced (baseline)",
        "Clusters the corpus and takes equally many rows from each cluster, as ClusterClip does. Uses neither λ "
        "nor the objective.",
        guided=False,
        seeded=True,
        learns=False,
    ),
    EstimatorEntry(
        "soft-quality",
        "datamask.learning.soft_quality:SoftQuality",
        "Soft quality sampling (baseline)",
        "Draws rows at random in favor of better ones, as QuRating does. Uses no embedding.",
        guided=False,
        seeded=True,
        learns=False,
        weighs=True,
    ),
    EstimatorEntry(
        "top-quality",
        "datamask.learning.baselines:TopQuality",
        "Top quality (baseline)",
        "The best rows by quality alone. top-quality:COLUMN uses one of several quality columns.",
        guided=False,
        learns=False,
        by_column=True,
    ),
    EstimatorEntry(
        "random",
        "datamask.learning.baselines:RandomSubset",
        "Random (baseline)",
        "A uniformly random subset of the same size.",
        guided=False,
        seeded=True,
        learns=False,
        weighs=True,
    ),
)

LIVE = tuple(entry.name for entry in sorted(OBJECTIVES, key=lambda entry: entry.live) if entry.live)
"""The objectives that follow a slider of lambda, the quick ones first."""

RULED = tuple(entry.name for entry in OBJECTIVES if entry.rule)
"""The objectives whose best selections are a rule of one row's own numbers."""

AUTO = "auto"
"""In the place of an estimator's name: let `auto` choose."""

AUTOMATIC = ("relaxed", "counterfactual", "reinforce")
"""What `auto` chooses from, in this order: proved and quickest first, the paper's method last."""

NOT_FINITE = "the logits are no longer finite numbers"
"""How a learner ends whose steps were too large."""

PAPERS_FLAGS = ("partial", "max_lr", "min_lr")
"""Options of the paper's quick-test line; given, they mean its method, so that the line stays the paper's."""

AUTO_RULE = (
    f"relaxed for {', '.join(entry.name for entry in OBJECTIVES if entry.proof == 'dual')} and for sums of "
    f"{', '.join(entry.name for entry in OBJECTIVES if entry.proof == 'relaxation')}, else counterfactual; "
    f"reinforce with --preset paper, --{', --'.join(PAPERS_FLAGS[:-1])} or --{PAPERS_FLAGS[-1]}; and "
    "with other options the first of these methods that has them all"
)
"""What `auto` does, for people."""

_OURS = "|".join(re.escape(name) for entry in OBJECTIVES for name in (entry.name, *entry.aliases))
OWN = re.compile(
    rf"(?!(?:{_OURS}):)[a-z_]\w*(?:\.[a-z_]\w*)*:(?!(?:nan|inf|infinity)$)[a-z_]\w*", re.ASCII | re.IGNORECASE
)
"""``module:Class``; what stands after an objective of ours, or is a number in words, is a weight."""

IMPORTED = EstimatorEntry(
    "imported",
    "",
    "Imported ids",
    "Ids selected elsewhere and read from a file: measured like any selection.",
    guided=False,
    learns=False,
)
"""What `runs import` writes. No way to select, so it is not among `ESTIMATORS`, and no form or help offers it."""


def objective(name: str) -> ObjectiveEntry:
    """The entry of an objective by name or alias, in any case.

    Raises:
        OptionError: no objective has that name.
    """
    wanted = name.strip().lower()
    for entry in OBJECTIVES:
        if wanted == entry.name or wanted in entry.aliases:
            return entry
    if is_own(name):
        return ObjectiveEntry(
            name,
            name,
            (),
            f"{name.partition(':')[2]} (own)",
            f"An objective of your own, the class {name}.",
        )
    raise OptionError(
        f"--objective {name!r} is unknown; choose one of {', '.join(e.name for e in OBJECTIVES)}, or on "
        "the command line one of your own as module:Class"
    )


def is_own(name: str) -> bool:
    """Whether this is the name of an objective of somebody's own: ``mypackage.mymodule:MyObjective``."""
    return OWN.fullmatch(name) is not None


def objective_terms(text: str) -> dict[str, float]:
    """Names and weights as given of ``NAME`` or ``NAME:WEIGHT,NAME:WEIGHT``; a name may be one's own ``module:Class``.

    Raises:
        OptionError: a name is unknown or given twice, or a weight is no number above 0.
    """
    terms: dict[str, float] = {}
    for part in str(text).split(","):
        name, _, weight = part.strip().rpartition(":")
        if not name or is_own(part.strip()):
            name, weight = part.strip(), "1"
        try:
            value = float(weight)
        except ValueError:
            raise OptionError(f"--objective must be NAME or NAME:WEIGHT,NAME:WEIGHT, got {text!r}") from None
        if not (math.isfinite(value) and value > 0):
            raise OptionError(f"--objective must be NAME:WEIGHT with a weight above 0, got {part!r}")
        entry = objective(name)
        if entry.name in terms:
            raise OptionError(f"--objective must be a sum of different objectives, got {text!r}")
        terms[entry.name] = value
    return terms


def estimator(name: str) -> EstimatorEntry:
    """The entry of an estimator by name, `IMPORTED` included; of ``top-quality:COLUMN`` that of top-quality.

    Raises:
        OptionError: no estimator has that name.
    """
    wanted, column = _parts(name)
    for entry in (*ESTIMATORS, IMPORTED):
        if wanted == entry.name and (entry.by_column or column is None):
            return entry
    raise OptionError(
        f"--estimator {name!r} is unknown; choose auto, {', '.join(e.name for e in ESTIMATORS)}, or "
        f"{', '.join(f'{e.name}:COLUMN' for e in ESTIMATORS if e.by_column)}"
    )


def auto(objectives: str, given: Iterable[str] = ()) -> str:
    """The name of the estimator that ``auto`` stands for: the one rule, for command line, form, sweep, live and API.

    `relaxed` takes every rule and budget, so only the objective decides whether it can: a facility location alone, or a
    sum of concave objectives.

    Args:
        objectives: as `objective_terms` reads it. given: names of the options that somebody gave; those that every
            estimator has are not looked at.

    Raises:
        OptionError: an objective is unknown.
    """
    proofs = [objective(name).proof for name in objective_terms(objectives)]
    solved = proofs == ["dual"] or set(proofs) == {"relaxation"}
    special = {name for name, option in OPTIONS.items() if option.owners} & set(given)
    if special & set(PAPERS_FLAGS):
        return "reinforce"
    candidates = AUTOMATIC if solved else AUTOMATIC[1:]
    able = [name for name in candidates if all(OPTIONS[option].of(name) for option in special)]
    # an option that none of them has is refused by the name of the usual one
    return able[0] if able else "counterfactual"


def estimator_name(name: str) -> str:
    """The one spelling of an estimator's name, its column included.

    Raises:
        OptionError: no estimator has that name.
    """
    column = quality_column(name)
    return estimator(name).name + ("" if column is None else f":{column}")


def quality_column(estimator: str) -> str | None:
    """The column of ``top-quality:COLUMN``; None where the name has none."""
    return _parts(estimator)[1]


def _parts(name: str) -> tuple[str, str | None]:
    base, colon, column = name.strip().partition(":")
    return base.strip().lower().replace("_", "-"), column if colon else None
