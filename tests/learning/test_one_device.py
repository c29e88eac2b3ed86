"""Where the learner reads numbers back from the device: at listed places alone.

At each of them a GPU waits until all work before it is done, so a new one is a decision. A tensor of the CPU is read by
the same operation as one of a GPU, so this is seen without one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from torch.utils._python_dispatch import TorchDispatchMode

import datamask
from datamask import learning
from datamask.config import SelectionConfig
from tests.learning.test_solvers import made

ROOT = str(Path(datamask.__file__).parent)

OF_A_STEP = {
    # the numbers that a step writes down
    "diagnostics.agreement",
    "diagnostics.flat",
    "diagnostics.spreads",
    "diagnostics.variance_shares",
    # a step of no length, and values that are no numbers, end the learning
    "estimators.advantage",
    "estimators.counterfactual_step",
    "joint._check_finite",
    # the offset of quality, and whether float32 holds its digits
    "quality.Quality.offset",
    "quality.narrowed",
    # how many members a mask has, and sums of squares
    "disf.DiSF.marginals",
    "disf.DiSF.values",
    "disf_fixed.Crowding.__init__",
    "disf_fixed.DiSFFixed.marginals",
    "disf_fixed.DiSFFixed.values",
    "pairwise.Pairwise.marginals",
    # whether the lists of a batch hold negative similarities
    "facility.Facility.__init__",
    # eigenvalues, whose logarithms are added up
    "vendi.Vendi._value_and_changes",
    "vendi.Vendi.value_of",
    "vendi.Vendi.values",
    "vendi.entropy",
}


class Reads(TorchDispatchMode):
    """Notes the functions of datamask in which a number of a tensor becomes one of Python."""

    def __init__(self):
        super().__init__()
        self.places = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if str(func).startswith("aten._local_scalar_dense"):
            frame = sys._getframe()
            while not frame.f_code.co_filename.startswith(ROOT):
                frame = frame.f_back
            function = frame.f_code.co_qualname.partition(".<locals>")[0]
            self.places.add(f"{Path(frame.f_code.co_filename).stem}.{function}")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("objective", ["pairwise", "facility", "disf", "disf_fixed", "vendi"])
@pytest.mark.parametrize("estimator", ["reinforce", "counterfactual"])
def test_a_step_reads_numbers_at_listed_places_alone(estimator, objective):
    config = SelectionConfig.from_options(estimator=estimator, objective=objective, device="cpu", n_epochs=1_000)
    learner = learning.load(estimator)(made([objective]), config)
    state = learner.init()
    with Reads() as reads:
        for _ in range(3):  # the readout is valued every tenth step
            state, _ = learner.step(state)
    assert reads.places <= OF_A_STEP
