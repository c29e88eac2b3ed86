"""What to select and how: frozen, self-validating records that feed command line, forms and run folder alike.

Three records: `CorpusConfig` (which rows), `SelectionConfig` (which subset of them, found how) and `RunConfig` (both,
with a name). All of them round-trip through JSON (`to_dict`, `from_dict`), and `RunConfig.arguments` writes a run as
the command line that repeats it. What options there are is `datamask.options`. `target` is what an ablation
measures on. Nothing here loads torch.
"""

from datamask.config.corpus import CorpusConfig
from datamask.config.run import RunConfig
from datamask.config.selection import NEIGHBOR_SEARCHES, PAPER_PRESET, SelectionConfig
from datamask.options import LEARNER_OPTIONS, TRANSFORMS, QualityColumn, Quota

__all__ = [
    "LEARNER_OPTIONS",
    "NEIGHBOR_SEARCHES",
    "PAPER_PRESET",
    "TRANSFORMS",
    "CorpusConfig",
    "QualityColumn",
    "Quota",
    "RunConfig",
    "SelectionConfig",
]
