"""Every objective of the catalogue: raw and as a share of the attainable gain; exact, but on approximate lists."""

from __future__ import annotations

import torch

from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.reading import Measured, Reading
from datamask.measured import Estimate


def objective(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """One objective's value, and its bootstrap; on approximate lists a lower bound, with an estimate of the exact one.

    Facility location is a mean over the pool, whose rows are resampled under the selection as it is. The others are
    functions of the members' weighted moments; their draws follow the tangent at the selection, that is the frozen-size
    marginals, which are its slope in the members' weights.
    """
    readings = {}
    for name, rows in selections.items():
        ground.poll()
        function, mask = ground.pool.function(entry.name, len(rows)), ground.mask(rows)
        row_values = function.row_values(mask, ground.poll)
        if row_values is not None:
            of_rows = row_values.cpu().numpy()
            value, draws = float(of_rows.mean(dtype="float64")), ground.mean_draws(of_rows, ground.everyone())
        else:
            value, draws = function.value(mask, ground.poll), None
            if ground.resampling and len(rows) > 1:
                marginals = function.marginals(mask[None], ground.poll)[torch.from_numpy(rows).to(mask.device)]
                slope = marginals.cpu().double().numpy() * len(rows)
                if (mean_slopes := ground.mean_draws(slope, rows)) is not None:
                    draws = value + mean_slopes - slope.mean()
        estimate = function.estimate(mask, poll=ground.poll)
        note = "" if estimate is None else f"a lower bound, on approximate lists; the exact value is {_read(estimate)}"
        readings[name] = Reading(value, draws, "bootstrap", note, extra=ground.share(entry.name, len(rows), value))
    return [entry.measured(readings)]


def _read(estimate: Estimate) -> str:
    return f"{estimate.value:.5g} ({estimate.low:.5g} to {estimate.high:.5g}, from {estimate.rows:,} random rows)"
