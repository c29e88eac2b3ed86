"""Problems: from a pool and a selection's settings to the objective, its scales and the rows that may be selected."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue, objectives
from datamask.config import SelectionConfig
from datamask.corpus.copies import Duplicates
from datamask.errors import InputError, OptionError
from datamask.evaluation.anchors import diversity_anchor, quality_anchor, quality_best
from datamask.evaluation.id_lists import read_rows
from datamask.evaluation.pool import Pool
from datamask.learning.limits import Limits
from datamask.learning.masks import top
from datamask.learning.problem import Problem
from datamask.measured import Anchor, Anchors, ComponentFacts, TermValues
from datamask.objectives.joint import Joint, Scale, Term, Values
from datamask.polling import Poll, no_poll
from datamask.quotas import quota_groups


@dataclass(frozen=True)
class PosedProblem:
    """A problem with what is needed to report on it.

    Attributes:
        problem: with the objective on the scale of the settings.
        calibrated: the same objective on the calibrated scale.
        quality_anchor, diversity_anchors: the ends of the calibrated scales.
        given: bool ``(n,)``, rows that one already has. They are members of every subset that is valued, and pinned;
            the S rows to select are those beside them, so ``problem.size`` is S and the given ones together, and so
            are the tokens of ``problem.limits``.
        best_quality: bool ``(n,)``, the rows of highest quality, free of any rules.
        duplicates: which rows were kept of them before the selection.
        ruled: how many rows are ``pinned`` and ``banned``, by these names.
        component_facts: of a mask, `Pool.component_facts` of the objectives.
    """

    problem: Problem
    calibrated: Joint
    quality_anchor: Anchor
    diversity_anchors: dict[str, Anchor]
    given: np.ndarray
    best_quality: Tensor
    duplicates: Duplicates
    ruled: dict[str, int]
    component_facts: Callable[[Tensor, Poll], ComponentFacts | None]

    @property
    def wanted(self) -> int:
        """S, the rows to select beside the given ones; under a budget about so many."""
        return self.problem.size - int(self.given.sum())

    def shares(self, values: Values) -> TermValues:
        """Return raw values as shares of the attainable gain."""
        joint = self.calibrated
        quality = joint.quality_scale(values.raw_quality)
        diversity = sum(term.weight * term.scale(values.raw_diversity[term.name]) for term in joint.terms)
        return TermValues(quality, diversity, joint.lamb * quality + (1 - joint.lamb) * diversity)

    def anchors(self) -> Anchors:
        """Return the ends of the scales of all terms."""
        return Anchors(self.quality_anchor, self.diversity_anchors)

    def switched_off(self) -> list[str]:
        """A sentence for every term that no selection can change."""
        named = {"quality": self.quality_anchor, **self.diversity_anchors}
        return [
            f"{name} is the same for every selection of this size, so it is switched off"
            for name, anchor in named.items()
            if anchor.constant
        ]


def pose(pool: Pool, config: SelectionConfig, poll: Poll = no_poll, begun: Anchors | None = None) -> PosedProblem:
    """Bind the objectives, find the anchors, leave out pruned rows, collapsed copies and bans, set up pins and quotas.

    The anchors are those of a subset of S rows and the given ones together, chosen freely from the whole pool: random
    means so many random rows, best means the best that anyone could have who had nothing yet. Under a budget they are
    those of its tokens and the given ones' together.

    Args:
        begun: the anchors that a run was begun with, as `PosedProblem.anchors` gives them; a version of datamask may
            find others, and would then go on by another lambda than it began.

    Raises:
        OptionError: the ratio selects none or all, too few rows are left to select from, no selection can obey the
            rules, or there is a budget and rows without tokens.
        InputError: a file of ids cannot be read, or names rows that are not in the corpus; or qualities or values of
            an objective are too large, or no numbers.
    """
    pinned, banned, given = (_named(pool, getattr(config, option), option) for option in ("pin", "ban", "given"))
    for (a, first), (b, second) in itertools.combinations((("pin", pinned), ("ban", banned), ("given", given)), 2):
        if both := int((first & second).sum()):
            raise OptionError(f"--{a} and --{b} both name {both:,} rows; take them out of one of the two")
    size = config.size(len(pool), pool.tokens) + int(given.sum())
    duplicates = pool.duplicates(config.collapse)
    eligible = _eligible(pool, config, size, pinned | given, banned, duplicates.kept)
    eligible, limits = _limits(pool, config, size, eligible, pinned | given, given)
    tokens = limits.most if limits.by_tokens else None
    names = [name for name, _ in config.terms]
    if begun is not None and begun.quality is not None and set(begun.diversity) == set(names):
        quality, diversity = begun.quality, {name: begun.diversity[name] for name in names}
    else:
        quality, diversity = quality_anchor(pool, size, tokens), {}
    _check_finite("quality", quality)  # before solvers of objectives meet such scores
    for name in names:
        diversity[name] = diversity.get(name) or diversity_anchor(pool, name, size, poll, tokens)
        _check_finite(name, diversity[name])

    def joint(calibrated: bool) -> Joint:
        def scale(anchor: Anchor) -> Scale:
            return Scale.calibrated(anchor) if calibrated else Scale()

        terms = tuple(
            Term(name, weight, pool.function(name, size, tokens), scale(diversity[name]))
            for name, weight in config.terms
        )
        return Joint(pool.quality_under(tokens), terms, config.lamb, scale(quality))

    problem = Problem(
        joint(config.scale == "calibrated"),
        size,
        eligible,
        pool.ties(config.seed),
        pool.features,
        limits,
        _column(pool, config),
    )
    return PosedProblem(
        problem,
        joint(True),
        quality,
        diversity,
        given,
        quality_best(pool, size, tokens, config.seed),
        duplicates,
        {"pinned": int(pinned.sum()), "banned": int(banned.sum())},
        functools.partial(pool.component_facts, names, tokens),
    )


def _check_finite(name: str, anchor: Anchor) -> None:
    """Raise where a term's scale has an end that is no finite number.

    Raises:
        InputError: of quality, scores that are too large to be added up; of an objective, that it gives such values.
    """
    if math.isfinite(anchor.random) and math.isfinite(anchor.best - anchor.random):
        return
    came = f"{anchor.random:g} for a random selection and {anchor.best:g} for the best one"
    if name == "quality":
        raise InputError(
            f"the quality scores must add up to finite numbers, got a mean of {came}; rescale the column, "
            "for instance with --quality_column NAME:1:z"
        )
    raise InputError(
        f"objective {name} must give finite numbers, got {came}; for an objective of your own, `python -m "
        "datamask check-objective` tells more"
    )


def _column(pool: Pool, config: SelectionConfig) -> Tensor | None:
    """The one quality column that the estimator's name asks for, higher is better."""
    name = catalogue.quality_column(config.estimator)
    if name is None:
        return None
    if name not in (columns := list(pool.corpus.provenance.columns["quality"])):
        raise OptionError(
            f"--estimator {config.estimator}: {name!r} is no quality column of this corpus; it has "
            f"{', '.join(columns)}; name more with --quality_column"
        )
    if len(columns) == 1:
        return pool.quality.scores
    values: np.ndarray = pool.corpus.metadata[name].to_numpy().astype(np.float64)
    if name in pool.corpus.provenance.columns.get("falling", ()):
        values = -values
    return torch.from_numpy(values).to(pool.quality.scores)


def _named(pool: Pool, path: str | None, option: str) -> np.ndarray:
    """The rows that a file of ids names, bool ``(n,)``."""
    mask = np.zeros(len(pool), dtype=bool)
    if path is not None:
        listed = read_rows(path, pool.corpus)
        if listed.unknown:
            raise InputError(
                f"--{option} {path}: {listed.unknown:,} of its ids are not in the corpus, such as "
                f"{listed.example!r}; take them out, or open the shards they are in"
            )
        mask[listed.rows] = True
    return mask


def _limits(
    pool: Pool, config: SelectionConfig, size: int, eligible: Tensor, pinned: np.ndarray, given: np.ndarray
) -> tuple[Tensor, Limits]:
    """The eligible rows that fit into a budget at all, and what a selection of them must obey."""
    if config.budget is None and not config.ruled:
        return eligible, Limits(size, np.zeros(len(eligible), bool))
    rows, most, lengths = eligible.cpu().numpy(), float(size), None
    if config.budget is not None:
        lengths = pool.token_lengths
        if len(empty := rows[lengths[rows] <= 0]):
            raise OptionError(
                f"--budget: {len(empty):,} rows have no tokens in "
                f"{pool.corpus.provenance.columns['length']!r}, such as {pool.corpus.ids[int(empty[0])]}; "
                "--ban them, or use --select_ratio"
            )
        most = config.budget + float(lengths[given].sum())
    groups = quota_groups(config.quotas, pool.corpus, most, given, lengths) if config.quotas else None
    rows, limits = Limits.within(most, rows, pinned, given, lengths, groups)
    return torch.from_numpy(rows).to(pool.device), limits


def _eligible(
    pool: Pool, config: SelectionConfig, size: int, pinned: np.ndarray, banned: np.ndarray, keep: np.ndarray
) -> Tensor:
    """Rows that may be selected: those kept of duplicates, less the worst by quality and bans; pins stay."""
    n = len(pool)
    if config.prune > 0:
        left = max(1, round((1.0 - config.prune) * n))
        keep = keep & top(pool.quality.scores, left, pool.ties(config.seed)).cpu().numpy()
    keep = (keep | pinned) & ~banned
    count = int(keep.sum())
    if count <= size and config.budget is None:
        to_select = config.size(n)
        beside = f" next to {size - to_select:,} given rows" if size > to_select else ""
        given = [
            *([f"--prune {config.prune:g}"] if config.prune else []),
            *([f"--collapse {config.collapse}"] if config.collapse != "none" else []),
            *(["--ban"] if config.ban is not None else []),
            *(["--given"] if config.given is not None else []),
        ]
        raise OptionError(
            f"{' and '.join(given)} {'leaves' if len(given) == 1 else 'leave'} {count - size + to_select:,} of "
            f"{n:,} rows{beside}, but {to_select:,} are to be selected; leave out fewer rows, or lower --select_ratio"
        )
    return pool.rows(keep, any(objectives.load(name).ordered for name, _ in config.terms))
