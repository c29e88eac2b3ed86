"""Where a bound is loose by its nature, so that a gap says little about the selection."""

from __future__ import annotations

from datamask import catalogue
from datamask.evaluation.result import RunResult
from datamask.runs.store import Run


def loose_bound(run: Run, result: RunResult) -> str | None:
    """Return the sentence that goes with the gap of a finished run; None where the bound can be tight.

    disf_fixed is a quadratic form of the second moments of the selected rows. Weights between 0 and 1 can match all of
    its ``d (d + 1) / 2`` entries; a selection of fewer rows than that cannot, whatever solves it.
    """
    selected, dim = result.size.selected, run.facts().get("dim")
    if result.certificate.upper_bound is None or selected is None or dim is None:
        return None
    dim = dim if result.components is None else result.components.kept
    moments = dim * (dim + 1) // 2
    if "disf_fixed" not in catalogue.objective_terms(run.config.selection.objective) or selected >= moments:
        return None
    return (
        f"The bound of disf_fixed is loose at this size: {selected:,} rows are fewer than the {moments:,} second "
        f"moments of {dim:,} dimensions, so part of the gap stays with any method."
    )
