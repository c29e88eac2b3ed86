"""How many rows of each region, group and bar are selected along lambda: counted ahead, for the browser. Pure numpy.

The browser has the bits of the drawn rows alone, and of hexagons not even these. So what it shows while λ is dragged is
counted here, of all rows that a view counts, and travels as a few numbers for each lambda.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datamask.dashboard.linked import groups
from datamask.dashboard.linked.tally import Tally
from datamask.dashboard.map.parcels import pack
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint

MOST_ROWS = 300_000
"""Of a corpus that is counted along lambda: a few tenths of a second for 22 lambdas. What the page shows of a larger
one is dimmed until it follows."""


def counts_parcel(points: Sequence[LambdaPoint], tallies: Sequence[Tally]) -> bytes:
    """What the browser looks up at each of these lambdas.

    The header's ``tallies`` gives name and size of each, in the order in which their groups stand in ``sizes`` (rows),
    in ``kept`` (selected rows, one line for each lambda) and in ``verdicts`` (an index into the header's).

    Args:
        points: at least one. tallies: at least one.
    """
    sizes = [tally.count() for tally in tallies]
    kept, verdicts, shares = [], [], []
    for point in points:
        selected = point.mask
        counts = [tally.count(selected) for tally in tallies]
        share = float(selected.mean())
        kept.append(np.concatenate(counts))
        verdicts.append(np.concatenate([_verdicts(*pair, share) for pair in zip(counts, sizes, strict=True)]))
        shares.append(share)
    header = {
        "lambdas": [point.lamb for point in points],
        "shares": shares,
        "tallies": [[tally.name, tally.size] for tally in tallies],
        "names": [groups.UNDER, groups.EVEN, groups.OVER],
    }
    return pack(
        header,
        sizes=np.concatenate(sizes).astype(np.uint32),
        kept=np.array(kept, np.uint32),
        verdicts=np.array(verdicts, np.uint8),
    )


def _verdicts(kept: np.ndarray, sizes: np.ndarray, share: float) -> np.ndarray:
    return (np.sign(groups.off(kept, np.maximum(sizes, 1), share)) + 1).astype(np.uint8)
