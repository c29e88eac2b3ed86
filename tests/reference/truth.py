"""The set functions once more, in float64 numpy, straight from their definitions: slow, short, and independent."""

from __future__ import annotations

import itertools

import numpy as np


def unit_rows(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """n random directions with a common component, so that cosines are not all small."""
    x = rng.normal(size=(n, d)) + 0.5
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def pairwise(x: np.ndarray, members) -> float:
    """Minus the mean cosine over pairs."""
    pairs = list(itertools.combinations(list(members), 2))
    return -float(np.mean([x[a] @ x[b] for a, b in pairs])) if pairs else 0.0


def facility(x: np.ndarray, members) -> float:
    """Mean over the pool of the similarity to the nearest member, at least 0."""
    return float(np.maximum(0.0, (x @ x[list(members)].T).max(axis=1)).mean())


def disf(x: np.ndarray, members) -> float:
    """Minus the mean squared correlation over ordered pairs of dimensions; dead and flat ones count as 0."""
    d = x.shape[1]
    sd = x.std(axis=0)
    alive = sd > 1e-4 * np.median(sd)
    u = x[list(members)]
    spread = u.std(axis=0)
    live = alive & (spread > 1e-5 * np.where(alive, sd, 1.0))
    c = np.zeros((d, d))
    if live.sum() > 1:
        c[np.ix_(live, live)] = np.corrcoef(u[:, live], rowvar=False)
    np.fill_diagonal(c, 0.0)
    return -float((c**2).sum() / (d * (d - 1)))


def disf_fixed(x: np.ndarray, members) -> float:
    """Minus the mean squared second moment over ordered pairs of dimensions, standardised on the pool."""
    d = x.shape[1]
    sd = x.std(axis=0)
    alive = sd > 1e-4 * np.median(sd)
    y = np.where(alive, (x - x.mean(axis=0)) / np.where(alive, sd, 1.0), 0.0)[list(members)]
    moment = y.T @ y / len(y)
    np.fill_diagonal(moment, 0.0)
    return -float((moment**2).sum() / (d * (d - 1)))


def vendi(x: np.ndarray, members) -> float:
    """Entropy of the eigenvalues of the members' cosines over S: the logarithm of the package's Vendi score."""
    u = x[list(members)]
    shares = np.linalg.eigvalsh(u @ u.T / len(u))
    shares = shares[shares > 1e-14]
    return -float((shares * np.log(shares)).sum())


OBJECTIVES = {
    "disf_fixed": disf_fixed,
    "pairwise": pairwise,
    "facility": facility,
    "disf": disf,
    "vendi": vendi,
}


def plackett_luce(logits: np.ndarray, size: int) -> dict[tuple[int, ...], float]:
    """P(mask) for every mask of `size`: the sum over orders of the product of successive softmax draws."""
    weights = np.exp(logits - logits.max())
    law: dict[tuple[int, ...], float] = {}
    for order in itertools.permutations(range(len(logits)), size):
        p, left = 1.0, weights.sum()
        for i in order:
            p *= weights[i] / left
            left -= weights[i]
        key = tuple(sorted(order))
        law[key] = law.get(key, 0.0) + p
    return law


def gradient(logits: np.ndarray, size: int, f: dict[tuple[int, ...], float], h: float = 1e-5) -> np.ndarray:
    """Central finite differences of E f under Plackett-Luce, in the logits."""
    out = np.zeros(len(logits))
    for i in range(len(logits)):
        step = np.zeros(len(logits))
        step[i] = h
        up, down = plackett_luce(logits + step, size), plackett_luce(logits - step, size)
        out[i] = sum(f[m] * (up[m] - down[m]) for m in f) / (2 * h)
    return out


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine of two vectors after centring: a constant added to all logits changes nothing."""
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
