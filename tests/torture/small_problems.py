"""Small problems whose every selection can be valued: how they are made, and the truth about them in float64 numpy.

Nothing here asks the code under test for a value; the definitions are those of `tests.reference`.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.reference import budgets, truth

OBJECTIVES = ("pairwise", "facility", "disf", "disf_fixed", "vendi")
KIND = "kind"
"""The metadata column that quotas are on."""


@dataclass(frozen=True)
class Small:
    """One problem.

    Attributes:
        features: ``(n, d)``, as written to the file: float32.
        quality, lengths: float64 ``(n,)``.
        kind: class of each row, for quotas. options: of `datamask.select`, files of ids aside.
        pinned, banned, given: rows. budget: tokens, None: S rows.
        flavour: what is special about the features or qualities.
    """

    features: np.ndarray
    quality: np.ndarray
    lengths: np.ndarray
    kind: np.ndarray
    options: dict
    flavour: str
    size: int
    pinned: tuple[int, ...] = ()
    banned: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    quotas: tuple[tuple[str, float, float], ...] = ()
    budget: float | None = None
    extra: dict = field(default_factory=dict)

    @property
    def n(self) -> int:
        return len(self.features)

    def __str__(self) -> str:
        rules = [
            f"{name} {len(rows)}"
            for name, rows in (("pin", self.pinned), ("ban", self.banned), ("given", self.given))
            if rows
        ]
        rules += [f"quota {value} {low:g} to {high:g}" for value, low, high in self.quotas]
        rules += [f"budget {self.budget:g}"] if self.budget is not None else []
        asked = " ".join(f"{name}={value}" for name, value in self.options.items())
        shape = f"{self.size} of {self.n} x {self.features.shape[1]}"
        return f"{asked}, {shape}, {self.flavour}, {', '.join(rules) or 'free'}"

    def written(self, folder: Path) -> tuple[Path, dict]:
        """The shard, and the options that name files of ids, all in this folder."""
        shard, ids = folder / "rows.parquet", [f"i{row}" for row in range(self.n)]
        pq.write_table(
            pa.table(
                {
                    "chunk_id": ids,
                    "quality_score": self.quality,
                    "tokens": self.lengths,
                    KIND: self.kind.tolist(),
                    "feature_arr": pa.array(self.features.tolist(), pa.list_(pa.float32())),
                }
            ),
            shard,
        )
        named = dict(self.options)
        for option, rows in (("pin", self.pinned), ("ban", self.banned), ("given", self.given)):
            if rows:
                path = folder / f"{option}.txt"
                path.write_text("".join(f"i{row}\n" for row in rows), encoding="utf-8")
                named[option] = str(path)
        return shard, named

    def allowed(self) -> list[np.ndarray]:
        """Every selection that the rules allow, the given rows among its members."""
        fixed = set(self.given) | set(self.pinned)
        open_rows = [row for row in range(self.n) if row not in self.banned]
        if self.budget is None:
            sizes = [self.size + len(self.given)]
        else:
            sizes = range(1, len(open_rows) + 1)
        found = []
        for size in sizes:
            for rows in itertools.combinations(open_rows, size):
                if fixed <= set(rows) and self._obeys(np.array(rows)):
                    found.append(np.array(rows))
        return found

    def _obeys(self, rows: np.ndarray) -> bool:
        if self.budget is not None:
            return self.fills(rows)
        new = np.setdiff1d(rows, self.given)
        counts = {value: int((self.kind[new] == value).sum()) for value, _, _ in self.quotas}
        return all(
            np.ceil(low * self.size - 1e-9) <= counts[value] <= np.floor(high * self.size + 1e-9)
            for value, low, high in self.quotas
        )

    def fills(self, rows: np.ndarray) -> bool:
        """Whether rows, the given ones among them, fill the budget: at most its tokens, and short of it by no more than
        the longest row that may be taken beside what must be in."""
        had = self.lengths[list(self.given)].sum()
        fixed = list(set(self.given) | set(self.pinned))
        most = self.budget + had
        may = [
            row
            for row in range(self.n)
            if row not in self.banned and row not in fixed and self.lengths[row] <= most - self.lengths[fixed].sum()
        ]
        spent = self.lengths[rows].sum()
        return most - max(self.lengths[may], default=0.0) - 1e-9 <= spent <= most + 1e-9 and all(
            row in may or row in fixed for row in rows
        )

    def spent_tokens(self) -> float | None:
        """The tokens that values are taken over: of the budget and of the given rows."""
        return None if self.budget is None else self.budget + float(self.lengths[list(self.given)].sum())


def value_of(name: str, x: np.ndarray, lengths: np.ndarray, budget: float | None, members) -> float:
    """An objective from its definition; one dimension has no pairs of dimensions, and one row no pairs of rows."""
    if name.startswith("disf") and x.shape[1] < 2:
        return 0.0
    if budget is not None and name in ("pairwise", "disf_fixed", "vendi"):
        if name == "pairwise" and budgets._average(lengths, budget) @ lengths / budget > 1 - 1e-9:
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return budgets.OBJECTIVES[name](x, lengths, budget, members)
    with np.errstate(divide="ignore", invalid="ignore"):
        return truth.OBJECTIVES[name](x, members)


def quality_of(small: Small, members: np.ndarray) -> float:
    """Mean quality of the members; under a budget of its tokens."""
    spent = small.spent_tokens()
    if spent is None:
        return float(small.quality[members].mean())
    return budgets.quality(small.quality, small.lengths, spent, members)


# -- the 200 problems on which optima were counted -------------------------------------------------------------------

COUNTED = 200
FLAVOURS = ("plain", "copies", "offset", "dead", "constq", "bigq", "negq", "tie")


@functools.lru_cache(maxsize=1)
def counted_problems() -> tuple[Small, ...]:
    """They follow one another from one seed, so that they stay those that were counted; without an objective."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(COUNTED):
        n, d = int(rng.integers(4, 13)), int(rng.integers(1, 7))
        size = int(rng.integers(1, n))
        flavour = str(rng.choice(FLAVOURS))
        features = rng.normal(size=(n, d)) + (30.0 if flavour == "offset" else 0.5)
        if flavour == "copies":
            features = features[rng.integers(0, max(1, n // 2), n)]
        elif flavour == "dead" and d > 1:
            features[:, 0] = 0.0
        elif flavour == "tie":
            features = np.sign(features)
        quality = rng.normal(size=n)
        if flavour == "constq":
            quality[:] = 1.0
        elif flavour == "bigq":
            quality = 1e30 * (1 + quality / 10)
        elif flavour == "negq":
            quality = -np.abs(quality) - 5
        lamb, scale = float(rng.choice([0, 0.3, 0.5, 0.9, 1.0])), str(rng.choice(["calibrated", "raw"]))
        made.append(
            Small(
                features.astype(np.float32),
                quality,
                np.ones(n),
                np.repeat("a", n),
                {"lamb": lamb, "scale": scale, "select_ratio": size / n},
                flavour,
                size,
            )
        )
    return tuple(made)


# -- problems of every kind -----------------------------------------------------------------------------------------

SHAPES = ("plain", "copies", "offset", "near", "nearer", "dead", "tie", "opposite", "orthogonal", "one point")
QUALITIES = ("normal", "normal", "normal", "constant", "huge", "tiny", "negative", "ties", "outlier")
SUMS = (
    "pairwise:0.5,facility:0.5",
    "pairwise:0.7,disf_fixed:0.3",
    "facility:0.6,disf:0.4",
    "disf:0.5,facility:0.3,pairwise:0.2",
    "disf_fixed:0.5,facility:0.5",
    "vendi:0.6,pairwise:0.4",
    "vendi:0.5,facility:0.5",
)
ESTIMATORS = ("counterfactual", "relaxed", "greedy", "reinforce", "semdedup", "top-quality", "random")
RULES = ("free", "free", "pins", "bans", "quotas", "given", "pins and bans", "budget")
CONCAVE = ("pairwise", "disf_fixed", "vendi", "pairwise:0.7,disf_fixed:0.3", "vendi:0.6,pairwise:0.4")
PICKED = ("facility", "pairwise", "disf")
SPENDS = ("counterfactual", "relaxed", "random", "top-quality")
RELATED = {"random": "soft-quality", "top-quality": "soft-quality", "semdedup": "cluster-balanced"}
"""Every second problem of the first is one of the other."""


def drawn_problem(number: int) -> Small:
    """Problem `number`, from its number alone."""
    rng = np.random.default_rng([7, number])
    n, d = int(rng.integers(3, 13)), int(rng.integers(1, 7))
    shape, qualities = str(rng.choice(SHAPES)), str(rng.choice(QUALITIES))
    features = _features(rng, shape, n, d)
    quality = _quality(rng, qualities, n)
    rule = str(rng.choice(RULES))
    estimator = str(rng.choice(ESTIMATORS, p=[0.25, 0.2, 0.2, 0.1, 0.07, 0.09, 0.09]))
    if rule == "budget" and estimator not in SPENDS:
        estimator = str(rng.choice(SPENDS))
    objective = str(rng.choice([*OBJECTIVES, *SUMS]))
    if estimator == "relaxed" and objective not in CONCAVE and objective != "facility":
        objective = str(rng.choice([*CONCAVE, "facility"]))
    if estimator == "greedy" and objective not in PICKED:
        objective = str(rng.choice(PICKED))
    if number % 2:
        estimator = RELATED.get(estimator, estimator)
    # the ends of the range of S as often as all between
    size = int(rng.choice([1, n - 1, rng.integers(1, n), rng.integers(1, n)]))
    options = {
        "objective": objective,
        "estimator": estimator,
        "lamb": float(rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])),
        "scale": str(rng.choice(["calibrated", "raw"])),
        "seed": int(rng.integers(0, 5)),
    }
    if estimator == "reinforce":
        options |= {"n_epochs": 20, "n_rollout": 8}
        if rule not in ("free", "bans"):
            options["partial"] = 1.0
    lengths = rng.integers(1, 40, n).astype(float)
    kind = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    order = rng.permutation(n)
    limits: dict = {}
    if rule == "budget":
        limits["budget"] = float(np.floor(lengths.sum() * rng.uniform(0.2, 0.8)))
        options["budget"] = limits["budget"]
        if n > 4 and rng.random() < 0.4:
            limits["given"] = (int(order[0]),)
    else:
        if rule == "given":
            limits["given"] = tuple(map(int, order[: int(rng.integers(1, max(2, n - size)))]))
        if rule in ("pins", "pins and bans"):
            limits["pinned"] = tuple(map(int, order[: int(rng.integers(1, size + 1))]))
        if rule in ("bans", "pins and bans"):
            limits["banned"] = tuple(map(int, order[::-1][: int(rng.integers(1, max(2, n - size)))]))
        if rule == "quotas":
            limits["quotas"] = (
                ("a", 0.0, float(rng.choice([0.25, 0.5, 0.8]))),
                ("b", float(rng.choice([0.0, 0.2, 0.4])), 1.0),
            )
            options["quotas"] = limits["quotas"]
        options["select_ratio"] = size / n
    return Small(
        features.astype(np.float32), quality, lengths, kind, options, f"{shape}, {qualities} qualities", size, **limits
    )


def _features(rng: np.random.Generator, shape: str, n: int, d: int) -> np.ndarray:
    features = rng.normal(size=(n, d)) + 0.5
    if shape == "copies":
        return features[rng.integers(0, max(1, n // 2), n)]
    if shape == "one point":
        return np.repeat(features[:1], n, axis=0)
    if shape in ("offset", "near", "nearer"):
        return rng.normal(size=(n, d)) + {"offset": 30.0, "near": 1e3, "nearer": 1e4}[shape]
    if shape == "dead" and d > 1:
        features[:, 0] = 0.0
    elif shape == "tie":
        features = np.sign(features)
    elif shape == "opposite":
        features = features[0] * np.where(rng.random(n) < 0.5, 1.0, -1.0)[:, None]
    elif shape == "orthogonal":
        features = np.eye(max(n, d))[:n]
    return features


def _quality(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    quality = rng.normal(size=n)
    return {
        "constant": np.ones(n),
        "huge": 1e30 * quality,
        "tiny": 1e-30 * quality,
        "negative": -np.abs(quality) - 3,
        "ties": np.round(quality),
        "outlier": np.r_[1e12, quality[1:]],
    }.get(kind, quality)
