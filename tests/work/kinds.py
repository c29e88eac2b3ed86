"""Every kind of result that is kept: what a good one holds, how it is read, and what a wrong one looks like."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from datamask.ablation.result import AblationResult
from datamask.analyses.ablation.compute.kept import LOSSES, TRAINING, StudyCache
from datamask.corpus.corpus import Corpus
from datamask.corpus.graph_checkpoint import NeighborLists, graph_progress, stored_lists
from datamask.corpus.neighbors import build_neighbors, stored_graph
from datamask.corpus.projections.layouts import stored_layout
from datamask.dashboard.map import map_layout, named_regions
from datamask.dashboard.tradeoff import kept_points
from datamask.evaluation.anchors import diversity_anchor, stored_ends
from datamask.evaluation.measures.clusters import cluster_labels, stored_clusters
from datamask.evaluation.pool import Pool
from datamask.runs import ablation_results, stored_measures
from datamask.work.kept import Progress
from datamask.work.result_file import Content, Entry
from tests.making.ablations import ROBUST, made_result
from tests.making.pools import made_corpus
from tests.making.raw_cache import RawCache

N, SIZE = 240, 60
RUNS = [SimpleNamespace(id=f"run-{letter}") for letter in "ab"]

Spoil = Callable[[dict, dict], None]
"""Changes the value and the arrays of a good file."""


@dataclass(frozen=True)
class Kind:
    """One kind of kept result.

    Attributes:
        entry, content: what a good file is called and holds.
        read: from the folder to the result, None where there is none to believe.
        wrong: by name, what no such result can hold: refused even where the digest fits.
    """

    entry: Entry
    content: Content
    read: Callable[[Path], Any]
    wrong: dict[str, Spoil] = field(default_factory=dict)


def put(name: str, place: Any, number: Any) -> Spoil:
    """Puts a number into an array."""

    def spoil(value: dict, arrays: dict) -> None:
        arrays[name][place] = number

    return spoil


def say(name: str, told: Any) -> Spoil:
    """Says something else in the value: what is given, or what it makes of what was there."""

    def spoil(value: dict, arrays: dict) -> None:
        value[name] = told(value[name]) if callable(told) else told

    return spoil


def cut(*names: str) -> Spoil:
    """Leaves the last row out."""

    def spoil(value: dict, arrays: dict) -> None:
        arrays.update({name: arrays[name][:-1] for name in names})

    return spoil


def graph(corpus: Corpus) -> Kind:
    made = build_neighbors(corpus.features, 64)
    arrays = {
        "indices": made.indices,
        "similarities": made.similarities,
        "listed": made.listed,
        "exact": np.array(True),
        "recall": np.array(1.0),
        "move": np.array(made.move),
        "slack": np.array(0.0),
    }
    return Kind(
        stored_graph(corpus, None).entry,
        Content({}, arrays),
        lambda folder: stored_graph(corpus, folder).find(),
        {
            "NaN": put("similarities", (3, 4), np.nan),
            "ten times": put("similarities", (3, 1), 10.0),
            "no row": put("indices", (3, 2), N),
            "other rows": cut("indices", "similarities", "listed"),
            "not itself": put("indices", (0, 0), 1),
        },
    )


def unfinished(corpus: Corpus) -> Kind:
    lists = NeighborLists.begun(N, 9, 4, "plan", Progress())
    lists.similarities[:, :3], lists.indices[:, :3], lists.done[0] = 0.5, 1, True
    arrays = {"similarities": lists.similarities, "indices": lists.indices, "done": lists.done}

    def read(folder: Path) -> Any:
        progress = graph_progress(corpus.fingerprint, folder)
        lists = NeighborLists.begun(N, 9, 4, "plan", progress)
        return lists if progress.resumed else None

    return Kind(
        stored_lists(corpus.fingerprint, None).entry,
        Content({"plan": "plan"}, arrays),
        read,
        {
            "NaN": put("similarities", (0, 0), np.nan),
            "ten times": put("similarities", (0, 0), 5.0),
            "no row": put("indices", (0, 0), N + 1),
            "other rows": cut("similarities", "indices"),
            "other plan": say("plan", "another"),
        },
    )


def layout(corpus: Corpus) -> Kind:
    arrays = {"points": corpus.features[:, :2].copy(), "kept": np.array(0.5), "fitted": np.array(N)}
    return Kind(
        stored_layout(corpus, None).entry,
        Content({}, arrays),
        lambda folder: stored_layout(corpus, folder).find(),
        {
            "NaN": put("points", (0, 1), np.nan),
            "ten times": put("kept", (), 5.0),
            "other rows": cut("points"),
            "fitted on more": put("fitted", (), N + 1),
        },
    )


def crowding(corpus: Corpus) -> Kind:
    return Kind(
        map_layout.stored_crowding(corpus, None).entry,
        Content({}, {"values": np.full(N, 0.5, np.float32)}),
        lambda folder: map_layout.crowding(corpus, folder),
        {"NaN": put("values", 0, np.nan), "ten times": put("values", 0, 5.0), "other rows": cut("values")},
    )


def ends(name: str, n: int = N, size: int = SIZE) -> Callable[[Corpus], Kind]:
    """Anchors of an objective by its reference solver, on a corpus of n rows."""

    def kind(corpus: Corpus) -> Kind:
        corpus = corpus if n == N else made_corpus(n, 12)

        def pool(folder: Path) -> Pool:
            return Pool(corpus, torch.device("cpu"), folder)

        with (
            tempfile.TemporaryDirectory() as elsewhere
        ):  # it needs a neighbour graph, which is kept where the pool says
            entry = stored_ends(pool(Path(elsewhere)), name, size).entry

        def read(folder: Path) -> Any:
            return stored_ends(pool(folder), name, size).find()

        content = computed(entry, lambda folder: diversity_anchor(pool(folder), name, size))
        arrays = content.arrays
        proof = next((each for each in ("weights", "y") if each in arrays), None)
        moved = np.packbits(np.roll(np.unpackbits(arrays["mask"], count=n), 1))
        return Kind(
            entry,
            content,
            read,
            {
                "best ten times": lambda value, _: value.update(best=value["best"] + 10 * abs(value["best"])),
                "random above best": lambda value, _: value.update(random=value["best"], best=value["random"]),
                "random moved": lambda value, _: value.update(
                    random=value["random"] - 0.1 * (value["best"] - value["random"])
                ),
                "best a little higher": lambda value, _: value.update(
                    best=value["best"] + 0.01 * (value["best"] - value["random"])
                ),
                "NaN": say("best", None),
                "another kind": say("best_kind", "certain"),
                "other rows": cut("mask"),
                "another size": put("mask", slice(None), arrays["mask"] ^ np.uint8(255)),
                "another subset": put("mask", slice(None), moved),
                **(
                    {
                        "a proof of nothing": put(proof, slice(None), size / n),
                        "no proof": lambda _, arrays: arrays.pop(proof),
                        "NaN in the proof": put(proof, 0, np.nan),
                    }
                    if proof
                    else {
                        "proved": say("best_kind", "proved"),
                        "proved by nothing": lambda value, arrays: (
                            value.update(best_kind="proved"),
                            arrays.update(weights=np.full(n, size / n)),
                        ),
                    }
                ),
            },
        )

    return kind


def clusters(corpus: Corpus) -> Kind:
    entry = stored_clusters(corpus, None).entry
    content = computed(entry, lambda folder: cluster_labels(corpus, folder))
    return Kind(
        entry,
        content,
        lambda folder: stored_clusters(corpus, folder).find(),
        {"no cluster": put("labels", 0, 200), "below": put("labels", 0, -1), "other rows": cut("labels")},
    )


def regions(corpus: Corpus) -> Kind:
    codes, names = (np.arange(N) % 4 - 1).astype(np.int32), np.array(["a, b", "b, c", "c, d"])
    wrong = {"no name": put("codes", 0, 3), "one name twice": put("names", 0, "b, c"), "other rows": cut("codes")}
    return Kind(
        named_regions.stored_regions(corpus, None, "UMAP").entry,
        Content({}, {"codes": codes, "names": names, "places": np.zeros((3, 2), np.float32)}),
        lambda folder: named_regions.load(corpus, folder, "UMAP"),
        wrong | {"no place": cut("places"), "below": put("codes", 0, -2)},
    )


def board(corpus: Corpus) -> Kind:
    cell = {"value": 1.0, "low": 0.5, "high": 1.5, "verdict": "", "note": "", "against_random": None}
    names = [*(run.id for run in RUNS), "random", "top-quality"]
    value = {
        "left": [],
        "n": N,
        "selected": dict.fromkeys(names, SIZE),
        "notes": ["a note"],
        "measures": [
            {
                "measure": "vendi",
                "label": "Vendi score",
                "says": "Number.",
                "better": "higher",
                "optimisable": True,
                "interval": "",
                "best": None,
                "tied": [],
                "selections": {name: dict(cell) for name in names},
            }
        ],
    }

    def first(change: dict) -> Spoil:
        return lambda value, _: value["measures"][0]["selections"]["run-a"].update(change)

    return Kind(
        stored_measures.stored_board(RUNS, corpus.fingerprint, None).entry,
        Content(value),
        lambda folder: stored_measures.stored_board(RUNS, corpus.fingerprint, folder).find(),
        {
            "text for a number": first({"value": "many"}),
            "upside down": first({"low": 2.0}),
            "other runs": say("selected", {"run-c": SIZE}),
            "more than all": say("selected", dict.fromkeys(names, N + 1)),
            "no measures": say("measures", None),
        },
    )


def agreed(corpus: Corpus) -> Kind:
    arrays = {"appeared": np.full(N, 16, np.int32), "selected": (np.arange(N) % 17).astype(np.int32)}
    return Kind(
        stored_measures.stored_agreement(RUNS[0], corpus.fingerprint, None).entry,
        Content({}, arrays),
        lambda folder: stored_measures.stored_agreement(RUNS[0], corpus.fingerprint, folder).find(),
        {
            "more often than there": put("selected", 0, 17),
            "below": put("selected", 0, -1),
            "other rows": cut("selected"),
        },
    )


def ablated(corpus: Corpus) -> Kind:
    result = replace(made_result(ROBUST), fingerprint=corpus.fingerprint)
    value = result.to_dict()
    return Kind(
        ablation_results.stored_result(None, corpus.fingerprint, value["key"]).entry,
        Content(value),
        lambda folder: _plain(ablation_results.load(folder, corpus.fingerprint, value["key"])),
        {
            "text for a number": lambda value, _: value["losses"][0][0].__setitem__(0, "much"),
            "a seed short of a method": lambda value, _: value["losses"][0].pop(),
            "another question": lambda value, _: value["question"].update(seed=1),
            "another version": say("version", 0),
            "no target": say("targets", []),
            "of rows that are not there": say("rows", 10**9),
        },
    )


def _plain(result: AblationResult | None) -> dict | None:
    return None if result is None else result.to_dict()


def selection(corpus: Corpus) -> Kind:
    kept = StudyCache("", corpus.fingerprint, "0123456789ab-")
    arrays = {"rows": np.arange(0, 120, 2, dtype=np.int32)}
    return Kind(
        kept.any("1-0-0").entry,
        Content({}, arrays),
        lambda folder: StudyCache(folder, corpus.fingerprint, "0123456789ab-").selection("1-0-0", SIZE, N).find(),
        {
            "no row": put("rows", -1, N),
            "twice": put("rows", 1, 0),
            "other size": cut("rows"),
        },
    )


def losses(corpus: Corpus) -> Kind:
    kept = StudyCache("", corpus.fingerprint, "0123456789ab-")
    return Kind(
        kept.any("of-one", LOSSES).entry,
        Content({}, {"losses": np.linspace(0, 9, SIZE)}),
        lambda folder: StudyCache(folder, corpus.fingerprint, "0123456789ab-").losses("of-one", SIZE).find(),
        {"NaN": put("losses", 0, np.nan), "below nothing": put("losses", 1, -1.0), "other texts": cut("losses")},
    )


def training(corpus: Corpus) -> Kind:
    kept = StudyCache("", corpus.fingerprint, "0123456789ab-")
    vectors = ("weights", "mean", "square")

    def read(folder: Path) -> dict | None:
        of_question = StudyCache(folder, corpus.fingerprint, "0123456789ab-")
        state = of_question.training("of-one", 30, torch.device("cpu")).find()
        return None if state is None else {"step": state.step, **state.arrays()}

    return Kind(
        kept.any("of-one", TRAINING).entry,
        Content({"step": 100}, {name: np.linspace(0, 1, 30, dtype=np.float32) for name in vectors}),
        read,
        {
            "NaN": put("weights", 0, np.nan),
            "no end": put("mean", 0, np.inf),
            "a negative square": put("square", 0, -1.0),
            "another model": cut(*vectors),
            "no step": say("step", 0),
            "half a step": say("step", 1.5),
        },
    )


def points(corpus: Corpus) -> Kind:
    masks = np.random.default_rng(0).random((3, N)) < 0.25
    values = [
        {
            "lamb": lamb,
            "quality": lamb,
            "diversity": 1 - lamb,
            "joint": lamb**2 + (1 - lamb) ** 2,
            "gap": gap,
            "solved_at": None,
            "exact": True,
        }
        for lamb, gap in ((0.0, None), (0.5, 1e-3), (1.0, 0.0))
    ]

    def second(change: dict) -> Spoil:
        return lambda value, _: value["points"][1].update(change)

    return Kind(
        kept_points.stored_points(corpus.fingerprint, "problem", N, None).entry,
        Content({"points": values}, {"bits": np.packbits(masks, axis=1)}),
        lambda folder: kept_points.find(corpus.fingerprint, "problem", N, folder) or None,
        {
            "one selection less": cut("bits"),
            "other rows": lambda _, arrays: arrays.update(bits=arrays["bits"][:, :-1]),
            "no bits": lambda _, arrays: arrays.update(bits=arrays["bits"].astype(np.int16)),
            "no points": say("points", []),
            "text for a number": second({"lamb": "0.5"}),
            "text for a choice": second({"exact": "yes"}),
            "worth more than its terms": second({"quality": 0.9}),
            "better than the best": second({"gap": -0.1}),
            "one lambda twice": second({"lamb": 0.0, "joint": 0.5}),
            "falling": lambda value, _: value["points"].reverse(),
            "more than is known": second({"name": "mine"}),
        },
    )


KINDS: dict[str, Callable[[Corpus], Kind]] = {
    "graph": graph,
    "half-built graph": unfinished,
    "layout": layout,
    "crowding": crowding,
    "ends of pairwise": ends("pairwise"),
    "ends of facility": ends("facility"),
    "proved ends of pairwise": ends("pairwise", 1200, 400),
    "clusters": clusters,
    "regions": regions,
    "scoreboard": board,
    "agreement": agreed,
    "ablation": ablated,
    "selection of a search": selection,
    "losses of a training": losses,
    "state of a training": training,
    "points along lambda": points,
}


def computed(entry: Entry, make: Callable[[Path], Any]) -> Content:
    """What is kept when something is computed in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        return RawCache(folder).find(entry, lambda content: content)


@functools.cache
def kind_of(name: str) -> Kind:
    """A kind on the corpus of this suite."""
    return KINDS[name](made_corpus(N, 12))


def kept(kind: Kind, folder: Path) -> Path:
    """A good file of that kind; where it lies."""
    assert RawCache(folder).keep(kind.entry, kind.content.value, kind.content.arrays)
    return RawCache(folder).path(kind.entry)


def plain(result: Any) -> Any:
    """A result as values that compare."""
    if hasattr(result, "__dataclass_fields__"):
        return {name: plain(getattr(result, name)) for name in result.__dataclass_fields__}
    if isinstance(result, dict):
        return {name: plain(one) for name, one in result.items()}
    if isinstance(result, (tuple, list)):
        return [plain(one) for one in result]
    return result.tolist() if hasattr(result, "tolist") else result
