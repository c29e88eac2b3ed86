"""What the neighbour lists of all rows hold, and what cannot be weighed on them."""

from __future__ import annotations

from datamask.config import SelectionConfig
from datamask.corpus.neighbors import RECALL_ROWS
from datamask.corpus.sampling import DRAWS
from datamask.errors import InputError
from datamask.measured import Anchor, GraphFacts
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.tasks import do
from datamask.work.context import UNWATCHED, Work


def recall(cells: CellBlocks, engine: Engine, work: Work = UNWATCHED) -> float:
    """The share of the true nearest rows of uniformly drawn rows that their lists hold."""
    sample = cells.sample(DRAWS - 1, RECALL_ROWS)
    nearest = cells.true_lists(sample)
    phase = cells.phase(
        "sampled_rows:recall",
        1,
        atlas=cells.atlas.word,
        blocks=cells.blocks,
        lists=cells.lists.word,
        nearest=nearest.word,
        sample=sample.word,
    )
    if not phase.whole:
        for each in (sample, nearest, phase):
            do(each, engine, work)
        nearest.remove()
    return float(phase[0].value["recall"])


def graph_facts(cells: CellBlocks, listed: int, recall: float) -> GraphFacts:
    """What is known about the lists. recall: as `recall` measures it."""
    if cells.exact:
        return GraphFacts("exact", listed, 1.0, 0)
    return GraphFacts("approximate", listed, recall, min(RECALL_ROWS, cells.rows))


def check_weighable(config: SelectionConfig, diversity: Anchor) -> None:
    """Refuse to weigh quality against what has no scale.

    Raises:
        InputError: no selection covers more than another.
    """
    if config.scale == "calibrated" and config.lamb > 0 and diversity.constant:
        raise InputError(
            "no selection covers the rows better than a random one, so there is no scale on which to weigh it "
            "against quality; take --lamb 0, --scale raw, or another objective"
        )
