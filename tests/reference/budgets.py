"""The set functions under a token budget, in float64 numpy, straight from their definitions.

Every token of a member stands for the member; tokens that are not spent stand for the average token of the pool.
"""

from __future__ import annotations

import numpy as np

from tests.reference import truth
from tests.reference.truth import unit_rows

__all__ = ["OBJECTIVES", "quality", "unit_rows"]


def _average(lengths: np.ndarray, budget: float) -> np.ndarray:
    """Share of each row in the tokens of the pool, rows longer than the budget left out."""
    counted = np.where(lengths <= budget, lengths, 0.0)
    return counted / counted.sum()


def _filled(values: np.ndarray, lengths: np.ndarray, budget: float, members) -> np.ndarray:
    """Mean of `values` ``(n, ...)`` over all W tokens, the ones left over at the pool's mean."""
    average = np.tensordot(_average(lengths, budget), values, 1)
    members = list(members)
    spent = np.tensordot(lengths[members], values[members], 1)
    return (spent + (budget - lengths[members].sum()) * average) / budget


def quality(q: np.ndarray, lengths: np.ndarray, budget: float, members) -> float:
    return float(_filled(q, lengths, budget, members))


def pairwise(x: np.ndarray, lengths: np.ndarray, budget: float, members) -> float:
    """Minus the mean cosine over pairs of tokens, those with their own sample left out of the sum and of its scale."""
    total = _filled(x, lengths, budget, members)
    own = float(_filled(lengths, lengths, budget, members)) / budget
    return -float((total @ total - own) / (1 - _average(lengths, budget) @ lengths / budget))


def disf_fixed(x: np.ndarray, lengths: np.ndarray, budget: float, members) -> float:
    d = x.shape[1]
    sd = x.std(axis=0)
    alive = sd > 1e-4 * np.median(sd)
    y = np.where(alive, (x - x.mean(axis=0)) / np.where(alive, sd, 1.0), 0.0)
    moment = _filled(np.einsum("na,nb->nab", y, y), lengths, budget, members)
    np.fill_diagonal(moment, 0.0)
    return -float((moment**2).sum() / (d * (d - 1)))


def vendi(x: np.ndarray, lengths: np.ndarray, budget: float, members) -> float:
    """Entropy of the tokens' spectrum; what is left over adds what the average token does where all are average."""
    members = list(members)
    shares = lengths[members] / budget

    def extended(weights: np.ndarray, rows: np.ndarray) -> float:
        values = np.linalg.eigvalsh((rows * weights[:, None]).T @ rows)
        values = values[values > 1e-14]
        return float((values - values * np.log(values)).sum()) - 1.0

    return extended(shares, x[members]) + (1 - shares.sum()) * extended(_average(lengths, budget), x)


def _by_rows(objective):
    return lambda x, lengths, budget, members: objective(x, members)


OBJECTIVES = {
    "pairwise": pairwise,
    "disf_fixed": disf_fixed,
    "facility": _by_rows(truth.facility),
    "disf": _by_rows(truth.disf),
    "vendi": vendi,
}
