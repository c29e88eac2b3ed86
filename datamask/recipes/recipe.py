"""A recipe: the rule by which a selection was made, as JSON that any language reads.

A row is kept if its score reaches a threshold:

    q      = sum over the quality columns of weight * transform(value)
    x      = (feature - center) / its length            center: nothing, unless the run subtracted the corpus's mean
    y      = (x - mean) * inverse_sd                     of the DiSF with fixed scale alone; where the run kept
             principal components, of (axes' x) / its length in the place of x
    score  = quality_weight * q - crowding_weight * (x . direction) - moment_weight * (y' moment y)
             + length_weight * tokens                    the last under a token budget alone
    kept   = score >= tau                                or that of the row's group, where there were quotas

``direction`` is the mean feature of the members, to the rounding of a selection of whole rows; ``moment`` their mean of
``y y'`` without its diagonal. The score is on the scale that the run was made on, times the number of rows selected: it
is what one row adds, first order. Under a budget of tokens it is what one token adds, and means are over tokens.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from datamask import __version__, catalogue
from datamask.corpus.components import NOWHERE
from datamask.errors import MADE_BY_ANOTHER, InputError, OptionError, StoreError
from datamask.files import FORMAT, read_bounded, replacing, user_path
from datamask.recipes.fields import Fields, Id, parse_strict
from datamask.recipes.quality import FrozenQuality

MOST_BYTES = 512 << 20
"""Of a recipe file: a matrix of 4,096 dimensions takes some 400 MB."""

MOST_DIMENSIONS = 65_536

RUN = "[A-Za-z0-9._-]{1,255}"
"""What the id of a run looks like: a name of a folder."""


RULE_WEIGHTS = ("quality_weight", "crowding_weight", "moment_weight", "length_weight")
"""The numbers of a rule."""


@dataclass(frozen=True)
class ScoreRule:
    """The score of a row; see the module. Arrays are float64.

    Attributes:
        quality_weight, crowding_weight, moment_weight, length_weight: of the four parts; 0: there is no such part.
        direction: ``(d,)``; None without crowding.
        moment: ``(k, k)``, symmetric, diagonal 0; mean, inverse_sd: ``(k,)``; None without moments.
        axes: ``(d, k)``, components on which rows are scaled to unit length again; None: rows stay as they are.
    """

    quality_weight: float
    crowding_weight: float = 0.0
    direction: np.ndarray | None = None
    moment_weight: float = 0.0
    moment: np.ndarray | None = None
    mean: np.ndarray | None = None
    inverse_sd: np.ndarray | None = None
    length_weight: float = 0.0
    axes: np.ndarray | None = None

    @property
    def needs_features(self) -> bool:
        """Whether a row's features have a say."""
        return self.direction is not None or self.moment is not None

    def standardised(self, units: np.ndarray) -> np.ndarray:
        """y of unit features ``(n, d)``, float64 ``(n, k)``, where the rule has moments."""
        if self.axes is not None:
            units = units @ self.axes
            units = units / np.maximum(np.linalg.norm(units, axis=1, keepdims=True), NOWHERE)
        y: np.ndarray = (units - self.mean) * self.inverse_sd
        return y

    def to_dict(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}

    @classmethod
    def read(cls, fields: Fields, dim: int) -> ScoreRule:
        """Raises InputError where a field is not what it must be."""
        weights = {name: fields.number(name, 0.0) for name in RULE_WEIGHTS}
        direction = fields.vector("direction", dim) if fields.has("direction") else None
        moment = mean = inverse_sd = axes = None
        if fields.has("moment"):
            if fields.has("axes"):
                axes = fields.matrix("axes", dim, narrow=True)
                dim = axes.shape[1]
            moment = fields.matrix("moment", dim)
            mean, inverse_sd = fields.vector("mean", dim), fields.vector("inverse_sd", dim)
            if not np.allclose(moment, moment.T, rtol=1e-6, atol=1e-12):
                raise fields.error("moment", "symmetric", "a matrix that is not")
        for part, weight in (("direction", "crowding_weight"), ("moment", "moment_weight")):
            if weights[weight] > 0 and not fields.has(part):
                raise fields.error(part, f"given, since {weight} is above 0", None)
        return cls(direction=direction, moment=moment, mean=mean, inverse_sd=inverse_sd, axes=axes, **weights)


@dataclass(frozen=True)
class Thresholds:
    """What a score must reach.

    Attributes:
        tau: of every row without one of its own; None: no such row is kept.
        column, groups: where quotas held: the column, and by its value the threshold of the rows that have it; None:
            no such row is kept.
        least_quality: rows of less quality are never kept (``--prune``); None: all may be.
    """

    tau: float | None
    column: str | None = None
    groups: dict[str, float | None] = field(default_factory=dict)
    least_quality: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "tau": self.tau,
            "column": self.column,
            "groups": dict(self.groups),
            "least_quality": self.least_quality,
        }

    @classmethod
    def read(cls, fields: Fields) -> Thresholds:
        """Raises InputError where a field is not what it must be."""
        column = fields.text("column") if fields.has("column") else None
        of_groups = fields.object("groups")
        if of_groups and column is None:
            raise fields.error("column", "the column that groups are values of", None)
        numbers = Fields(of_groups, fields._source, f"{fields._path}groups.")
        least = fields.number("least_quality") if fields.has("least_quality") else None
        return cls(
            fields.number_or_null("tau"), column, {name: numbers.number_or_null(name) for name in of_groups}, least
        )


@dataclass(frozen=True)
class FeatureColumn:
    """The features. center: float64 ``(dim,)``, subtracted before they are made unit length; None: nothing is."""

    column: str
    dim: int
    center: np.ndarray | None = None

    def to_dict(self) -> dict[str, Any]:
        center = None if self.center is None else self.center.tolist()
        return {"column": self.column, "dim": self.dim, "center": center, "normalise": "L2"}

    @classmethod
    def read(cls, fields: Fields) -> FeatureColumn:
        """Raises InputError where a field is not what it must be."""
        dim = fields.whole("dim", 1, MOST_DIMENSIONS)
        fields.text("normalise", ("L2",))
        return cls(fields.text("column"), dim, fields.vector("center", dim) if fields.has("center") else None)


@dataclass(frozen=True)
class Recipe:
    """See the module.

    Attributes:
        objective: of the run, ``pairwise``, ``disf_fixed`` or a weighted sum of both; lamb: its lambda.
        scale: ``calibrated`` or ``raw``; anchors: the ends of the calibrated scale, by term, as runs keep them.
        share: of the rows, or under a budget of the tokens, that were to be selected; of: ``rows`` or ``tokens``.
        rule, thresholds: see there. quality, features: the columns they look at.
        id_column, length_column: names; the length is None where the corpus had none.
        always, never: ids that are kept, or left out, whatever their score (pins; bans, and what one has already).
        learned: where it was learned and how well it fits there: ``run``, ``fingerprint``, ``rows``, ``share_kept``,
            ``otherwise`` and more.
        all_rows: where its threshold was set anew, the ``rows``, ``kept`` and ``share_kept`` there; may be empty.
        notes: sentences that whoever applies it should read.
    """

    objective: str
    lamb: float
    scale: str
    anchors: dict[str, Any]
    share: float
    of: str
    rule: ScoreRule
    thresholds: Thresholds
    quality: tuple[FrozenQuality, ...]
    features: FeatureColumn
    id_column: str
    length_column: str | None = None
    always: tuple[Id, ...] = ()
    never: tuple[Id, ...] = ()
    learned: dict[str, Any] = field(default_factory=dict)
    all_rows: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[tuple[str, float], ...]:
        """The diversity objectives and their weights, which add to 1."""
        weights = catalogue.objective_terms(self.objective)
        return tuple((name, weight / sum(weights.values())) for name, weight in weights.items())

    @property
    def share_kept(self) -> float | None:
        """The share of rows, or of tokens, that it keeps where it was estimated last; None where that is not said."""
        share = (self.all_rows or self.learned).get("share_kept")
        return share if isinstance(share, (int, float)) and not isinstance(share, bool) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as they stand in the file."""
        return {
            "format": FORMAT,
            "datamask": __version__,
            "objective": self.objective,
            "lambda": self.lamb,
            "scale": self.scale,
            "anchors": self.anchors,
            "share": self.share,
            "of": self.of,
            "rule": self.rule.to_dict(),
            "thresholds": self.thresholds.to_dict(),
            "quality": [column.to_dict() for column in self.quality],
            "features": self.features.to_dict(),
            "id_column": self.id_column,
            "length_column": self.length_column,
            "always": list(self.always),
            "never": list(self.never),
            "learned": self.learned,
            "all_rows": self.all_rows,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """The text of the file. Numbers are written with all their digits."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"

    @property
    def digest(self) -> str:
        """By what two recipes are known to be the same, whatever version wrote them."""
        record = {name: value for name, value in self.to_dict().items() if name != "datamask"}
        text = json.dumps(record, sort_keys=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @classmethod
    def from_dict(cls, record: Any, source: str = "the recipe") -> Recipe:
        """A recipe from plain values, every one of which is checked.

        Args:
            source: where they come from, for sentences.

        Raises:
            InputError: a field is missing, or of another type, shape or range than it must be.
        """
        fields = Fields(record, source)
        if fields.text("format") != FORMAT:
            raise InputError(f"{source} was {MADE_BY_ANOTHER}; make it again with `datamask recipe`")
        try:
            unruled = [
                name for name in catalogue.objective_terms(fields.line("objective")) if name not in catalogue.RULED
            ]
        except OptionError as error:
            raise InputError(f"{source} is no recipe that can be applied: {error}") from error
        features = FeatureColumn.read(fields.within("features"))
        recipe = cls(
            objective=fields.line("objective"),
            lamb=fields.number("lambda", 0.0, 1.0),
            scale=fields.text("scale", ("calibrated", "raw")),
            anchors=_anchors(fields),
            share=fields.number("share", 0.0, 1.0),
            of=fields.text("of", ("rows", "tokens")),
            rule=ScoreRule.read(fields.within("rule"), features.dim),
            thresholds=Thresholds.read(fields.within("thresholds")),
            quality=tuple(FrozenQuality.read(column) for column in fields.each("quality")),
            features=features,
            id_column=fields.text("id_column"),
            length_column=fields.text("length_column") if fields.has("length_column") else None,
            always=fields.ids("always"),
            never=fields.ids("never"),
            learned=_facts(fields, "learned"),
            all_rows=_facts(fields, "all_rows"),
            notes=fields.lines("notes"),
        )
        if unruled and recipe.lamb < 1:
            raise fields.error("objective", f"made of {' and '.join(catalogue.RULED)}", recipe.objective)
        if recipe.length_column is None and (recipe.of == "tokens" or recipe.rule.length_weight > 0):
            raise fields.error("length_column", "the column that counts tokens", None)
        return recipe


def _anchors(fields: Fields) -> dict[str, Any]:
    """The ends of the scales, checked."""
    anchors = fields.within("anchors")
    for ends in (anchors.within("quality"), *map(anchors.within("diversity").within, anchors.object("diversity"))):
        ends.number("random")
        ends.number("best")
    return fields.object("anchors")


def _facts(fields: Fields, name: str) -> dict[str, Any]:
    """What is said of where a recipe was learned or estimated, checked in all that datamask itself prints."""
    facts = fields.object(name)
    checked = Fields(facts, fields._source, f"{name}.")
    if checked.has("run"):
        checked.line("run", RUN)
    for count in ("rows", "selected", "kept", "otherwise", "beyond_the_run"):
        if checked.has(count):
            checked.whole(count)
    for number in ("share_kept", "value", "upper_bound"):
        if checked.has(number):
            checked.number(number)
    return facts


def read_recipe(path: str | Path) -> Recipe:
    """The recipe in a file.

    Raises:
        InputError: there is no such file, it is no JSON, or a field is not what it must be.
    """
    place = user_path(path)
    try:
        record = parse_strict(read_bounded(place, MOST_BYTES).decode("utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; `datamask recipe RUN --output {path}` makes one") from None
    except StoreError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path} is no recipe: it is no JSON ({str(error)[:120]})") from error
    return Recipe.from_dict(record, str(path))


def write_recipe(recipe: Recipe, path: str | Path) -> None:
    """Write a recipe as JSON, whole or not at all.

    Raises:
        StoreError: the file cannot be written.
    """
    with replacing(path) as part:
        part.write_text(recipe.to_json(), encoding="ascii")
