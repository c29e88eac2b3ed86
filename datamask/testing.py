"""The contract of an objective as checks that run in a second: for one's own objective before a corpus is spent on it.

`check_objective` binds the class to small random problems and holds what it gives against what its own exact `value`
says: a wrong marginal or a batch of the wrong rows shows here and not as a disappointing selection. The command
``python -m datamask check-objective mypackage.mymodule:MyObjective`` prints the same, one line per check. Whether
`value` is what its author had in mind only its author can say.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask.errors import Stopped
from datamask.objectives.contract import SetFunction
from datamask.objectives.facility import exact_lists

N, D, S, G = 60, 5, 21, 4
"""Rows, dimensions, members and masks of the small problem."""

SWAPS_N, SWAPS_S, SWAPS = 400, 200, 60
"""Rows and members of the problem on which marginals are compared with swaps, and how many swaps."""

SWAP_CORRELATION = 0.98
"""What a learner can work with: below it, many of the swaps that marginals promise make things worse."""


@dataclass(frozen=True)
class Check:
    """One check's outcome.

    Attributes:
        name: of the check. says: what it asks for.
        failure: what was expected and what came; empty where the check holds.
    """

    name: str
    says: str
    failure: str = ""

    @property
    def passed(self) -> bool:
        """Whether the objective keeps this part of the contract."""
        return not self.failure

    def __str__(self) -> str:
        return f"{'ok    ' if self.passed else 'FAILED'} {self.name}: {self.failure or self.says}"


class Bench:
    """An objective's class on small random problems with a fixed seed.

    Attributes:
        function: bound to `features` ``(N, D)``. masks: bool ``(G, N)``, S members each.
    """

    def __init__(self, objective: type[SetFunction], seed: int = 0) -> None:
        self.objective, self.rng = objective, np.random.default_rng(seed)
        self.features = self.rows(N, D)
        self.function = self.bind(self.features)
        self.masks = torch.stack([self.mask(N, S) for _ in range(G)])

    def rows(self, n: int, d: int) -> Tensor:
        """n random directions with a common component, float32 ``(n, d)``."""
        x = self.rng.normal(size=(n, d)) + 0.5
        return torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True)).float()

    def mask(self, n: int, size: int) -> Tensor:
        """A uniformly random subset, bool ``(n,)``."""
        mask = torch.zeros(n, dtype=torch.bool)
        mask[torch.from_numpy(self.rng.choice(n, size=size, replace=False))] = True
        return mask

    def bind(self, features: Tensor) -> SetFunction:
        """The objective on a pool, with whole neighbour lists where it wants lists."""
        lists = exact_lists(features, len(features)) if self.objective.needs_neighbors else None
        return self.objective.bind(features, lists)


def _differs(what: str, came: float | Tensor, expected: float | Tensor, rel: float, absolute: float = 1e-7) -> str:
    """The sentence on the entry that misses by most; empty where all are near enough."""
    came, expected = (torch.as_tensor(part, dtype=torch.float64).reshape(-1) for part in (came, expected))
    if came.shape != expected.shape:
        return f"{what} must have {len(expected)} entries, got {len(came)}"
    missed = (came - expected).abs() - (rel * expected.abs() + absolute)
    missed = torch.where(came.isfinite(), missed, torch.inf)
    worst = int(missed.argmax())
    if not float(missed[worst]) > 0:
        return ""
    where = f" of row {worst}" if len(came) > 1 else ""
    return f"{what}{where} expected {float(expected[worst]):.8g}, got {float(came[worst]):.8g}"


def value(bench: Bench) -> str:
    """value is one finite number, the same every time, and leaves mask and features as they are."""
    features, mask = bench.features.clone(), bench.masks[0].clone()
    first, second = bench.function.value(bench.masks[0]), bench.function.value(bench.masks[0])
    if not isinstance(first, float):
        return f"value must be a float, got {type(first).__name__}"
    if not np.isfinite(first):
        return f"value must be finite, got {first}"
    if not torch.equal(features, bench.features) or not torch.equal(mask, bench.masks[0]):
        return "value changed the features or the mask it was given; work on copies"
    return _differs("a second call of value", second, first, 1e-12, 0.0)


def values(bench: Bench) -> str:
    """values of several masks are the value of each."""
    batched = bench.function.values(bench.masks)
    return _differs("values", batched, torch.tensor([bench.function.value(mask) for mask in bench.masks]), 1e-4)


def order(bench: Bench) -> str:
    """value and marginals do not depend on the order of the rows."""
    shuffled = torch.from_numpy(bench.rng.permutation(N))
    other = bench.bind(bench.features[shuffled])
    failure = _differs(
        "value after shuffling the pool",
        other.value(bench.masks[0][shuffled]),
        bench.function.value(bench.masks[0]),
        1e-5,
    )
    return failure or _differs(
        "marginals after shuffling the pool",
        other.marginals(bench.masks[:1, shuffled]),
        bench.function.marginals(bench.masks[:1])[shuffled],
        1e-3,
        1e-6,
    )


def gains(bench: Bench) -> str:
    """gains are the exact differences of value when one row comes in or goes out."""
    mask = bench.masks[0]
    value_at_mask = bench.function.value(mask)
    expected = torch.zeros(N, dtype=torch.float64)
    for row in range(N):
        other = mask.clone()
        other[row] = ~other[row]
        change = bench.function.value(other) - value_at_mask
        expected[row] = -change if mask[row] else change
    return _differs("gains", bench.function.gains(mask), expected, 2e-4, 2e-7)


def marginals(bench: Bench) -> str:
    """marginals of several masks are the mean of each mask's own."""
    alone = torch.stack([bench.function.marginals(mask[None]) for mask in bench.masks])
    return _differs("marginals", bench.function.marginals(bench.masks), alone.mean(0), 1e-3, 1e-6)


def both(bench: Bench) -> str:
    """values_and_marginals gives what values and marginals give."""
    step_values, credit = bench.function.values_and_marginals(bench.masks)
    return _differs(
        "values of values_and_marginals", step_values, bench.function.values(bench.masks), 1e-4
    ) or _differs("marginals of values_and_marginals", credit, bench.function.marginals(bench.masks), 1e-3, 1e-6)


def final_marginals(bench: Bench) -> str:
    """final_marginals are the steps' marginals, when lists are whole."""
    reported = bench.function.final_marginals(bench.masks[0])
    if reported.dtype != torch.float64:
        return f"final_marginals must be float64, got {reported.dtype}"
    return _differs("final_marginals", reported, bench.function.marginals(bench.masks[:1]), 1e-3, 1e-6)


def swaps(bench: Bench) -> str:
    """what marginals promise of a swap is what the swap does, up to first order."""
    function, mask = bench.bind(bench.rows(SWAPS_N, D - 1)), bench.mask(SWAPS_N, SWAPS_S)
    credit, value_at_mask = function.marginals(mask[None]).double(), function.value(mask)
    inside, outside = (part.nonzero().squeeze(1).numpy() for part in (mask, ~mask))
    promised, done = [], []
    for _ in range(SWAPS):
        j, i = bench.rng.choice(inside), bench.rng.choice(outside)
        other = mask.clone()
        other[j], other[i] = False, True
        promised.append(float(credit[i] - credit[j]))
        done.append(function.value(other) - value_at_mask)
    if np.std(done) == 0:  # a constant objective: nothing to promise
        return "" if np.std(promised) == 0 else "marginals differ, but no swap changes value"
    correlation = np.corrcoef(promised, done)[0, 1] if np.std(promised) else 0.0
    if correlation >= SWAP_CORRELATION:
        return ""
    return (
        f"marginals must foretell swaps: expected a correlation of at least {SWAP_CORRELATION}, got {correlation:.3f}"
    )


def batch(bench: Bench) -> str:
    """a batch is the objective on its rows alone: of their number, and with values of its own."""
    rows = torch.from_numpy(np.sort(bench.rng.choice(N, size=30, replace=False)))
    part, masks = bench.function.batch(rows, 12), torch.stack([bench.mask(30, 12) for _ in range(G)])
    if part.n != 30:
        return f"a batch of 30 rows must have n = 30, got {part.n}"
    batch_values = part.values(masks)
    if tuple(part.marginals(masks).shape) != (30,):
        return f"marginals of a batch of 30 rows must have shape (30,), got {tuple(part.marginals(masks).shape)}"
    return _differs("values of a batch", batch_values, torch.tensor([part.value(mask) for mask in masks]), 1e-4)


def random_value(bench: Bench) -> str:
    """random_value is the mean value of random subsets."""
    draws = [bench.function.value(bench.mask(N, S)) for _ in range(400)]
    stated = bench.function.random_value(S, torch.Generator().manual_seed(0))
    # an own mean of 32 draws is allowed: four standard errors of the two together
    error = 4 * float(np.std(draws)) * (1 / 32 + 1 / 400) ** 0.5
    return _differs("random_value", stated, float(np.mean(draws)), 1e-6, error)


def concave(bench: Bench) -> str:
    """concave, where there is one, equals value on masks, has its gradient, and never lies below another mask."""
    at_mask = bench.masks[0].double()
    value_and_gradient = bench.function.concave(at_mask, S)
    if value_and_gradient is None:
        return ""
    value_at_mask, gradient = value_and_gradient
    failure = _differs("concave at a mask", value_at_mask, bench.function.value(bench.masks[0]), 1e-6)
    for mask in bench.masks[1:]:
        promised = value_at_mask + float(gradient @ (mask.double() - at_mask))
        if not failure and bench.function.value(mask) > promised + 1e-7:
            failure = (
                f"concave must over-promise every mask, expected at least {bench.function.value(mask):.8g} "
                f"along its gradient, got {promised:.8g}"
            )
    step = 1e-4 * torch.from_numpy(bench.rng.normal(size=N))
    ahead, behind = (bench.function.concave(at_mask + sign * step, S) for sign in (1, -1))
    if ahead is None or behind is None:
        return failure or "concave must have a value at all inclusion weights, got None beside a mask that has one"
    return (
        failure
        or _differs(
            "the slope of concave along its gradient", float(gradient @ step), (ahead[0] - behind[0]) / 2, 1e-3, 1e-9
        )
        or ("" if not bench.function.quadratic else _bent_evenly(bench, at_mask, value_at_mask, gradient))
    )


def _bent_evenly(bench: Bench, start: Tensor, value_there: float, gradient: Tensor) -> str:
    """A quadratic concave is, a third of the way to another mask, what its ends and its gradient say."""
    function, end, share = bench.function, bench.masks[1].double(), 0.3
    expected, last = function.concave(torch.lerp(start, end, share), S), function.concave(end, S)
    if expected is None or last is None:
        return "concave must have a value at all inclusion weights, got None between two masks"
    slope = float(gradient @ (end - start))
    told = value_there + share * slope + share * share * (last[0] - value_there - slope)
    must = "concave must be quadratic in the weights, or `quadratic` be False; as a quadratic it"
    return _differs(must, told, expected[0], 1e-4)


def interaction(bench: Bench) -> str:
    """interaction, where there is one, makes the promise of a swap exact."""
    mask = bench.masks[0]
    inside, outside = mask.nonzero().squeeze(1)[:4], (~mask).nonzero().squeeze(1)[:4]
    second = bench.function.interaction(inside, outside, S)
    if second is None:
        return ""
    credit, value_at_mask = bench.function.final_marginals(mask), bench.function.value(mask)
    promised = credit[outside][:, None] - credit[inside][None, :] + second.double()
    expected = torch.zeros_like(promised)
    for row, i in enumerate(outside):
        for column, j in enumerate(inside):
            other = mask.clone()
            other[j], other[i] = False, True
            expected[row, column] = bench.function.value(other) - value_at_mask
    return _differs("final_marginals and interaction of a swap", promised, expected, 1e-3, 1e-6)


def missed(bench: Bench) -> str:
    """missed is a share from 0 to 1."""
    share = bench.function.missed(bench.masks[0])
    return "" if 0 <= share <= 1 else f"missed must be from 0 to 1, got {share}"


def polls(bench: Bench) -> str:
    """values, marginals, value and gains call poll, so that a run can be stopped."""

    def stop() -> None:
        raise Stopped("now")

    function, mask = bench.function, bench.masks[0]
    for name, call in (
        ("values", lambda: function.values(bench.masks, stop)),
        ("marginals", lambda: function.marginals(bench.masks, stop)),
        ("value", lambda: function.value(mask, stop)),
        ("gains", lambda: function.gains(mask, stop)),
    ):
        try:
            call()
        except Stopped:
            continue
        return f"{name} must call poll at least once, and every 0.3 s of work; it never did"
    return ""


CHECKS: tuple[Callable[[Bench], str], ...] = (
    value,
    values,
    order,
    gains,
    marginals,
    both,
    final_marginals,
    swaps,
    batch,
    random_value,
    concave,
    interaction,
    missed,
    polls,
)
"""Every check: from a bench to a sentence on what failed, or to nothing."""


def check_objective(objective: type[SetFunction] | str, seed: int = 0) -> list[Check]:
    """Run every check on an objective.

    Args:
        objective: the class, or where it is: ``"mypackage.mymodule:MyObjective"``, which is imported.
        seed: of the random problems.
    """
    if not isinstance(objective, str):
        return [_checked(check, objective, seed) for check in CHECKS]
    module, _, name = objective.partition(":")
    return check_objective(getattr(importlib.import_module(module), name), seed)


def _checked(check: Callable[[Bench], str], objective: type[SetFunction], seed: int) -> Check:
    says = str(check.__doc__).strip().rstrip(".")
    try:
        failure = check(Bench(objective, seed))
    except Exception as error:  # whatever a stranger's code raises is this check's result
        failure = f"raised {type(error).__name__}: {error}"
    return Check(check.__name__, says, failure)
