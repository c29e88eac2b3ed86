"""The question of an ablation: which methods select, at which ratio, and which targets they are measured on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from datamask import catalogue
from datamask.config.selection import SelectionConfig
from datamask.config.target import Target
from datamask.errors import OptionError

RANDOM, DUPLICATES, TOP_QUALITY = "random", "duplicates-removed", "top-quality"

SIMPLE = (RANDOM, DUPLICATES, "semdedup", "soft-quality", TOP_QUALITY, "cluster-balanced")
"""Simple baselines: no objective and no lambda has a say in them."""

GREEDY, MASKS = "greedy", "masks"

JOINT = (GREEDY, MASKS)
"""Joint methods at one setting: greedy picks on facility location, and the paper's preset, which learns masks."""

METHODS = (*SIMPLE, *JOINT)

JUDGES = ("bigram", "transformer")
"""Models that learn from the selected texts."""

OBJECTIVES = ("facility", "pairwise", "vendi")
"""Objectives that are tried over lambda; those that the catalogue does not have are left out."""

LAMBDAS = (0.0, 0.35, 0.5, 0.7, 0.85)
"""Lambda 1 is top quality under every objective, which is a method of its own."""

LEAST_SEEDS, SEEDS = 6, 10
"""Fewer than six seeds have so few patterns of signs that no difference could be shown at 95 %."""

FIRST_SEEDS = 3
"""The first answer comes after so many seeds."""

MEANING = 2
"""Version of what a question means. Raise it when duplicates, held-out texts, methods or losses are defined in another
way: results, selections and losses that were kept before are then not found."""

LABEL_REGIONS = "regions"
"""In the place of a label column: k-means regions of the features."""


def objectives_known() -> tuple[str, ...]:
    """Those of `OBJECTIVES` that the catalogue has."""
    known = {entry.name for entry in catalogue.OBJECTIVES}
    return tuple(name for name in OBJECTIVES if name in known)


@dataclass(frozen=True)
class AblationQuestion:
    """What is compared, and on what.

    Attributes:
        target: one target; None: several targets at once.
        label: where there are several, the column whose values they are; ``regions``: k-means regions of the features;
            "": a column is chosen, or regions where none fits.
        methods: of `METHODS`; random is always one. objectives: each over all `lambdas`.
        ratio: the select ratio of every method. lambdas: rising, from 0 up to, not including, 1.
        seeds: planned. Each has rows of the corpus of its own, so that seeds are independent.
        seed: deals the rows to the seeds, and draws.
        rows: rows of one seed at most.
        words: each selection trains the bigram model on so many words, or on as many as the shortest one has.
        judge: the proxy model, ``bigram`` or ``transformer``. train_bytes: as `words`, for the transformer.

    Example:
        >>> AblationQuestion(target=Target("column", "domain", "libs")).ratio
        0.3
    """

    target: Target | None = None
    label: str = ""
    methods: tuple[str, ...] = METHODS
    objectives: tuple[str, ...] = ()
    ratio: float = 0.3
    lambdas: tuple[float, ...] = LAMBDAS
    seeds: int = SEEDS
    seed: int = 0
    rows: int = 12_000
    words: int = 150_000
    judge: str = "bigram"
    train_bytes: int = 150_000

    def __post_init__(self) -> None:
        objectives = self.objectives or objectives_known()
        named = (SelectionConfig.from_options(objective=name).objective for name in objectives)
        _set(self, "objectives", tuple(dict.fromkeys(named)))
        unknown = [name for name in self.methods if name not in METHODS]
        if unknown:
            raise OptionError(f"--methods must be of {', '.join(METHODS)}, got {', '.join(unknown)}")
        _set(self, "methods", tuple(name for name in METHODS if name in {RANDOM, *self.methods}))
        _set(self, "lambdas", tuple(sorted({float(lamb) for lamb in self.lambdas} - {1.0})))
        if not self.lambdas or not all(0 <= lamb < 1 for lamb in self.lambdas):
            raise OptionError(f"--lambdas must be values from 0 to 1, at least one of them below 1, got {self.lambdas}")
        if not 0 < self.ratio < 1:
            raise OptionError(f"--select_ratio must be between 0 and 1, got {self.ratio:g}")
        if self.judge not in JUDGES:
            raise OptionError(f"--judge must be one of {', '.join(JUDGES)}, got {self.judge!r}")
        for name, least in (("seeds", LEAST_SEEDS), ("rows", 100), ("words", 1_000), ("train_bytes", 5_000)):
            if getattr(self, name) < least:
                raise OptionError(f"--{name} must be at least {least:,}, got {getattr(self, name):,}")
        if self.target is not None and self.label:
            raise OptionError("--label names the targets of an ablation with several of them; leave out --target or it")

    @property
    def most(self) -> int:
        """Words, or bytes, that a selection trains on at most."""
        return self.train_bytes if self.judge == "transformer" else self.words

    @property
    def key(self) -> str:
        """Return twelve hex digits: the same question with the same `MEANING` has the same key."""
        asked = {"meaning": MEANING, **self.to_dict()}
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]

    def by(self, judge: str) -> AblationQuestion:
        """The same question to another proxy model.

        Example:
            >>> AblationQuestion().by("transformer").judge
            'transformer'
        """
        return replace(self, judge=judge)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AblationQuestion:
        """The question that `to_dict` wrote."""
        known = {field.name for field in fields(cls)}
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in data.items()
            if name in known and name != "target"
        }
        target = data.get("target")
        return cls(**given, target=None if target is None else Target(**target))


def _set(record: AblationQuestion, name: str, value: Any) -> None:
    """Assign while a frozen record is being made."""
    object.__setattr__(record, name, value)
