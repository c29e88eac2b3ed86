"""Every objective of the catalogue: exact, raw and as a share of the attainable gain."""

from __future__ import annotations

import torch

from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.reading import Measured, Reading


def objective(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """One objective's exact value, and its bootstrap.

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
        readings[name] = Reading(value, draws, "bootstrap", extra=ground.share(entry.name, len(rows), value))
    return [entry.measured(readings)]
