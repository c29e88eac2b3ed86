"""What each objective sees: one planted toy, and what every objective selects from it. Computed, not drawn by hand.

A thousand points in the plane, in four groups: a crowd in the middle, families of near-copies around it, a niche of
good samples to one side, outliers of low quality at the rim. Nearness in the plane becomes cosine similarity by random
Fourier features of a Gaussian kernel (Rahimi and Recht 2007), so the picture shows what the objectives are given.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from datamask import learning
from datamask.config import SelectionConfig
from datamask.corpus.corpus import ColumnNames, Corpus, Provenance
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.learning.loop import learn
from datamask.objectives.contract import Poll, no_poll

GROUPS = ("crowd", "copies", "niche", "outliers")
FAMILIES, FAMILY = 28, 7
SIZES = (640, FAMILIES * FAMILY, 90, 24)
OBJECTIVES = ("facility", "pairwise", "disf", "graphcut")
RATIO, LAMBDA = 0.15, 0.5
WIDTH = 0.5
"""Standard deviation of the kernel, in the units of the plane: cosine 0.14 at twice this distance."""

DIM = 128


@dataclass(frozen=True)
class Toy:
    """The toy and what was selected from it.

    Attributes:
        points: float32 ``(n, 2)``; group: int8 ``(n,)``, place in `GROUPS`; quality: float64 ``(n,)``.
        masks: by objective, bool ``(n,)``.
    """

    points: np.ndarray
    group: np.ndarray
    quality: np.ndarray
    masks: dict[str, np.ndarray]

    def shares(self) -> dict[str, dict[str, float]]:
        """By objective and group, the share of the group that was selected."""
        return {
            name: {label: float(mask[self.group == place].mean()) for place, label in enumerate(GROUPS)}
            for name, mask in self.masks.items()
        }

    def families(self, objective: str) -> int:
        """Of how many families of copies at least one member was selected."""
        family = (np.arange(len(self.group)) - SIZES[0]) // FAMILY
        return len(set(family[self.masks[objective] & (self.group == 1)].tolist()))


def planted(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points ``(n, 2)``, group ``(n,)``, quality ``(n,)`` and features ``(n, DIM)``, always the same for a seed."""
    random = np.random.default_rng(seed)
    crowd = random.normal(size=(SIZES[0], 2)) * [0.8, 0.65]
    angle = np.arange(FAMILIES) * 2 * np.pi / FAMILIES + 0.1
    reach = np.where(np.arange(FAMILIES) % 2 == 0, 1.0, 1.3)
    centres = np.stack([2.9 * reach * np.cos(angle), 2.2 * reach * np.sin(angle)], 1)
    copies = np.repeat(centres, FAMILY, axis=0) + 0.035 * random.normal(size=(SIZES[1], 2))
    niche = np.array([5.2, 0.2]) + 0.3 * random.normal(size=(SIZES[2], 2))
    angle = random.uniform(0, 2 * np.pi, SIZES[3])
    outliers = np.stack([5.6 * np.cos(angle), 3.9 * np.sin(angle)], 1) + 0.3 * random.normal(size=(SIZES[3], 2))
    points = np.concatenate([crowd, copies, niche, outliers])
    group = np.repeat(np.arange(len(GROUPS), dtype=np.int8), SIZES)
    middle, spread = np.array([0.0, 0.3, 1.5, -1.0]), np.array([1.0, 0.3, 0.4, 0.4])
    quality = middle[group] + spread[group] * random.normal(size=len(group))
    phase = points @ random.normal(size=(2, DIM // 2)) / WIDTH
    features = np.concatenate([np.cos(phase), np.sin(phase)], 1) / np.sqrt(DIM // 2)
    return points.astype(np.float32), group, quality, np.ascontiguousarray(features, np.float32)


def solve(cache_dir: Path, poll: Poll = no_poll) -> Toy:
    """Select from the toy with every objective of the picture, by the default learner.

    Args:
        cache_dir: for the toy's neighbour graph and anchors. Raises: Stopped: from `poll`.
    """
    points, group, quality, features = planted()
    n = len(points)
    print_ = hashlib.sha256(features.tobytes() + quality.tobytes()).hexdigest()
    columns: ColumnNames = {"id": "id", "feature": "features", "quality": ["quality"], "length": None, "text": None}
    corpus = Corpus(
        pa.array(np.arange(n)),
        quality,
        features,
        None,
        pa.table({"group": pa.array(group)}),
        np.zeros(n, np.int32),
        np.arange(n),
        print_,
        Provenance(("toy",), n, n, columns),
    )
    pool = Pool(corpus, torch.device("cpu"), cache_dir, poll=poll)
    masks = {}
    for name in OBJECTIVES:
        config = SelectionConfig.from_options(objective=name, lamb=LAMBDA, select_ratio=RATIO)
        estimator = learning.load(config.estimator)(pose(pool, config, poll).problem, config)
        masks[name] = learn(estimator, poll=poll).mask.cpu().numpy()
    return Toy(points, group, quality, masks)
