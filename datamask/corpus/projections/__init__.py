"""Two dimensions to look at, by a table: which projections there are, and what is common to all.

| module | job |
|---|---|
| `contract` | what a projection is |
| `pca`, `umap`, `tsne` | one each |
| `fitting` | which rows are fitted, what a fit is given, where the other rows go, how many neighbours are kept |
| `layouts`, `child` | a layout computed in the background, in a process that can be killed, and kept |

To add one: a file here with a `Projection`, and its line in the table. Controls, captions, addresses and the cache
follow. One layout per corpus and projection: runs recolor it and never fit it again.
"""

from __future__ import annotations

from datamask.corpus.projections.contract import Projection
from datamask.corpus.projections.pca import PCA, pca
from datamask.corpus.projections.tsne import TSNE
from datamask.corpus.projections.umap import UMAP

PROJECTIONS: dict[str, Projection] = {
    projection.name: projection
    for projection in (
        UMAP,
        TSNE,
        PCA,
    )
}
"""By name, in the order in which they are offered; the first is what is shown where nobody chose."""

DEFAULT = next(iter(PROJECTIONS))

STAND_IN = next(projection for projection in PROJECTIONS.values() if projection.at_once is not None)
"""Drawn until the one that was chosen is there."""

__all__ = ["DEFAULT", "PROJECTIONS", "STAND_IN", "Projection", "pca"]
