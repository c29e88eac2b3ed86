"""Which subset of the corpus, and how it is found: the options of a selection, their defaults and their bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from datamask import catalogue
from datamask.config.amounts import parse_tokens
from datamask.config.checks import check, finite, number_text
from datamask.errors import OptionError

LEARNER_OPTIONS = ("n_rollout", "n_epochs", "partial", "max_lr", "min_lr", "init", "score", "readout", "polish")
"""Options that only some estimators have; the catalogue says which."""

NEIGHBOR_SEARCHES = ("auto", "exact", "approximate")
"""How the neighbour graph may be asked for; see `datamask.corpus.neighbors.search_for`."""

PAPER_PRESET = {"estimator": "reinforce", "scale": "raw", "n_rollout": 128, "n_epochs": 5000, "partial": 0.1,
                "max_lr": 10.0, "min_lr": 1.0, "init": "quality", "score": "mask", "readout": "top",
                "polish": "none"}
"""The quick-test setting of arXiv 2512.24265. Never changes."""

NO_FLOAT64 = " (Apple's mps has no float64 numbers, in which values are reported and proved)"


@dataclass(frozen=True)
class Quota:
    """A share of the selection for one value of a metadata column: ``COLUMN=VALUE:LOW:HIGH``.

    At least ``ceil(low S)`` and at most ``floor(high S)`` of the S selected samples have that value.
    """

    column: str
    value: str
    low: float
    high: float

    def __post_init__(self) -> None:
        fits = finite(self.low) and finite(self.high) and 0 <= self.low <= self.high <= 1
        check(bool(self.column) and fits, "quota", "COLUMN=VALUE:LOW:HIGH with shares 0 <= LOW <= HIGH <= 1",
              str(self))

    @classmethod
    def parse(cls, text: str) -> Quota:
        """Read ``COLUMN=VALUE:LOW:HIGH``; the value may hold colons and equals signs."""
        try:
            named, low, high = text.rsplit(":", 2)
            column, value = named.split("=", 1)
            return cls(column, value, float(low), float(high))
        except ValueError as error:
            if isinstance(error, OptionError):
                raise
            raise OptionError(f"--quota must be COLUMN=VALUE:LOW:HIGH, such as source=python:0.1:0.3, got {text!r}"
                              ) from None

    def __str__(self) -> str:
        return f"{self.column}={self.value}:{self.low!r}:{self.high!r}"


@dataclass(frozen=True)
class SelectionConfig:
    """Which subset, and how it is found. Build it with `SelectionConfig.from_options`, which fills the defaults.

    Attributes:
        objective: ``name`` or a weighted sum ``name:weight,name:weight``, in the catalogue's names.
        lamb: lambda, the balance: 1 is quality alone, 0 diversity alone.
        select_ratio: S = floor(ratio * N + 0.5) samples are selected; not looked at where there is a budget.
        budget: tokens to fill instead (see `datamask.learning.budget`), given rows aside; None: S samples.
        estimator: a name of the catalogue, never "auto"; ``top-quality:COLUMN`` is by that quality column.
        scale: ``calibrated`` (each term 0 at a random subset, 1 at its own best) or ``raw`` (the paper's).
        center: whether the corpus's mean is subtracted from the features before they are scaled to unit length, so
            that objectives and near-copies see what differs from the common component.
        n_rollout: G, masks per step; n_epochs: a ceiling on steps; partial: batch share; max_lr, min_lr: linear
            schedule; init: ``same`` or ``quality``; score: ``mask`` (a draw is credited through its mask, as in the
            paper) or ``exact`` (through the gradient of its log-probability); readout: ``top`` or ``sample``; polish:
            ``swaps`` or ``none``. None where the estimator has none.
        pin, ban: files of ids that must be in, or must not be; quotas: on values of one metadata column.
        given: a file of ids that one already has: S more are selected, and judged together with them.
        prune: share dropped by lowest quality first. collapse: ``none``, ``exact`` or a cosine as text.
        neighbors: how the neighbour graph is found: ``auto`` (exact up to a size), ``exact`` or ``approximate``.
        seed: of masks, batches and ties. device: ``auto``, ``cpu`` or ``cuda[:k]``.
        preset: ``paper`` or None.
    """

    objective: str = "facility"
    lamb: float = 0.5
    select_ratio: float = 0.3
    budget: float | None = None
    estimator: str = "counterfactual"
    scale: str = "calibrated"
    center: bool = False
    n_rollout: int | None = None
    n_epochs: int | None = None
    partial: float | None = None
    max_lr: float | None = None
    min_lr: float | None = None
    init: str | None = None
    score: str | None = None
    readout: str | None = None
    polish: str | None = None
    prune: float = 0.0
    collapse: str = "none"
    pin: str | None = None
    ban: str | None = None
    given: str | None = None
    quotas: tuple[Quota, ...] = ()
    neighbors: str = "auto"
    seed: int = 0
    device: str = "auto"
    preset: str | None = None

    @classmethod
    def from_options(cls, **options: Any) -> SelectionConfig:
        """Resolve what was given (None: not given) into a full record: preset, then auto, then defaults.

        Raises:
            OptionError: an option is unknown, out of range, or not one of the chosen estimator.
        """
        given = {k: v for k, v in options.items() if v is not None}
        unknown = set(given) - {f.name for f in fields(cls)}
        check(not unknown, "option", "a known option", ", ".join(sorted(unknown)))
        if "budget" in given and "select_ratio" in given:
            raise OptionError("--budget and --select_ratio both say how much to select; give one of them")
        preset = given.get("preset")
        check(preset in (None, "paper"), "preset", "'paper'", preset)
        base = dict(PAPER_PRESET) if preset == "paper" else {}
        for key, value in base.items():
            check(key not in given or given[key] == value or given[key] == catalogue.AUTO, key,
                  f"left out, or {value!r}, with --preset paper (the preset never changes)", given.get(key))
        merged = {**given, **base}
        if merged.get("estimator", catalogue.AUTO) == catalogue.AUTO:
            merged["estimator"] = catalogue.auto(merged.get("objective", cls.objective), merged)
        entry = catalogue.estimator(merged["estimator"])
        check(entry is not catalogue.IMPORTED, "estimator", "a way to select; ids chosen elsewhere come in by `runs "
              "import`", entry.name)
        merged["estimator"] = catalogue.estimator_name(merged["estimator"])
        for option in LEARNER_OPTIONS:
            if option in merged and option not in entry.defaults:
                having = [e.name for e in catalogue.ESTIMATORS if option in e.defaults]
                raise OptionError(f"--{option} is not an option of --estimator {entry.name}; estimators that have it: "
                                  f"{', '.join(having)}")
        return cls(**{**entry.defaults, **merged})

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", _canonical_objective(self.objective))
        object.__setattr__(self, "collapse", _canonical_collapse(self.collapse))
        object.__setattr__(self, "quotas", tuple(self.quotas))
        if self.budget is not None:
            object.__setattr__(self, "budget", parse_tokens(self.budget))
            if self.quotas:
                raise OptionError("--quota is a share of the rows, and --budget leaves their number open; use --pin "
                                  "and --ban with a budget, or --select_ratio with quotas")
        listed = ", ".join(map(str, self.quotas))
        check(len({quota.column for quota in self.quotas}) <= 1, "quota", "on one column", listed)
        check(len({quota.value for quota in self.quotas}) == len(self.quotas), "quota", "given once per value", listed)
        check(finite(self.lamb) and 0 <= self.lamb <= 1, "lamb", "a number from 0 (diversity alone) to 1", self.lamb)
        check(finite(self.select_ratio) and 0 < self.select_ratio < 1, "select_ratio",
              "between 0 and 1, both excluded", self.select_ratio)
        check(self.scale in ("calibrated", "raw"), "scale", "'calibrated' or 'raw'", self.scale)
        check(isinstance(self.center, bool), "center", "true or false", self.center)
        check(finite(self.prune) and 0 <= self.prune < 1, "prune", "a share from 0 to below 1", self.prune)
        check(isinstance(self.seed, int) and 0 <= self.seed < 2**63, "seed", "a whole number from 0 to 2^63 - 1",
              self.seed)
        check(self.neighbors in NEIGHBOR_SEARCHES, "neighbors", "auto, exact or approximate", self.neighbors)
        device = str(self.device)
        check(device in ("auto", "cpu", "cuda") or (device.startswith("cuda:") and device[5:].isdigit()), "device",
              "auto, cpu, cuda or cuda:K" + (NO_FLOAT64 if device == "mps" else ""), self.device)
        self._check_learner_options(catalogue.estimator(self.estimator))

    @property
    def ruled(self) -> bool:
        """Whether pins, quotas or given rows restrict the selection (bans only leave rows out)."""
        return self.pin is not None or self.given is not None or bool(self.quotas)

    def _check_learner_options(self, entry: catalogue.EstimatorEntry) -> None:
        least = 2 if entry.name == "reinforce" else 1
        checks = {
            "n_rollout": (lambda v: isinstance(v, int) and v >= least, f"a whole number of at least {least}"),
            "n_epochs": (lambda v: isinstance(v, int) and v >= 1, "a whole number of at least 1"),
            "partial": (lambda v: finite(v) and 0 < v <= 1, "a share above 0 and at most 1"),
            "max_lr": (lambda v: finite(v) and v > 0, "a number above 0"),
            "min_lr": (lambda v: finite(v) and 0 <= v <= self.max_lr, f"a number from 0 to --max_lr ({self.max_lr})"),
            "init": (lambda v: v in ("same", "quality"), "'same' or 'quality'"),
            "score": (lambda v: v in ("mask", "exact"), "'mask' or 'exact'"),
            "readout": (lambda v: v in ("top", "sample"), "'top' or 'sample'"),
            "polish": (lambda v: v in ("swaps", "none"), "'swaps' or 'none'"),
        }
        if self.score == "exact" and (self.ruled or self.budget is not None):
            raise OptionError("--score exact is the gradient of free draws, and --pin, --quota, --given and --budget "
                              "bind them; leave them out, or take --score mask")
        if self.budget is not None and not entry.spends:
            raise OptionError(f"--estimator {entry.name} selects a number of rows and cannot fill a --budget; use "
                              "--select_ratio, or --estimator "
                              f"{', '.join(e.name for e in catalogue.ESTIMATORS if e.spends)}")
        for option, (holds, expected) in checks.items():
            if option in entry.defaults:
                check(holds(getattr(self, option)), option, expected, getattr(self, option))

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
                raise OptionError("--budget needs the number of tokens of every row, and no column was found for it; "
                                  "name it with --length_column, or use --select_ratio")
            return min(max(math.floor(n * self.budget / tokens + 0.5), 1), n - 1)
        s = math.floor(self.select_ratio * n + 0.5)
        check(0 < s < n, "select_ratio", f"such that between 1 and {n - 1:,} of {n:,} rows are selected",
              f"{self.select_ratio} (selects {s:,})")
        return s

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SelectionConfig:
        known = {f.name for f in fields(cls)}
        given = {k: v for k, v in data.items() if k in known}
        given["quotas"] = tuple(Quota(**quota) for quota in given.get("quotas", ()))
        # a record from before an option existed gets that option's default
        defaults = catalogue.estimator(str(given.get("estimator", "counterfactual"))).defaults
        return cls(**{**defaults, **given})


def _canonical_objective(text: str) -> str:
    terms = catalogue.objective_terms(text)
    # weights as given, not divided by their sum: dividing twice would not give the same digits twice
    return next(iter(terms)) if len(terms) == 1 else ",".join(f"{n}:{number_text(w)}" for n, w in terms.items())


def _canonical_collapse(value: Any) -> str:
    text = str(value).strip().lower()
    if text in ("none", "exact"):
        return text
    try:
        cosine = float(text)
    except ValueError:
        cosine = math.nan
    check(math.isfinite(cosine) and 0 < cosine <= 1, "collapse", "'none', 'exact' or a cosine above 0 and at most 1",
          value)
    return f"{cosine:g}"
