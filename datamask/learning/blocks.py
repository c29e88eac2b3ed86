"""Blocks: facility location in blocks of rows, as a corpus beyond memory has to be solved, with the rounds as steps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.block_greedy import BlockGreedy
from datamask.learning.cell_blocks import CELLS_PER_BLOCK, block_of_cells, cell_centres, nearest_centre
from datamask.learning.facility_solver import facility_arrays
from datamask.learning.loop import Estimator
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.learning.state import State, StepRecord, check_state
from datamask.learning.trace import Trace, no_trace
from datamask.learning.turns import colours_of_round
from datamask.objectives.facility import Facility
from datamask.options.checks import required
from datamask.polling import Poll, no_poll

ROWS_PER_CELL = 64
"""Rows that k-means looks at, per cell."""


class Blocks(Estimator):
    """Scope global: blocks of neighbouring cells; a step is a round (`datamask.learning.block_greedy`), the first of
    blocks that know themselves alone. Scope block: the paper's way, random blocks, each alone, equal shares; one step.

    The state's logits are no logits: they keep the block of each eligible row, so that a run that is gone on with has
    the very same blocks.
    """

    def __init__(self, problem: Problem, config: SelectionConfig) -> None:
        """Raises OptionError: not facility location alone, or under pins, quotas or a token budget."""
        joint = problem.joint
        if len(joint.counting) != 1 or type(joint.counting[0].function) is not Facility:
            raise OptionError(
                "--estimator blocks needs --objective facility and a lambda below 1, got --objective "
                f"{config.objective} at lambda {config.lamb:g}; without --scope and --block_rows another is taken"
            )
        if problem.limited:
            raise OptionError(
                "--estimator blocks takes no --pin, --quota, --given or --budget: they hold for the whole selection, "
                "and a block knows of itself; --estimator relaxed takes them"
            )
        self.problem, self.config, self.device = problem, config, joint.device
        self.alone = config.scope == "block"
        self.total_steps = 1 if self.alone else required(config.n_epochs, "n_epochs")
        self._solver: BlockGreedy | None = None
        m = len(problem.eligible)
        self.blocks = min(math.ceil(m / required(config.block_rows, "block_rows")), m)

    def init(self) -> State:
        """The blocks, nothing selected yet."""
        return State(torch.from_numpy(self._cut().astype(np.float64)).to(self.device), 0)

    def check(self, state: State) -> None:
        """Refuse a state that none of these rounds can have left. Raises ValueError: what is wrong with it."""
        m = len(self.problem.eligible)
        check_state(state, self.problem, logits=(m,), kinds=(torch.float64,), rng=0, steps=self.total_steps)
        known = torch.arange(self.blocks, dtype=torch.float64, device=self.device)
        if not bool(torch.isin(state.logits, known).all()):
            raise ValueError(f"logits must be numbers of {self.blocks:,} blocks, and some are not")
        if state.step and state.subset is None:
            raise ValueError(f"subset must be there after round {state.step:,}")

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        """One round over all blocks."""
        solver = self._blocks_of(state)
        if state.subset is None:
            member = solver.in_equal_shares(poll) if self.alone else solver.alone(poll)
        else:
            colour = colours_of_round(self.blocks, state.step, self.config.seed)
            member = solver.again(state.subset.cpu().numpy(), colour, poll)
        mask = torch.from_numpy(member).to(self.device)
        values = self.problem.joint.evaluate(mask, poll)
        changed = {} if state.subset is None else {"changed": float((mask & ~state.subset).sum() / mask.sum())}
        better = values.joint > state.best_joint
        after = replace(
            state,
            step=state.step + 1,
            subset=mask,
            best=mask if better else state.best,
            best_joint=values.joint if better else state.best_joint,
        )
        return after, StepRecord(after.step, changed, values)

    def finished(self, state: State) -> str | None:
        """Done after the last round."""
        if state.step < self.total_steps:
            return None
        blocks = f"{self.blocks:,} {'random blocks' if self.alone else 'blocks of cells'}"
        return f"{blocks}, each alone" if self.alone else f"{blocks}, {state.step:,} rounds"

    def result(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
        """The best round's selection, polished by swaps, bool ``(n,)``. Raises ValueError: no round was done."""
        if state.best is None:
            raise ValueError("a selection is there after the first step, and none was taken; call step first")
        return state.best if self.config.polish == "none" else polish(self.problem, state.best, poll, trace)

    def _cut(self) -> np.ndarray:
        """The block of each eligible row, int64 ``(m,)``."""
        rows = self.problem.eligible.cpu().numpy()
        rng = np.random.default_rng(self.config.seed % 2**32)
        if self.alone:
            return rng.permutation(np.arange(len(rows)) * self.blocks // len(rows))
        features = self.problem.joint.counting[0].function_of(Facility).features[self.problem.eligible].cpu().numpy()
        cells = min(CELLS_PER_BLOCK * self.blocks, len(rows))
        sample = np.sort(rng.choice(len(rows), min(len(rows), ROWS_PER_CELL * cells), replace=False))
        centres = cell_centres(features[sample], cells, self.config.seed)
        cell = nearest_centre(features, centres)
        block: np.ndarray = block_of_cells(centres, np.bincount(cell, minlength=len(centres)), self.blocks)[cell]
        return block

    def _blocks_of(self, state: State) -> BlockGreedy:
        if self._solver is None:
            indices, similarities, bonus, visit = facility_arrays(self.problem)
            # rows that cannot be selected are in no block's candidates, but count in the block of their nearest one
            block = np.full(self.problem.joint.n, -1, dtype=np.int64)
            block[self.problem.eligible.cpu().numpy()] = state.logits.cpu().numpy().astype(np.int64)
            for column in range(1, indices.shape[1]):
                lost = np.flatnonzero(block < 0)
                block[lost] = block[indices[lost, column]]
            block[block < 0] = 0
            order = np.empty_like(visit)
            order[visit] = np.arange(len(visit))
            self._solver = BlockGreedy(indices, similarities, block, bonus, self.problem.size, order)
        return self._solver
