"""What to select and how: frozen, self-validating records that feed command line, forms and run folder alike.

Three records: `CorpusConfig` (which rows), `SelectionConfig` (which subset of them, found how) and `RunConfig` (both,
with a name). All of them round-trip through JSON (`to_dict`, `from_dict`), and `RunConfig.arguments` writes a run as
the command line that repeats it. Nothing here loads torch or reads a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from datamask import catalogue
from datamask.amounts import parse_tokens, tokens_text
from datamask.errors import OptionError

TRANSFORMS = ("raw", "z", "rank")
LEARNER_OPTIONS = ("n_rollout", "n_epochs", "partial", "max_lr", "min_lr", "init", "score", "readout", "polish")
"""Options that only some estimators have; the catalogue says which."""

NEIGHBOR_SEARCHES = ("auto", "exact", "approximate")
"""How the neighbour graph may be asked for; see `datamask.corpus.neighbors.search_for`."""

REINFORCE_ONLY_HINTS = ("partial", "max_lr", "min_lr")
"""Given without an estimator, these mean the paper's method, so that its quick-test line stays the paper's method."""

PAPER_PRESET = {"estimator": "reinforce", "scale": "raw", "n_rollout": 128, "n_epochs": 5000, "partial": 0.1,
                "max_lr": 10.0, "min_lr": 1.0, "init": "quality", "score": "mask", "readout": "top",
                "polish": "none"}
"""The quick-test setting of arXiv 2512.24265. Never changes."""


def _check(condition: bool, option: str, expected: str, got: Any) -> None:
    if not condition:
        raise OptionError(f"--{option} must be {expected}, got {got!r}")


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: float) -> str:
    """The shortest text that reads back as exactly `value`: 0.3, not 0.300000; 10, not 10.0."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(float(value))


@dataclass(frozen=True)
class QualityColumn:
    """One quality column: its name, weight in the sum, and transform (``raw``, ``z`` or ``rank``) before the sum."""

    name: str
    weight: float = 1.0
    transform: str = "raw"

    def __post_init__(self) -> None:
        _check(bool(self.name), "quality_column", "NAME[:WEIGHT[:raw|z|rank]]", self.name)
        _check(_finite(self.weight), "quality_column", "NAME:WEIGHT with a finite weight", self.weight)
        _check(self.transform in TRANSFORMS, "quality_column", "NAME:WEIGHT:raw, :z or :rank", self.transform)

    @classmethod
    def parse(cls, text: str) -> QualityColumn:
        """Read ``NAME[:WEIGHT[:raw|z|rank]]``; a name may itself hold colons, as long as its tail is no weight."""
        parts = text.split(":")
        transform = "raw"
        if len(parts) > 2 and parts[-1] in TRANSFORMS:
            transform = parts.pop()
        if len(parts) > 1:
            try:
                weight = float(parts[-1])
            except ValueError:
                if transform != "raw":
                    raise OptionError(
                        f"--quality_column must be NAME[:WEIGHT[:raw|z|rank]], got {text!r}: no number before "
                        f":{transform}"
                    ) from None
            else:
                return cls(":".join(parts[:-1]), weight, transform)
        return cls(":".join(parts), 1.0, transform)

    def __str__(self) -> str:
        """A short text that `parse` reads back as this column."""
        weighted = f"{self.name}:{_number(self.weight)}"
        if self.transform != "raw":
            return f"{weighted}:{self.transform}"
        # a colon in the name could be taken for the start of a weight
        return self.name if self.weight == 1.0 and ":" not in self.name else weighted


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
        fits = _finite(self.low) and _finite(self.high) and 0 <= self.low <= self.high <= 1
        _check(bool(self.column) and fits, "quota", "COLUMN=VALUE:LOW:HIGH with shares 0 <= LOW <= HIGH <= 1",
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
class CorpusConfig:
    """Which rows make the corpus.

    Attributes:
        inputs: parquet files, folders or globs.
        id_column, feature_column, length_column: column names; None: found by the paper's names, then by type.
        quality_columns: summed with their weights; empty: found by name, then by type.
        features, scores: side shards holding the feature or quality column, joined by id, else by row position.
        rows: size of a uniform sample by hash of (id, seed); None: all rows.
        drop_invalid: drop rows with NaN, infinite, null or all-zero features or quality instead of refusing them.
        seed: of the row sample (`--row_seed`; on the command line it follows `--seed` unless given).
    """

    inputs: tuple[str, ...]
    id_column: str | None = None
    quality_columns: tuple[QualityColumn, ...] = ()
    feature_column: str | None = None
    length_column: str | None = None
    features: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    rows: int | None = None
    drop_invalid: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("inputs", "features", "scores", "quality_columns"):
            value = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if not isinstance(value, str) else (value,))
        _check(len(self.inputs) > 0, "input", "at least one parquet file, folder or glob", self.inputs)
        _check(self.rows is None or (isinstance(self.rows, int) and self.rows >= 2), "rows",
               "a whole number of at least 2", self.rows)
        _check(isinstance(self.seed, int) and 0 <= self.seed < 2**63, "seed", "a whole number from 0 to 2^63 - 1",
               self.seed)

    def to_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CorpusConfig:
        known = {f.name for f in fields(cls)}
        values = {k: v for k, v in data.items() if k in known}
        values["quality_columns"] = tuple(QualityColumn(**q) for q in values.get("quality_columns", ()))
        return cls(**values)


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
        seed: of masks, batches and ties. device: ``auto``, ``cpu``, ``cuda[:k]`` or ``mps``.
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
        _check(not unknown, "option", "a known option", ", ".join(sorted(unknown)))
        if "budget" in given and "select_ratio" in given:
            raise OptionError("--budget and --select_ratio both say how much to select; give one of them")
        preset = given.get("preset")
        _check(preset in (None, "paper"), "preset", "'paper'", preset)
        base = dict(PAPER_PRESET) if preset == "paper" else {}
        for key, value in base.items():
            _check(key not in given or given[key] == value or given[key] == "auto", key,
                   f"left out, or {value!r}, with --preset paper (the preset never changes)", given.get(key))
        merged = {**given, **base}
        if merged.get("estimator", "auto") == "auto":
            hinted = any(k in merged for k in REINFORCE_ONLY_HINTS)
            merged["estimator"] = "reinforce" if hinted else "counterfactual"
        entry = catalogue.estimator(merged["estimator"])
        _check(entry is not catalogue.IMPORTED, "estimator", "a way to select; ids chosen elsewhere come in by `runs "
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
        _check(len({quota.column for quota in self.quotas}) <= 1, "quota", "on one column", listed)
        _check(len({quota.value for quota in self.quotas}) == len(self.quotas), "quota", "given once per value", listed)
        _check(_finite(self.lamb) and 0 <= self.lamb <= 1, "lamb", "a number from 0 (diversity alone) to 1", self.lamb)
        _check(_finite(self.select_ratio) and 0 < self.select_ratio < 1, "select_ratio",
               "between 0 and 1, both excluded", self.select_ratio)
        _check(self.scale in ("calibrated", "raw"), "scale", "'calibrated' or 'raw'", self.scale)
        _check(isinstance(self.center, bool), "center", "true or false", self.center)
        _check(_finite(self.prune) and 0 <= self.prune < 1, "prune", "a share from 0 to below 1", self.prune)
        _check(isinstance(self.seed, int) and 0 <= self.seed < 2**63, "seed", "a whole number from 0 to 2^63 - 1",
               self.seed)
        _check(self.neighbors in NEIGHBOR_SEARCHES, "neighbors", "auto, exact or approximate", self.neighbors)
        device = str(self.device)
        _check(device in ("auto", "cpu", "cuda", "mps") or (device.startswith("cuda:") and device[5:].isdigit()),
               "device", "auto, cpu, cuda, cuda:K or mps", self.device)
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
            "partial": (lambda v: _finite(v) and 0 < v <= 1, "a share above 0 and at most 1"),
            "max_lr": (lambda v: _finite(v) and v > 0, "a number above 0"),
            "min_lr": (lambda v: _finite(v) and 0 <= v <= self.max_lr, f"a number from 0 to --max_lr ({self.max_lr})"),
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
                _check(holds(getattr(self, option)), option, expected, getattr(self, option))

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
        _check(0 < s < n, "select_ratio", f"such that between 1 and {n - 1:,} of {n:,} rows are selected",
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


@dataclass(frozen=True)
class RunConfig:
    """A run: a corpus, a selection, a name and notes.

    Attributes:
        ids: for a selection that was imported, the file it was read from; ignore_unknown: whether ids of that file
            that are not in the corpus were left out instead of refused.
    """

    corpus: CorpusConfig
    selection: SelectionConfig = field(default_factory=SelectionConfig.from_options)
    name: str = ""
    notes: str = ""
    ids: str | None = None
    ignore_unknown: bool = False

    def to_dict(self) -> dict:
        return {"corpus": self.corpus.to_dict(), "selection": self.selection.to_dict(), "name": self.name,
                "notes": self.notes, "ids": self.ids, "ignore_unknown": self.ignore_unknown}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunConfig:
        return cls(CorpusConfig.from_dict(data["corpus"]), SelectionConfig.from_dict(data["selection"]),
                   str(data.get("name", "")), str(data.get("notes", "")), data.get("ids"),
                   bool(data.get("ignore_unknown", False)))

    def renamed(self, name: str | None = None, notes: str | None = None) -> RunConfig:
        return replace(self, name=self.name if name is None else name, notes=self.notes if notes is None else notes)

    def arguments(self, output: str = "selection.parquet") -> list[str]:
        """The words after ``python -m datamask`` that repeat this run; only what differs from the defaults."""
        corpus, selection = self.corpus, self.selection
        words = ["select"] if self.ids is None else ["runs", "import", self.ids]

        def add(option: str, value: Any, default: Any = None) -> None:
            if value != default:
                text = _number(value) if isinstance(value, float) else str(value)
                # a value that begins with a hyphen would be read as an option of its own
                words.extend([f"--{option}={text}"] if text.startswith("-") else [f"--{option}", text])

        if any(path.startswith("-") for path in corpus.inputs):
            for path in corpus.inputs:
                add("input", path)
        else:
            words.extend(corpus.inputs)
        if self.ids is None:
            add("output", output)
        if self.ignore_unknown:
            words.append("--ignore_unknown")

        for column in ("id_column", "feature_column", "length_column"):
            add(column, getattr(corpus, column))
        for quality in corpus.quality_columns:
            add("quality_column", str(quality))
        for side in ("features", "scores"):
            for path in getattr(corpus, side):
                add(side, path)
        add("rows", corpus.rows)
        add("row_seed", corpus.seed, selection.seed)
        if corpus.drop_invalid:
            words.append("--drop_invalid")
        add("objective", selection.objective)
        add("lamb", float(selection.lamb))
        if self.ids is None:
            self._add_search(add, words)
        else:
            add("scale", selection.scale, "calibrated")
        add("seed", selection.seed, 0)
        add("device", selection.device, "auto")
        add("name", self.name, "")
        add("notes", self.notes, "")
        return words

    def _add_search(self, add: Callable[..., None], words: list[str]) -> None:
        """The words of how a selection is found, which an imported one has not."""
        selection = self.selection
        if selection.budget is None:
            add("select_ratio", float(selection.select_ratio))
        else:
            add("budget", tokens_text(selection.budget))
        defaults = dict(catalogue.estimator(selection.estimator).defaults)
        if selection.preset == "paper":
            add("preset", "paper")
        else:
            add("estimator", selection.estimator)
            add("scale", selection.scale, "calibrated")
            for option, default in defaults.items():
                add(option, getattr(selection, option), default)
        if selection.center:
            words.append("--center")
        add("prune", float(selection.prune), 0.0)
        add("collapse", selection.collapse, "none")
        add("pin", selection.pin)
        add("ban", selection.ban)
        add("given", selection.given)
        for quota in selection.quotas:
            add("quota", str(quota))
        add("neighbors", selection.neighbors, "auto")


def _canonical_objective(text: str) -> str:
    terms = catalogue.objective_terms(text)
    # weights as given, not divided by their sum: dividing twice would not give the same digits twice
    return next(iter(terms)) if len(terms) == 1 else ",".join(f"{n}:{_number(w)}" for n, w in terms.items())


def _canonical_collapse(value: Any) -> str:
    text = str(value).strip().lower()
    if text in ("none", "exact"):
        return text
    try:
        cosine = float(text)
    except ValueError:
        cosine = math.nan
    _check(math.isfinite(cosine) and 0 < cosine <= 1, "collapse", "'none', 'exact' or a cosine above 0 and at most 1",
           value)
    return f"{cosine:g}"
