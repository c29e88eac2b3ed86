"""Does selecting help, what does it help, and against whom? Three corpora, six targets, two qualities, two judges.

    python -m benchmarks.evidence --work FOLDER --packages PATH --texts PATH [--judge bigram|transformer] [--minutes 20]
    python -m benchmarks.evidence --write

What is asked was named and committed before anything was run: `evidence_targets.toml`. Each seed draws of a corpus what
may be selected from and what is asked (`evidence_corpora`); every way to select then selects equally many rows from it,
each trains the judge on equally many of their words, or bytes, and the judge predicts the targets' texts.

PATH: shards of package descriptions with scores and embeddings; a folder of text shards. The docstrings are those of
this Python installation. The work folder holds samples, neighbour graphs, selections and trainings; results go to
`results/evidence-JUDGE.json` piece by piece, and what is there is not done again: a stopped study goes on. With
`--minutes` nothing is begun after so many. ``--write`` makes docs/evidence.md, and of the README the table of
results and the sentence on joint methods (`evidence_document`, by the numbers of `evidence_results`).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch

from benchmarks import evidence_document
from benchmarks.evidence_corpora import (
    Setting,
    classified,
    kinds_of,
    open_setting,
    plan,
    pool_of,
    texts_of,
    told_apart,
    write_sample,
)
from datamask import learning
from datamask.config import SelectionConfig
from datamask.evaluation.lambdas.kept import Lessons
from datamask.evaluation.lambdas.proxy_models import BigramProxy, ProxyModel, TransformerProxy, cut
from datamask.evaluation.lambdas.transformer import SMALL, Size, read_bytes, steps_of, train
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.files import replacing, write_text
from datamask.learning.loop import learn
from datamask.work.cache import Cache

QUALITIES = ("rules", "classifier")
JUDGES = ("bigram", "transformer")
RESULTS = {judge: Path(__file__).parent / "results" / f"evidence-{judge}.json" for judge in JUDGES}
DRAWS = 4
"""Random selections of a seed; the bigram judge takes the mean of what it says of them, the transformer the first."""

WORDS, BYTES = 150_000, 60_000
"""That a selection trains on at most."""

ASKED = 30_000
"""Bytes of each target that the transformer must predict at most."""

DISF = {"estimator": "counterfactual", "n_epochs": 10, "polish": "none"}
"""Few steps: on 11,600 package descriptions 25 of them end 0.004 of the scale higher, in two and a half times the
time."""

AUC = "classifier_auc"
TIMED_STEPS = 30


def selections_named(asked: Mapping[str, Any]) -> list[str]:
    """Every way to select, in the order of the plan."""
    by_lambda = [f"{name} {lamb:g}" for name in asked["by_lambda"] for lamb in asked["lambdas"]]
    return [*asked["plain"], *by_lambda]


def settings_of(name: str, ratio: float, seed: int) -> SelectionConfig:
    """The settings of a selection by its name in the plan, such as ``facility 0.5``."""
    word, _, lamb = name.partition(" ")
    options: dict[str, Any] = {"select_ratio": ratio, "seed": seed}
    if not lamb:
        # any objective will do: none of these looks at one
        options |= {"estimator": word, "objective": "pairwise"}
    else:
        options |= {"objective": "facility" if word == "greedy" else word, "lamb": float(lamb)}
        options |= DISF if word == "disf" else {"estimator": "greedy"} if word == "greedy" else {}
    return SelectionConfig.from_options(**options)


def selected(pool: Pool, config: SelectionConfig) -> np.ndarray:
    """Select. Returns places in the pool, rising."""
    estimator = learning.load(config.estimator)
    problem = pose(pool, config).problem
    return np.flatnonzero(learn(estimator(problem, config)).mask.cpu().numpy())


def nats_per_unit(
    proxy: ProxyModel, rows: np.ndarray, budget: int, targets: Mapping[str, np.ndarray], seed: int
) -> list[float]:
    """What the judge says of a selection, per target, in nats per word or byte."""
    texts = np.concatenate(list(targets.values()))
    sums = proxy.sums(cut(proxy, rows, budget, seed), budget, texts, seed)
    edges = np.cumsum([0, *(len(target) for target in targets.values())])
    weights = proxy.weights(texts)
    pairs = itertools.pairwise(edges)
    return [round(float(sums[low:high].sum() / weights[low:high].sum()), 6) for low, high in pairs]


def first_bytes(proxy: ProxyModel, texts: np.ndarray) -> np.ndarray:
    """The first of these texts, `ASKED` bytes together, and at least one."""
    return texts[: max(1, int(np.searchsorted(np.cumsum(proxy.lengths[texts]), ASKED, side="right")))]


class Study:
    """The study of one work folder by one judge.

    Args:
        paths: corpus -> its shards. results: where pieces go. size: of the transformer.
    """

    def __init__(
        self,
        judge: str,
        work: Path,
        paths: Mapping[str, str | None],
        asked: dict[str, Any],
        results: Path,
        size: Size = SMALL,
    ) -> None:
        self.judge, self.work, self.paths, self.asked = judge, work, paths, asked
        self.results, self.size = results, size
        self.report: dict[str, Any] = {"about": {}, "samples": {}, "pieces": {}}
        self._open: tuple[tuple[str, int], Setting, dict] | None = None
        if results.exists():
            self.report = json.loads(results.read_text(encoding="utf-8"))
        if self.report.get("settings", self.settings) != self.settings:
            raise SystemExit(
                f"{results} was made with other settings ({self.report['settings']} where {self.settings} are wanted); "
                "move it away to begin anew"
            )
        self.report = {
            "about": about(self.report["about"]),
            "settings": self.settings,
            "samples": self.report["samples"],
            "pieces": self.report["pieces"],
        }
        work.mkdir(parents=True, exist_ok=True)

    @property
    def settings(self) -> dict[str, Any]:
        """What the figures depend on beside the plan."""
        return {
            "draws": DRAWS,
            "words": WORDS,
            "bytes": BYTES,
            "asked": ASKED,
            "parameters": self.size.parameters,
            "disf": DISF,
        }

    @property
    def named(self) -> list[str]:
        """The selections that the judge is asked about."""
        selections = self.asked["selections"]
        return selections_named(selections) if self.judge == "bigram" else list(selections["transformer"])

    def left(self, corpora: list[str]) -> Iterator[tuple[str, str, int, int]]:
        """Corpus, quality and seed of every piece that is still to do, and how many selections of it; seed by seed, so
        that a study that is stopped has something of every corpus."""
        qualities = QUALITIES if self.judge == "bigram" else (self.asked["headline"]["quality"],)
        for seed in self.asked["seeds"][self.judge]:
            for corpus in corpora:
                for quality in qualities:
                    done = self.report["pieces"].get(f"{corpus}/{quality}/{seed}", {}).get("nats", {})
                    missing = sum(name not in done for name in self.named)
                    if missing:
                        yield corpus, quality, seed, missing

    def selections_file(self, corpus: str, quality: str, seed: int) -> Path:
        """Where the selections of a sample are kept."""
        return self.work / f"{corpus}-{quality}-{seed}.npz"

    def setting(self, corpus: str, seed: int) -> Setting:
        """The sample of a seed, drawn where it is not there yet; the last one stays open."""
        if self._open is not None and self._open[0] == (corpus, seed):
            return self._open[1]
        sample = self.work / f"{corpus}-{seed}.parquet"
        facts = self.asked["corpora"][corpus]
        if not sample.exists():
            table = texts_of(corpus, self.paths.get(corpus), self.work)
            write_sample(table, facts, self.asked["rows"], self.asked["held"], seed, sample)
        setting = open_setting(sample, facts, self.work / "cache")
        self._open = (corpus, seed), setting, {}
        self.report["samples"].setdefault(f"{corpus}/{seed}", {})
        self.report["samples"][f"{corpus}/{seed}"] |= {
            "pool": len(setting.pool),
            "near_copies_left": setting.left,
            "reference": len(setting.reference),
            "targets": {
                name: {"texts": len(rows), "words": int(setting.words.lengths[rows].sum())}
                for name, rows in setting.targets.items()
            },
        }
        return setting

    def selections(self, setting: Setting, corpus: str, quality: str, seed: int) -> dict[str, np.ndarray]:
        """Every selection of a sample under a quality, as rows of the sample; made once, kept in the work folder.

        The random ones beside it are ``random``, ``random 1`` and so on.
        """
        file = self.selections_file(corpus, quality, seed)
        if file.exists():
            with np.load(file) as kept:
                stored = {name: kept[name] for name in kept.files}
            if AUC in stored:
                self.report["samples"][f"{corpus}/{seed}"][AUC] = float(stored.pop(AUC))
            return stored
        scores, cache = None, self.work / "cache"
        if quality == "classifier":
            scores = classified(setting.texts, setting.pool, setting.reference, seed)
            apart = told_apart(scores, kinds_of(setting), self.asked["corpora"][corpus]["reference"])
            self.report["samples"][f"{corpus}/{seed}"][AUC] = round(apart, 4)
        pool = pool_of(setting, scores, cache)
        # the ends of diversity's scales know no quality
        pool.ends = self._open[2] if self._open else {}
        rows: dict[str, np.ndarray] = {}
        for name in selections_named(self.asked["selections"]):
            rows[name] = setting.pool[selected(pool, settings_of(name, self.asked["ratio"], seed))]
        size = len(rows["random"])
        for draw in range(1, DRAWS):
            drawn = np.random.default_rng([seed, 31, draw]).choice(setting.pool, size, replace=False)
            rows[f"random {draw}"] = np.sort(drawn)
        with replacing(file) as part, part.open("wb") as opened:
            more = {} if scores is None else {AUC: np.array(self.report["samples"][f"{corpus}/{seed}"][AUC])}
            np.savez_compressed(opened, **rows, **more)  # type: ignore[arg-type]
        return rows

    def bigram_piece(self, corpus: str, quality: str, seed: int) -> None:
        """One piece of the bigram judge: every selection of a sample under a quality."""
        start = time.perf_counter()
        setting = self.setting(corpus, seed)
        rows = self.selections(setting, corpus, quality, seed)
        proxy = BigramProxy(setting.words)
        budget = min(WORDS, *(int(proxy.lengths[of].sum()) for of in rows.values()))
        nats = {name: nats_per_unit(proxy, of, budget, setting.targets, seed) for name, of in rows.items()}
        draws = [nats.pop(name) for name in ["random", *(f"random {draw}" for draw in range(1, DRAWS))]]
        mean = [round(float(value), 6) for value in np.mean(draws, axis=0)]
        self.report["pieces"][f"{corpus}/{quality}/{seed}"] = {
            "targets": list(setting.targets),
            "selected": len(rows["random"]),
            "budget": budget,
            "random_draws": draws,
            "nats": {"random": mean, **nats},
            "seconds": round(time.perf_counter() - start, 1),
        }
        self.save()
        print(f"{corpus}/{quality}/{seed}: {time.perf_counter() - start:.1f} s", flush=True)

    def transformer_piece(self, corpus: str, quality: str, seed: int, more: Callable[[], bool] = lambda: True) -> None:
        """One piece of the transformer, training by training, for as long as `more` says so."""
        setting = self.setting(corpus, seed)
        kept = self.selections(setting, corpus, quality, seed)
        rows = {name: kept[name] for name in self.named}
        texts = pa.chunked_array(setting.corpus.metadata["text"].cast(pa.large_string()).chunks)
        lessons = Lessons(Cache(self.work / "cache"), setting.corpus.fingerprint, "evidence-")
        proxy = TransformerProxy(read_bytes(texts, setting.words.cut), torch.device("cpu"), self.size, lessons)
        targets = {name: first_bytes(proxy, of) for name, of in setting.targets.items()}
        budget = min(BYTES, *(int(proxy.lengths[of].sum()) for of in rows.values()))
        key = f"{corpus}/{quality}/{seed}"
        piece = self.report["pieces"].setdefault(key, {"targets": list(targets), "budget": budget, "nats": {}})
        for name, of in rows.items():
            if name not in piece["nats"] and more():
                start = time.perf_counter()
                piece["nats"][name] = nats_per_unit(proxy, of, budget, targets, seed)
                self.save()
                print(f"{key} {name}: {time.perf_counter() - start:.1f} s", flush=True)

    def shared_pools(self) -> None:
        """How much of two seeds' pools is the same: of a small corpus much, which makes its intervals too narrow."""
        for corpus in self.asked["corpora"]:
            pools = []
            for seed in self.asked["seeds"]["bigram"]:
                sample = self.work / f"{corpus}-{seed}.parquet"
                if sample.exists():
                    table = pq.read_table(sample, columns=["chunk_id", "part"])
                    pools.append(set(table.filter(pc.field("part") == "pool")["chunk_id"].to_pylist()))
            pairs = [(a, b) for place, a in enumerate(pools) for b in pools[:place]]
            if pairs:
                shared = float(np.mean([len(a & b) / len(a) for a, b in pairs]))
                self.report["samples"][corpus] = {"shared_by_two_seeds": round(shared, 4)}
        self.save()

    def save(self) -> None:
        """Write the results, in the order of their keys: a study that was stopped and gone on with is the same file."""
        for part in ("samples", "pieces"):
            self.report[part] = dict(sorted(self.report[part].items()))
        self.results.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.results, json.dumps(self.report, indent=1) + "\n")


def about(before: dict[str, Any]) -> dict[str, Any]:
    """Machine and versions; those of an earlier part of the study stay beside what is other now."""
    packages = ("numpy", "torch", "scikit-learn", "pyarrow")
    from sample_data.build import PACKAGES

    now = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
        "docstrings_of": {name: _version(name) for name in PACKAGES},
    }
    earlier = before.get("earlier", [])
    if before and {key: before.get(key) for key in now} != now:
        earlier = [*earlier, {key: before.get(key) for key in now}]
    return {**now, **({"earlier": earlier} if earlier else {})}


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def seconds_per_training(size: Size, budget: int = BYTES) -> float:
    """What a training will take here, by some steps of one."""
    tokens = np.random.default_rng(0).integers(0, 256, TIMED_STEPS * size.batch * size.context + 1)
    train(size, tokens[: size.batch * size.context + 1], 0, torch.device("cpu"))
    start = time.perf_counter()
    train(size, tokens, 0, torch.device("cpu"))
    return (time.perf_counter() - start) / TIMED_STEPS * steps_of(size, budget)


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for samples, selections and trainings")
    parser.add_argument("--packages", help="shards of package descriptions, with scores and embeddings")
    parser.add_argument("--texts", help="folder of text shards")
    parser.add_argument("--judge", choices=JUDGES, default="bigram")
    parser.add_argument("--corpora", nargs="+", help="only these")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after so many")
    parser.add_argument(
        "--write", action="store_true", help="make docs/evidence.md and the README's table, run nothing"
    )
    options = parser.parse_args()
    asked = plan()
    if options.write:
        evidence_document.write(evidence_document.read_results(RESULTS), asked)
        return
    if options.work is None:
        parser.error("--work must name a folder for what the study keeps; or give --write")
    torch.set_num_threads(1)
    paths = {"packages": options.packages, "texts": options.texts}
    study = Study(options.judge, options.work, paths, asked, RESULTS[options.judge])
    pieces = list(study.left(options.corpora or list(asked["corpora"])))
    print(predicted(study, pieces), flush=True)
    began = time.perf_counter()

    def more() -> bool:
        return time.perf_counter() - began < 60 * options.minutes

    for corpus, quality, seed, _ in pieces:
        if not more():
            break
        if options.judge == "bigram":
            study.bigram_piece(corpus, quality, seed)
        elif study.selections_file(corpus, quality, seed).exists():
            study.transformer_piece(corpus, quality, seed, more)
        else:
            print(f"{corpus}/{quality}/{seed}: nothing is selected yet; the bigram judge goes first", flush=True)
    study.shared_pools()


def predicted(study: Study, pieces: list[tuple[str, str, int, int]]) -> str:
    """How long the pieces will take."""
    if study.judge == "transformer":
        count, each = sum(missing for *_, missing in pieces), seconds_per_training(study.size)
        return (
            f"{count} trainings of some {each:.0f} s each, without what they are asked: {count * each / 60:.0f} minutes"
        )
    each = float(np.mean([piece["seconds"] for piece in study.report["pieces"].values()] or [65.0]))
    return f"{len(pieces)} pieces of some {each:.0f} s each: {len(pieces) * each / 60:.0f} minutes"


if __name__ == "__main__":
    main()
