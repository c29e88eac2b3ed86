"""Which subset of the corpus, and how it is found: the options of a selection, their defaults and their bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from datamask import catalogue
from datamask.errors import OptionError
from datamask.options import OPTIONS, SelectionOptions, check_options, restored_options
from datamask.options.checks import check, check_known, number_text
from datamask.options.duplicates import column_of
from datamask.options.table import SEARCHES

NEIGHBOR_SEARCHES = tuple(SEARCHES.meanings)
"""Ways to build the neighbor graph; see `datamask.corpus.neighbors.search_for`."""

PAPER_PRESET = {
    "estimator": "reinforce",
    "scale": "raw",
    "n_rollout": 128,
    "n_epochs": 5000,
    "partial": 0.1,
    "max_lr": 10.0,
    "min_lr": 1.0,
    "init": "quality",
    "polish": "none",
}
"""The quick-test setting of arXiv 2512.24265. Never changes."""

PROBLEM = ("objective", "select_ratio", "budget", "scale", "center", "components", "prune", "collapse", "neighbors")
"""Options that say which selections there are, but for λ and the rules over rows."""

RULES = ("pin", "ban", "given", "quotas")
"""Options that name rows or groups of them."""

PLANNED_FROM = 200_000
"""Rows above which steps are planned; up to here all of them are quick enough."""

MASK_ROWS = 300_000_000
"""Masks times rows that planned steps look at, all together: some 50 s of one core."""

FEWEST_STEPS = 8
"""Planned steps are at least so many."""


@dataclass(frozen=True, kw_only=True)
class SelectionConfig(SelectionOptions):
    """The settings of a selection. Create them with `SelectionConfig.from_options`, which fills in the defaults.

    The attributes are the options of the command line (`datamask.options.table`). `estimator` is the name of a method,
    never "auto". Options that the method does not have are None.

    Examples:
        >>> from datamask import SelectionConfig
        >>> SelectionConfig.from_options(objective="facility", lamb=0.3).estimator
        'relaxed'
    """

    @classmethod
    def from_options(cls, **options: Any) -> SelectionConfig:
        """Fill in what is not given (None): from the preset, then by auto, then from the defaults.

        Raises:
            OptionError: an option is unknown, out of range, or not one of the chosen estimator.
        """
        given = {k: v for k, v in options.items() if v is not None}
        names = [field.name for field in fields(cls)]
        check_known(given, names, "a selection")
        if "budget" in given and "select_ratio" in given:
            raise OptionError("--budget and --select_ratio both say how much to select; give one of them")
        preset = given.get("preset")
        if preset is not None:
            OPTIONS["preset"].checked(preset, given)
        base = dict(PAPER_PRESET) if preset == "paper" else {}
        for key, value in base.items():
            check(
                key not in given or given[key] == value or given[key] == catalogue.AUTO,
                key,
                f"left out, or {value!r}, with --preset paper (the preset never changes)",
                given.get(key),
            )
        merged = {**given, **base}
        if merged.get("estimator", catalogue.AUTO) == catalogue.AUTO:
            merged["estimator"] = catalogue.auto(merged.get("objective", cls.objective), merged)
        entry = catalogue.estimator(merged["estimator"])
        check(
            entry is not catalogue.IMPORTED,
            "estimator",
            "a way to select; ids chosen elsewhere come in by `runs import`",
            entry.name,
        )
        merged["estimator"] = catalogue.estimator_name(merged["estimator"])
        for name, option in OPTIONS.items():
            if name in merged and not option.of(entry.name):
                raise OptionError(
                    f"--{name} is not an option of --estimator {entry.name}; estimators that have it: "
                    f"{', '.join(option.owners)}"
                )
        return cls(**{**entry.defaults, **merged})

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", _canonical_objective(self.objective))
        entry = catalogue.estimator(self.estimator)
        held = {name: option for name, option in OPTIONS.items() if not option.owners or entry.name in option.owners}
        besides = {name: option for name, option in OPTIONS.items() if option.of(entry.name) and name not in held}
        check_options(self, held | {name: each for name, each in besides.items() if getattr(self, name) is not None})
        self._check_together(entry)

    @property
    def beside(self) -> frozenset[str]:
        """Columns of the files that it goes by, beside ids, features, quality and tokens.

        Texts of exact duplicates are not among them: they are read in batches and not kept.
        """
        column = column_of(self.collapse)
        return frozenset([*(quota.column for quota in self.quotas), *([] if column is None else [column])])

    @property
    def ruled(self) -> bool:
        """Whether pins, quotas or given rows restrict the selection (bans only leave rows out)."""
        return self.pin is not None or self.given is not None or bool(self.quotas)

    def _check_together(self, entry: catalogue.EstimatorEntry) -> None:
        """Refuse options each of which would do alone."""
        if not entry.selects_by(self.objective):
            raise OptionError(
                f"--estimator {entry.name} selects by {' or '.join(entry.objectives)} alone, got --objective "
                f"{self.objective}; use --estimator {catalogue.auto(self.objective)}"
            )
        if self.components is not None and not any(catalogue.objective(name).components for name, _ in self.terms):
            able = ", ".join(each.name for each in catalogue.OBJECTIVES if each.components)
            raise OptionError(
                f"--components is of the objectives {able}, alone or in a sum, got --objective {self.objective}; "
                "leave it out"
            )
        if self.budget is not None and not entry.spends:
            raise OptionError(
                f"--estimator {entry.name} selects a number of rows and cannot fill a --budget; use "
                "--select_ratio, or --estimator "
                f"{', '.join(e.name for e in catalogue.ESTIMATORS if e.spends)}"
            )

    @property
    def terms(self) -> tuple[tuple[str, float], ...]:
        """The diversity objectives and their weights, which add to 1."""
        terms = catalogue.objective_terms(self.objective)
        total = sum(terms.values())
        return tuple((name, weight / total) for name, weight in terms.items())

    def size(self, n: int, tokens: float | None = None) -> int:
        """S, the number of samples to select out of n valid rows.

        Under a budget, how many rows of average length would fill it: a guide, since no number of rows is fixed.

        Args:
            tokens: of all n rows together; None: they have no lengths.

        Raises:
            OptionError: the ratio selects none or all of them, or there is a budget and no lengths.
        """
        if self.budget is not None:
            if not tokens:
                raise OptionError(
                    "--budget needs the number of tokens of every row, and no column was found for it; "
                    "name it with --length_column, or use --select_ratio"
                )
            return min(max(math.floor(n * self.budget / tokens + 0.5), 1), n - 1)
        s = math.floor(self.select_ratio * n + 0.5)
        check(
            0 < s < n,
            "select_ratio",
            f"such that between 1 and {n - 1:,} of {n:,} rows are selected",
            f"{self.select_ratio} (selects {s:,})",
        )
        return s

    @property
    def steps_chosen(self) -> bool:
        """Whether somebody chose the ceiling on steps, so that all of them are taken."""
        return self.preset is not None or self.n_epochs != OPTIONS["n_epochs"].owners.get(self.estimator)

    def planned_steps(self, n: int) -> int | None:
        """The most update steps on n eligible rows; None for an estimator without steps.

        As many as `n_epochs` says, or fewer: a step of sampled masks costs in proportion to the rows, and where swaps
        follow, most steps change nothing. On 20,000 rows the value after the swaps is the same from 4 to 60 steps, with
        2 masks a step as with 32: to 6e-4 (facility location) and to 1e-5 (pair-wise similarity). The DiSFs have a
        stop rule instead (`datamask.learning.counterfactual`), and the paper's preset and a ceiling that somebody chose
        are kept.
        """
        if self.n_epochs is None or self.n_rollout is None or self.partial is None:
            return self.n_epochs
        swapped = self.polish == "swaps" and all(catalogue.objective(name).one_end for name, _ in self.terms)
        if n <= PLANNED_FROM or self.steps_chosen or not swapped:
            return self.n_epochs
        return min(self.n_epochs, max(FEWEST_STEPS, int(MASK_ROWS / (self.n_rollout * self.partial * n))))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SelectionConfig:
        given = restored_options(data, OPTIONS)
        return cls(**{**catalogue.estimator(str(given["estimator"])).defaults, **given})


def _canonical_objective(text: str) -> str:
    terms = catalogue.objective_terms(text)
    # weights as given, not divided by their sum: dividing twice would not give the same digits twice
    return next(iter(terms)) if len(terms) == 1 else ",".join(f"{n}:{number_text(w)}" for n, w in terms.items())
