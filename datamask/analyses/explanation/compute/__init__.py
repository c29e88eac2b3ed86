"""Why a sample is in a selection, or not: exactly, per objective, in parts that add up.

- `explainer`: one selection taken apart: every sample's score, the threshold it is held against, and the parts.
- `explanation`: what is said of one sample.
- `witnesses`: the samples or dimensions behind a diversity term's part, one function per objective.
- `flips`: the lambdas between which a sample is in.
"""

from datamask.analyses.explanation.compute.explainer import Explainer
from datamask.analyses.explanation.compute.explanation import Explanation, Part, Witness
from datamask.analyses.explanation.compute.flips import Again, Flip, find_flip, intervals

__all__ = ["Again", "Explainer", "Explanation", "Flip", "Part", "Witness", "find_flip", "intervals"]
