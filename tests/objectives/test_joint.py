"""The joint objective: scales, lambda's ends, offsets."""

from __future__ import annotations

import pytest
import torch

from datamask.measured import Anchor
from datamask.objectives.facility import Facility
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.quality import Quality
from tests.reference import truth


@pytest.fixture
def parts(rng):
    x = truth.unit_rows(rng, 30, 4)
    q = rng.normal(size=30) + 1000.0  # a large offset must cost no digits
    members = rng.choice(30, size=10, replace=False)
    mask = torch.zeros(30, dtype=torch.bool)
    mask[torch.from_numpy(members)] = True
    return x, q, members, mask


def joint(parts, lamb, quality_scale=Scale(), scale=Scale()):
    x, q, _, _ = parts
    return Joint(
        Quality(torch.from_numpy(q)),
        (Term("pairwise", 1.0, Pairwise(torch.from_numpy(x).float()), scale),),
        lamb,
        quality_scale,
    )


@pytest.mark.parametrize("lamb", [0.0, 0.3, 1.0])
def test_value_is_the_weighted_sum(parts, lamb):
    x, q, members, mask = parts
    values = joint(parts, lamb).evaluate(mask)
    expected = lamb * q[members].mean() + (1 - lamb) * truth.pairwise(x, members)
    assert values.joint == pytest.approx(expected, rel=1e-6)
    assert values.raw_quality == pytest.approx(q[members].mean(), rel=1e-12)


def test_step_values_keep_the_digits_of_a_large_offset(parts):
    _, q, members, mask = parts
    scale = Scale(1000.0, 1.0)
    quality = joint(parts, 0.5, scale).values(mask[None]).quality
    assert float(quality[0]) == pytest.approx(q[members].mean() - 1000.0, abs=1e-6)


def test_terms_without_weight_are_not_computed(parts):
    mask = parts[3]
    assert torch.isnan(joint(parts, 1.0).values(mask[None])[2]).all()
    assert torch.isnan(joint(parts, 0.0).values(mask[None])[1]).all()


def test_calibrated_scale_maps_the_anchors_to_0_and_1():
    scale = Scale.calibrated(Anchor(-0.4, -0.1, "proved"))
    assert scale(-0.4) == pytest.approx(0.0)
    assert scale(-0.1) == pytest.approx(1.0)


def test_a_constant_term_is_switched_off():
    anchor = Anchor(2.0, 2.0, "proved")
    assert anchor.constant
    assert Scale.calibrated(anchor)(2.0) == 0.0


def test_marginals_add_up(parts):
    mask = parts[3]
    both = joint(parts, 0.3)
    quality, diversity = both.final_marginals(mask)
    values, credits = both.values_and_marginals(mask[None])
    steps = sum(credits.values()).double()
    assert sum(values.parts.values()) == pytest.approx(values.joint) and set(credits) == set(values.parts)
    promised = 0.3 * quality + 0.7 * diversity
    # the steps leave out the constant that the quality offset adds to every sample
    assert torch.allclose(steps - steps.mean(), promised - promised.mean(), atol=1e-6)


def test_quality_gains_are_exact(parts):
    _, q, members, mask = parts
    gains = Quality(torch.from_numpy(q)).gains(mask)
    here = q[members].mean()
    for i in range(30):
        if mask[i]:
            rest = [m for m in members if m != i]
            assert float(gains[i]) == pytest.approx(here - q[rest].mean(), abs=1e-9)
        else:
            assert float(gains[i]) == pytest.approx(q[[*members, i]].mean() - here, abs=1e-9)


def test_a_solver_that_looks_into_one_objective_gets_no_other(parts):
    term = joint(parts, 0.5).terms[0]
    assert term.function_of(Pairwise) is term.function
    with pytest.raises(TypeError, match=r"pairwise must be Facility .* got Pairwise"):
        term.function_of(Facility)
