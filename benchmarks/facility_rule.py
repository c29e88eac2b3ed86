"""Whether facility location has a rule of one row's own numbers, as pair-wise similarity has: it has not.

    python -m benchmarks.facility_rule PATH [--rows 12000] [--ratio 0.1] [--output FILE.json]

A selection is solved on one random part of a corpus, and rules made of it are applied to another part of the same size:

- price: a row is kept if it adds at least what the last member added. It lies in the cell of its nearest member and
  stands in for it: it adds ``max(0, x . sum of the cell's rows - what they have of the next best member)``, and its
  quality. The threshold is the one that keeps the share on the part where the rule was learned.
- price of each cell: the same with a threshold for every cell, half way between its best row and the next.
- exact share: the rows that add most, as many as are wanted; this needs all scores first.
- best of each cell: the row that adds most in each cell; this needs a look at all rows of a cell.

Their joint values stand between random (0 without quality) and the selection solved on the second part itself.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from benchmarks.corpus import machine
from benchmarks.million import commit
from datamask import CorpusConfig, open_corpus, select
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem, pose
from datamask.files import write_text
from datamask.learning.device import resolve

RESULTS = Path(__file__).parent / "results" / "facility-rule.json"
LAMBDAS, SEEDS = (0.0, 0.5), (0, 1, 2)


@dataclass(frozen=True)
class Cells:
    """The cells of a selection's members, and what a row of each of them would add in its member's place.

    Attributes:
        members: float32 ``(S, d)``. sums: float64 ``(S, d)``, of the cell's rows. second: float64 ``(S,)``, what those
            rows have of the members next to theirs. worth: what a unit of quality is worth in summed similarity.
    """

    members: np.ndarray
    sums: np.ndarray
    second: np.ndarray
    worth: float

    @classmethod
    def of(cls, features: np.ndarray, member: np.ndarray, worth: float) -> Cells:
        """The cells of the rows of ``features (n, d)`` around the members, ``member`` bool ``(n,)``."""
        members = features[member]
        near = features @ members.T
        cell = near.argmax(1)
        near[np.arange(len(near)), cell] = -np.inf
        sums = np.zeros(members.shape)
        np.add.at(sums, cell, features)
        return cls(members, sums, np.bincount(cell, np.maximum(near.max(1), 0), minlength=len(members)), worth)

    def added(self, features: np.ndarray, quality: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each row adds, float64 ``(n,)``, and its cell, int64 ``(n,)``."""
        cell = (features @ self.members.T).argmax(1)
        reach = np.einsum("nd,nd->n", features, self.sums[cell]) - self.second[cell]
        return np.maximum(reach, 0) + self.worth * quality, cell


def rules(cells: Cells, learned: Corpus, unseen: Corpus, size: int) -> dict[str, np.ndarray]:
    """What each rule keeps of the unseen rows, bool ``(n,)``, by its name."""
    before, cell_before = cells.added(learned.features, learned.quality)
    added, cell = cells.added(unseen.features, unseen.quality)
    own = np.full(len(cells.members), np.inf)
    for number in np.unique(cell_before):
        falling = np.sort(before[cell_before == number])[::-1]
        own[number] = falling[:2].mean()
    above = before - own[cell_before]
    falling_rank = np.lexsort((-added, cell))
    first = np.r_[True, np.diff(cell[falling_rank]) > 0]
    best = np.zeros(len(unseen), bool)
    best[falling_rank[first]] = True
    largest = np.zeros(len(unseen), bool)
    largest[np.argsort(-added, kind="stable")[:size]] = True
    return {
        "price": added >= np.sort(before)[::-1][size - 1],
        "price of each cell": added - own[cell] >= np.sort(above)[::-1][size - 1],
        "exact share": largest,
        "best of each cell": best,
    }


def posed_on(corpus: Corpus, config: SelectionConfig, folder: Path) -> PosedProblem:
    """The problem with the ends of its scale."""
    return pose(Pool(corpus, resolve("cpu"), folder), config, lambda: None)


def measure(path: str, rows: int, ratio: float, lamb: float, seed: int, folder: Path) -> dict[str, object]:
    """Kept shares and joint values of everything at one lambda, on one pair of parts."""
    whole = open_corpus(CorpusConfig((path,), rows=2 * rows, seed=seed))
    order = np.random.default_rng(seed).permutation(len(whole))
    parts = []
    for number, part in enumerate((order[: len(order) // 2], order[len(order) // 2 :])):
        shard = folder / f"{seed}-{number}.parquet"
        columns = {
            "id": pa.array(part),
            "quality": whole.quality[part],
            "features": pa.FixedSizeListArray.from_arrays(pa.array(whole.features[part].ravel()), whole.dim),
        }
        pq.write_table(pa.table(columns), shard)
        parts.append(open_corpus(CorpusConfig((str(shard),))))
    learned, unseen = parts
    config = SelectionConfig.from_options(objective="facility", lamb=lamb, select_ratio=ratio)
    solved = [select(part, config, cache_dir=folder).mask for part in parts]
    posed = posed_on(learned, config, folder)
    term = posed.problem.joint.terms[0]
    worth = 0.0
    if 0 < lamb < 1:
        slope = posed.problem.joint.quality_scale.slope / term.scale.slope
        worth = lamb / (1 - lamb) * slope * len(learned) / int(solved[0].sum())
    kept = rules(Cells.of(learned.features, solved[0], worth), learned, unseen, int(solved[1].sum()))
    random = np.zeros(len(unseen), bool)
    random[np.random.default_rng(seed).permutation(len(unseen))[: int(solved[1].sum())]] = True
    joint = posed_on(unseen, config, folder).problem.joint
    return {
        name: {"share": float(mask.mean()), "joint": joint.evaluate(torch.from_numpy(mask)).joint}
        for name, mask in {"solved there": solved[1], "random": random, **kept}.items()
    }


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="shards with id, quality and feature columns")
    parser.add_argument("--rows", type=int, default=12_000, help="of each part")
    parser.add_argument("--ratio", type=float, default=0.1)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    record: dict[str, object] = {
        "commit": commit(),
        "machine": machine(),
        "corpus": Path(options.corpus).name,
        "rows": options.rows,
        "ratio": options.ratio,
    }
    for lamb in LAMBDAS:
        of_seeds = []
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as folder:
                of_seeds.append(measure(options.corpus, options.rows, options.ratio, lamb, seed, Path(folder)))
            print(f"lambda {lamb}, seed {seed}:", json.dumps(of_seeds[-1]), flush=True)
        record[f"lambda {lamb}"] = of_seeds
    write_text(options.output, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
