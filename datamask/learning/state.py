"""A learner's running state, which a checkpoint writes down, and what one step tells its watchers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from datamask.learning.problem import Problem
from datamask.objectives.joint import Values


@dataclass(frozen=True)
class State:
    """Where a learner stands; everything a checkpoint needs.

    Attributes:
        logits: float32 ``(m,)`` over the eligible rows.
        step: steps done.
        rng: state of the generator, uint8; empty where nothing is drawn.
        subset: bool ``(n,)``, the readout at the last evaluation; None before the first.
        best: bool ``(n,)``, the best evaluated readout; best_joint: its value.
        quiet: evaluations in a row that left the readout as it was, or nearly.
    """

    logits: Tensor
    step: int
    rng: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.uint8))
    subset: Tensor | None = None
    best: Tensor | None = None
    best_joint: float = float("-inf")
    quiet: int = 0

    def arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The state as named arrays and plain values."""
        named = {"logits": self.logits, "rng": self.rng, "subset": self.subset, "best": self.best}
        return (
            {name: t.cpu().numpy() for name, t in named.items() if t is not None},
            {"step": self.step, "best_joint": self.best_joint, "quiet": self.quiet},
        )

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], values: dict[str, Any], device: torch.device) -> State:
        """The inverse of `arrays`.

        Raises:
            ValueError: an array is missing, or none of a state.
        """
        missing, unknown = {"logits", "rng"} - set(arrays), set(arrays) - {"logits", "rng", "subset", "best"}
        if missing or unknown:
            raise ValueError(
                f"it must hold logits and rng, and subset and best once there are any; it holds "
                f"{', '.join(sorted(arrays)) or 'nothing'}"
            )

        tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
        masks = {name: tensors[name].to(device) for name in ("subset", "best") if name in tensors}
        return cls(
            tensors["logits"].to(device),
            int(values["step"]),
            tensors["rng"],
            masks.get("subset"),
            masks.get("best"),
            # JSON has no -inf: a checkpoint from before the first evaluation says null
            float("-inf" if values["best_joint"] is None else values["best_joint"]),
            int(values["quiet"]),
        )


def check_state(
    state: State, problem: Problem, *, logits: tuple[int, ...], kinds: tuple[torch.dtype, ...], rng: int, steps: int
) -> None:
    """Refuse a state that none of a learner's steps can have left; what of a learner's own it holds, `check` looks at.

    Args:
        logits: the shape they have; kinds: the types they may have.
        rng: bytes of the generator's state.
        steps: the most there are.

    Raises:
        ValueError: a sentence that names the array or number, what was expected and what came.
    """
    n = problem.joint.n
    arrays = {
        "logits": (state.logits, logits, kinds),
        "rng": (state.rng, (rng,), (torch.uint8,)),
        "subset": (state.subset, (n,), (torch.bool,)),
        "best": (state.best, (n,), (torch.bool,)),
    }
    for name, (array, shape, allowed) in arrays.items():
        if array is not None and (tuple(array.shape) != shape or array.dtype not in allowed):
            raise ValueError(f"{name} must be {allowed[0]} {shape}, got {array.dtype} {tuple(array.shape)}")
    if not 0 <= state.step <= steps:
        raise ValueError(f"step must be from 0 to {steps:,}, got {state.step:,}")
    if len({state.best is None, state.subset is None, math.isinf(state.best_joint)}) > 1:
        raise ValueError("subset, best and its value must come together, and some of them are missing")
    for name, mask in (("subset", state.subset), ("best", state.best)):
        if mask is not None and not (bool(mask[problem.eligible].sum() == mask.sum()) and problem.allowed(mask)):
            raise ValueError(f"{name} must be a selection that this run may make, got one of {int(mask.sum()):,} rows")


def check_finite(values: Tensor) -> None:
    """Raises:
    ValueError: not all of these logits are finite numbers.
    """
    if not bool(torch.isfinite(values).all()):
        raise ValueError("logits must be finite numbers, and some are not")


@dataclass(frozen=True)
class StepRecord:
    """What one step tells its watchers; keys as in metrics.jsonl. `values` are set on evaluation steps."""

    step: int
    metrics: dict[str, float] = field(default_factory=dict)
    values: Values | None = None
