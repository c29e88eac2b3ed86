"""The recipe of a finished run: its corpus opened again, its settings and what it selected, and from these the rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datamask.config import CorpusConfig, QualityColumn, SelectionConfig
from datamask.corpus.centered import centered, common_mean
from datamask.corpus.components import Components
from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError, RunStateError
from datamask.evaluation.result import NO_RESULT, RunResult
from datamask.options.components import asked_components
from datamask.polling import Poll
from datamask.recipes.derive import derive, refusal
from datamask.recipes.learned import LearningSelection
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import Recipe, read_recipe
from datamask.runs.contents import changed, open_file
from datamask.runs.mapping import corpus_of, selected_from
from datamask.runs.store import Run
from datamask.storage.address import path_of
from datamask.work.context import UNWATCHED, Work

if TYPE_CHECKING:
    from datamask.evaluation.selection import Selection

WHOLE_RULE = "recipe.json"
"""In the folder of a run on mapped arrays: its rule, made when all rows were open."""

OPENED = 0.8
"""Share of the work that is done when the corpus is open."""


def recipe_of(run: Run, work: Work = UNWATCHED, *, corpus: Corpus | None = None) -> Recipe:
    """The rule behind a run's selection.

    Args:
        corpus: the run's own, where the caller has it open; None opens it.

    Raises:
        RunStateError: the run has not finished. OptionError: its objective has no rule.
        InputError: a shard is gone or has changed since the run, or there is no threshold.
        Stopped: from `work`.
    """
    config, facts = run.config, run.facts()
    run.selection()  # rows.parquet of an unfinished run is not the last word
    if why := refusal(config.selection):
        raise OptionError(f"run {run.id} has no recipe: {why[:1].lower()}{why[1:].rstrip('.')}")
    for path in facts.get("files", []):
        open_file(path_of(path), work.poll)
    if "anchors" not in facts:
        raise RunStateError(f"run {run.id} kept no ends of its scales, without which its score cannot be made again")
    if run.whole is not None:
        if (run.path / WHOLE_RULE).is_file():
            return read_recipe(run.path / WHOLE_RULE)
        raise OptionError(f"run {run.id} has no recipe: {run.whole.get('no_rule', 'it kept none')}")
    if corpus is None:
        corpus = corpus_of(run, work.part(0.0, OPENED))
    _check_same(run, corpus, facts)
    work.report(OPENED, "finding the rule")
    rows = run.rows(("selected", "eligible"), optional=("given",))
    given = rows["given"].to_numpy() if "given" in rows.column_names else np.zeros(len(corpus), bool)
    masks = rows["selected"].to_numpy(), rows["eligible"].to_numpy(), given
    recipe = _recipe(run, corpus, masks, run.status().result or NO_RESULT, work.poll)
    work.report(1.0, "finding the rule")
    return recipe


def recipe_of_selection(run: Run, selection: Selection, poll: Poll) -> Recipe:
    """The rule behind the selection with which a run is about to end.

    Raises:
        OptionError: its settings have no rule. InputError: as `recipe_of`. Stopped: from `poll`.
    """
    masks = selection.mask, selection.eligible, selection.given
    return _recipe(run, selection.corpus, masks, selection.result, poll)


def _recipe(
    run: Run, corpus: Corpus, masks: tuple[np.ndarray, np.ndarray, np.ndarray], result: RunResult, poll: Poll
) -> Recipe:
    """Args: masks: bool ``(N,)`` each, the selected, the eligible and the given rows."""
    config, facts = run.config, run.facts()
    columns, values = quality_columns(corpus, selected_from(run))
    selection = config.selection
    space = centered(corpus, poll) if selection.center else corpus
    return derive(
        LearningSelection(
            corpus,
            space,
            common_mean(corpus, poll) if selection.center else None,
            _components(selection, space, poll),
            selection,
            facts["anchors"],
            tuple(FrozenQuality.of(column, part) for column, part in zip(columns, values)),
            values,
            *masks,
            named_rows(corpus, selection.pin),
            named_rows(corpus, selection.ban),
        ),
        poll,
        **_provenance(run, facts, result),
    )


def _components(config: SelectionConfig, space: Corpus, poll: Poll) -> Components | None:
    """The components on which a rule's second moments are defined, as `Pool.leading`; None: all dimensions."""
    kept = asked_components(config.components, space.dim, None)
    if kept == space.dim or "disf_fixed" not in dict(config.terms):
        return None
    return Components.of(space, kept, poll)


def _check_same(run: Run, corpus: Corpus, facts: dict[str, Any]) -> None:
    """Refuse a corpus that is not what the run read.

    Raises:
        InputError: it has other rows, ids, qualities, features or lengths.
    """
    if facts.get("fingerprint") != corpus.fingerprint:
        raise changed(Path(corpus.provenance.files[0]), "it, or another shard, holds other rows")


def quality_columns(corpus: Corpus, config: CorpusConfig) -> tuple[tuple[QualityColumn, ...], np.ndarray]:
    """The columns, and what they hold in the shards, float64 ``(Q, N)``."""
    names = list(corpus.provenance.columns["quality"])
    columns = config.quality_columns or tuple(QualityColumn(name) for name in names)
    if len(columns) == 1 and columns[0].transform == "raw":
        weight = columns[0].weight
        return columns, (corpus.quality / weight if weight else corpus.quality)[None]
    return columns, np.stack([corpus.metadata[name].to_numpy().astype(np.float64) for name in names])


def named_rows(corpus: Corpus, path: str | None) -> np.ndarray:
    """The rows that a file of ids names, bool ``(N,)``."""
    mask = np.zeros(len(corpus), bool)
    if path is not None:
        from datamask.evaluation.id_lists import read_rows

        mask[read_rows(path, corpus).rows] = True
    return mask


def _provenance(run: Run, facts: dict[str, Any], result: RunResult) -> dict[str, Any]:
    return {
        "run": run.id,
        "name": run.config.name,
        "fingerprint": (run.whole or facts).get("fingerprint"),
        "total_rows": facts.get("total_rows"),
        "files": list(facts.get("files", [])),
        "columns": facts.get("columns"),
        "versions": facts.get("versions"),
        "estimator": run.config.selection.estimator,
        "calibrated": result.calibrated.to_dict(),
        "upper_bound": result.certificate.upper_bound,
        "settings": json.loads(json.dumps(run.config.selection.to_dict(), default=str)),
    }
