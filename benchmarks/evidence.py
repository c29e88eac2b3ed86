"""Which method should select, if one does not know what the selected texts will be good for?

    python -m benchmarks.evidence --work FOLDER --films PATH --papers PATH --packages PATH --use PATH --texts PATH
        [--hours 2] [--arms ARM ...] [--seeds 0 1] [--without vendi] [--proxy bigram|transformer]
    python -m benchmarks.evidence --write

The hypothesis, targets, methods, statistic, seeds and order stand in `evidence_plan.toml`, which was committed before
the first run. A cell is an arm (a corpus, a quality, features) and a seed: all methods select equally many rows of the
same pool, the proxy model trains on equally many words of each selection and predicts the held-out texts of every
target. Selections are kept in the work folder by digest, results go to `results/evidence.json` cell by cell, and what
is there is not done again. With ``--hours`` no cell begins after so many. A cell whose plan has changed is made anew.

PATH: folders of parquet shards: films with ratings, papers with citations, package descriptions with scores and
embeddings, the table of how many packages need each one, texts. A corpus without a path is left out. The docstrings are
those of this Python installation. ``--write`` makes docs/evidence.md, its picture, and the README's sentences.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import itertools
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from benchmarks import evidence_document
from benchmarks.evidence_corpora import (
    POOL,
    Setting,
    open_setting,
    other_features,
    plan,
    pool_of,
    read_table,
    scores_of,
    write_sample,
)
from benchmarks.evidence_results import COPIES, PROXIES, RANDOM, RESULTS, methods_of
from datamask import catalogue, learning
from datamask.analyses.ablation.compute.kept import StudyCache
from datamask.analyses.ablation.compute.proxy_models import BigramProxy, ProxyModel, TransformerProxy, cut
from datamask.analyses.ablation.compute.transformer import SMALL, Size, read_bytes
from datamask.config import SelectionConfig
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.files import replacing, write_text
from datamask.learning.loop import learn

DRAWS = 4
"""Random selections of a cell. The bigram model takes the mean of their values, the transformer the first."""

WORDS, BYTES = 150_000, 60_000
"""That a selection trains on at most."""

ASKED = 30_000
"""Bytes of each target that the transformer must predict at most."""

NO_OBJECTIVE = {"objective": "pairwise"}
"""Of baselines: they look at no objective, and any will do."""


@dataclass(frozen=True)
class Cell:
    """An arm at a seed, and the methods that it must have."""

    arm: str
    seed: int
    methods: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.arm}/{self.seed}"


def settings_of(method: str, ratio: float, seed: int) -> SelectionConfig:
    """Return the settings of a method of the plan, such as ``facility 0.5``."""
    word, _, lamb = method.partition(" ")
    options: dict[str, Any] = {"select_ratio": ratio, "seed": seed}
    if not lamb:
        options |= {"estimator": word} | NO_OBJECTIVE
    elif word == "masks":
        options |= {"preset": "paper", "objective": "pairwise", "lamb": float(lamb)}
    elif word == "greedy":
        options |= {"estimator": "greedy", "objective": "facility", "lamb": float(lamb)}
    else:
        options |= {"objective": word, "lamb": float(lamb)}
    return SelectionConfig.from_options(**options)


def can_run(method: str) -> bool:
    """Return whether the program has the method's objective."""
    word, _, lamb = method.partition(" ")
    return not lamb or word in ("masks", "greedy", *(entry.name for entry in catalogue.OBJECTIVES))


def cells(asked: Mapping[str, Any]) -> Iterator[Cell]:
    """Return every cell of the bigram model in the order of the plan; those with learned masks come a second time."""
    seeds, methods, groups = asked["seeds"], asked["methods"], asked["arms"]
    every = tuple(methods_of(asked))
    plain = tuple(name for name in every if name != methods["masks"])

    def of(group: Mapping[str, Any], part: str) -> Iterator[Cell]:
        return (Cell(arm, seed, plain) for seed in seeds[part] for arm in group["names"])

    yield from (cell for part in ("first", "then") for cell in of(groups[0], part))
    yield from (Cell(arm, seed, every) for seed in seeds["first"] for arm in methods["masks_arms"])
    yield from (cell for part in ("first", "then") for group in groups[1:] for cell in of(group, part))


def random_draws(setting: Setting, size: int, seed: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return random selections, and the same without exact duplicates (later rows of the same draw take their place).

    Returns:
        Two lists of `DRAWS` arrays of `size` rows; equal where no text is there twice.
    """
    drawn, distinct = [], []
    first = setting.first_copies
    for draw in range(DRAWS):
        order = np.random.default_rng([seed, 31, draw]).permutation(setting.pool)
        drawn.append(order[:size])
        distinct.append(order[np.isin(order, first)][:size])
    return drawn, distinct


def nats_per_unit(
    proxy: ProxyModel, rows: np.ndarray, budget: int, targets: Mapping[str, np.ndarray], seed: int
) -> list[float]:
    """Return the proxy model's loss after learning from a selection, per target, in nats per word or byte."""
    texts = np.concatenate(list(targets.values()))
    sums = proxy.sums(cut(proxy, rows, budget, seed), budget, texts, seed)
    edges = np.cumsum([0, *(len(target) for target in targets.values())])
    weights = proxy.weights(texts)
    pairs = itertools.pairwise(edges)
    return [round(float(sums[low:high].sum() / weights[low:high].sum()), 5) for low, high in pairs]


def first_bytes(proxy: ProxyModel, texts: np.ndarray) -> np.ndarray:
    """Return the first of these texts, `ASKED` bytes together, and at least one."""
    return texts[: max(1, int(np.searchsorted(np.cumsum(proxy.lengths[texts]), ASKED, side="right")))]


class Study:
    """The study of one work folder.

    Args:
        paths: corpus -> folder of its shards. results: the file that cells go to. size: of the transformer.
    """

    def __init__(
        self,
        work: Path,
        paths: Mapping[str, str | None],
        asked: Mapping[str, Any],
        results: Path = RESULTS,
        size: Size = SMALL,
    ) -> None:
        self.work, self.paths, self.asked, self.results, self.size = work, paths, asked, results, size
        self.report: dict[str, Any] = {"about": {}, "samples": {}, **{proxy: {} for proxy in PROXIES}}
        if results.exists():
            self.report |= json.loads(results.read_text(encoding="utf-8"))
        self.report["about"] = about()
        self._setting: tuple[str, Setting] | None = None
        self._ends: tuple[str, dict] = ("", {})
        self._tables: dict[str, pa.Table] = {}
        for folder in ("samples", "selections"):
            (work / folder).mkdir(parents=True, exist_ok=True)

    def digest(self, arm: str) -> str:
        """Return what the figures of an arm's cells depend on, apart from the settings of each method."""
        corpus = self.asked["corpora"][arm.split("/")[0]]
        facts = [corpus[name] for name in ("targets", "held", "good")]
        return _digest(facts, [self.asked[name] for name in ("ratio", "rows", "near")], DRAWS, WORDS)

    def lacks(self, cell: Cell) -> list[str]:
        """Return the methods that a cell still lacks and the program has."""
        stored = self.report["bigram"].get(cell.key, {})
        done = stored.get("nats", {}) if stored.get("digest") == self.digest(cell.arm) else {}
        return [name for name in cell.methods if name not in done and can_run(name)]

    def setting(self, arm: str, seed: int) -> Setting:
        """Return the sample of a seed; it is drawn where it is not there, and the last one stays open."""
        corpus = arm.split("/")[0]
        facts = self.asked["corpora"][corpus]
        sample = self.work / "samples" / f"{corpus}-{seed}-{self.digest(arm)[:12]}.parquet"
        if self._setting is None or self._setting[0] != str(sample):
            if not sample.exists():
                if corpus not in self._tables:
                    self._tables[corpus] = read_table(corpus, self.paths, self.work)
                write_sample(self._tables[corpus], facts, self.asked, seed, sample)
            self._setting = str(sample), open_setting(sample, list(facts["targets"]))
        setting = self._setting[1]
        self.report["samples"][f"{corpus}/{seed}"] = {
            "pool": len(setting.pool),
            "copies": len(setting.pool) - len(setting.first_copies),
            "targets": {name: len(rows) for name, rows in setting.targets.items()},
        }
        return setting

    def selections(self, setting: Setting, cell: Cell, methods: list[str]) -> dict[str, np.ndarray]:
        """Return selections by method, as rows of the sample; each is made once and kept in the work folder."""
        corpus, quality, features = cell.arm.split("/")
        own = features == self.asked["corpora"][corpus].get("features", "stored")
        matrix = None if own else other_features(setting)
        pool = pool_of(setting, scores_of(setting, quality, cell.seed), matrix, self.work / "cache")
        ends = f"{setting.file}/{features}"
        if self._ends[0] != ends:
            self._ends = ends, {}
        # the ends of diversity's scales depend on no quality
        pool.ends = self._ends[1]
        return {name: setting.pool[self.selected(pool, name, cell.seed)] for name in methods}

    def selected(self, pool: Pool, method: str, seed: int) -> np.ndarray:
        """Return places in the pool, rising."""
        config = settings_of(method, self.asked["ratio"], seed)
        file = self.work / "selections" / f"{_digest(pool.corpus.fingerprint, config.to_dict())}.npy"
        if file.exists():
            stored: np.ndarray = np.load(file)
            return stored
        problem = pose(pool, config).problem
        rows = np.flatnonzero(learn(learning.load(config.estimator)(problem, config)).mask.cpu().numpy())
        with replacing(file) as part, part.open("wb") as opened:
            np.save(opened, rows)
        return rows

    def run(self, cell: Cell) -> None:
        """Run a cell by the bigram model; one that lacks methods is evaluated anew, since all share one budget."""
        started = time.process_time()
        setting = self.setting(cell.arm, cell.seed)
        stored = self.report["bigram"].get(cell.key, {})
        stored = stored if stored.get("digest") == self.digest(cell.arm) else {}
        wanted = {*stored.get("nats", {}), *cell.methods}
        methods = [name for name in methods_of(self.asked) if name in wanted and can_run(name)]
        learned = [name for name in methods if name not in (RANDOM, COPIES)]
        rows = self.selections(setting, cell, learned)
        draws = random_draws(setting, len(next(iter(rows.values()))), cell.seed)
        proxy = BigramProxy(setting.words)
        several = [*rows.values(), *draws[0], *draws[1]]
        budget = min(WORDS, *(int(proxy.lengths[of].sum()) for of in several))

        def loss(of: np.ndarray) -> list[float]:
            return nats_per_unit(proxy, of, budget, setting.targets, cell.seed)

        drawn = [loss(of) for of in draws[0]]
        same = [np.array_equal(first, second) for first, second in zip(*draws, strict=True)]
        distinct = [old if equal else loss(of) for old, equal, of in zip(drawn, same, draws[1], strict=True)]
        means = {name: np.mean(of, axis=0).round(5).tolist() for name, of in ((RANDOM, drawn), (COPIES, distinct))}
        values = means | {name: loss(of) for name, of in rows.items()}
        self.report["bigram"][cell.key] = {
            "digest": self.digest(cell.arm),
            "targets": list(setting.targets),
            "selected": len(draws[0][0]),
            "budget": budget,
            "random_draws": drawn,
            "nats": {name: values[name] for name in methods},
            "cpu_seconds": round(stored.get("cpu_seconds", 0.0) + time.process_time() - started, 1),
        }
        self.save()

    def run_transformer(self, seed: int, more: Callable[[], bool] = lambda: True) -> None:
        """Run a seed of the plan's one arm by the transformer, method by method, for as long as `more` says so."""
        named = self.asked["methods"]
        cell = Cell(named["transformer_arm"], seed, tuple(filter(can_run, named["transformer"])))
        setting = self.setting(cell.arm, seed)
        rows = self.selections(setting, cell, [name for name in cell.methods if name != RANDOM])
        rows[RANDOM] = random_draws(setting, len(next(iter(rows.values()))), seed)[0][0]
        texts = pa.chunked_array(setting.corpus.metadata["text"].cast(pa.large_string()).chunks)
        kept = StudyCache(self.work / "cache", setting.corpus.fingerprint, "evidence-")
        proxy = TransformerProxy(read_bytes(texts, setting.words.cut), torch.device("cpu"), self.size, kept)
        targets = {name: first_bytes(proxy, of) for name, of in setting.targets.items()}
        budget = min(BYTES, *(int(proxy.lengths[of].sum()) for of in rows.values()))
        stored = self.report["transformer"].get(cell.key, {})
        wanted = _digest(self.digest(cell.arm), BYTES, ASKED, self.size.parameters)
        if stored.get("digest") != wanted or stored.get("budget") != budget:
            stored = {"digest": wanted, "targets": list(targets), "budget": budget, "nats": {}, "cpu_seconds": 0.0}
        self.report["transformer"][cell.key] = stored
        for name in cell.methods:
            if name not in stored["nats"] and more():
                started = time.process_time()
                stored["nats"][name] = nats_per_unit(proxy, rows[name], budget, targets, seed)
                stored["cpu_seconds"] = round(stored["cpu_seconds"] + time.process_time() - started, 1)
                self.save()
                print(f"{cell.key} {name}: {time.process_time() - started:.0f} CPU s", flush=True)

    def shared_pools(self) -> None:
        """Store how many rows two seeds' pools share: many of a small corpus, which makes intervals too narrow."""
        for corpus in self.asked["corpora"]:
            pools = []
            for sample in sorted((self.work / "samples").glob(f"{corpus}-[0-9]*.parquet")):
                rows = pq.read_table(sample, columns=["chunk_id", "part"])
                pools.append(set(rows.filter(pc.field("part") == POOL)["chunk_id"].to_pylist()))
            pairs = [(a, b) for place, a in enumerate(pools) for b in pools[:place]]
            if pairs:
                shared = float(np.mean([len(a & b) / len(a) for a, b in pairs]))
                self.report["samples"][corpus] = {"shared_by_two_seeds": round(shared, 4)}
        self.save()

    def save(self) -> None:
        """Write the results in the order of their keys, a line a cell."""
        lines = []
        for part, entries in self.report.items():
            body = ",\n".join(f"  {json.dumps(key)}: {json.dumps(entries[key])}" for key in sorted(entries))
            lines.append(f" {json.dumps(part)}: {{\n{body}\n }}")
        self.results.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.results, "{\n" + ",\n".join(lines) + "\n}\n")


def _digest(*facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def about() -> dict[str, Any]:
    """Return the machine and the versions."""
    packages = ("numpy", "torch", "scikit-learn", "pyarrow")
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
    }


def main() -> None:
    """Run the study, or write its document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for samples, selections and trainings")
    for corpus in ("films", "papers", "papers-minilm", "packages", "use", "texts"):
        parser.add_argument(f"--{corpus}", dest=corpus, help="folder of shards")
    parser.add_argument("--proxy", choices=PROXIES, default="bigram")
    parser.add_argument("--arms", nargs="+", help="only these")
    parser.add_argument("--seeds", nargs="+", type=int, help="only these")
    parser.add_argument("--without", nargs="+", default=[], help="leave these methods for later, such as vendi")
    parser.add_argument("--hours", type=float, default=float("inf"), help="begin nothing after so many")
    parser.add_argument(
        "--write", action="store_true", help="make the document and the README's sentences, run nothing"
    )
    options = parser.parse_args()
    asked = plan()
    if options.write:
        evidence_document.write(asked)
        return
    if options.work is None:
        parser.error("--work must name a folder for what the study keeps; or give --write")
    torch.set_num_threads(1)
    paths = {**vars(options), "docstrings": ""}
    study = Study(options.work, paths, asked)
    began = time.perf_counter()

    def more() -> bool:
        return time.perf_counter() - began < 3600 * options.hours

    if options.proxy == "transformer":
        for seed in asked["seeds"]["transformer"]:
            study.run_transformer(seed, more)
        return
    for cell in cells(asked):
        named = (not options.arms or cell.arm in options.arms) and (not options.seeds or cell.seed in options.seeds)
        now = tuple(name for name in cell.methods if name.split(" ")[0] not in options.without)
        cell = replace(cell, methods=now)
        if paths.get(cell.arm.split("/")[0]) is not None and named and study.lacks(cell) and more():
            started = time.perf_counter(), time.process_time()
            study.run(cell)
            seconds = time.perf_counter() - started[0], time.process_time() - started[1]
            print(f"{cell.key}: {seconds[0]:.0f} s, {seconds[1]:.0f} CPU s", flush=True)
    study.shared_pools()


if __name__ == "__main__":
    main()
