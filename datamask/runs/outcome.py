"""What a run ends in: its summary, the table of all rows, and the selection."""

from __future__ import annotations

import resource
import sys

import numpy as np
import pyarrow as pa
from torch import Tensor

from datamask.corpus.corpus import Corpus
from datamask.learning.learner import Problem
from datamask.objectives.contract import Poll
from datamask.objectives.joint import Anchor, Joint
from datamask.runs.store import Run


def of(run: Run, corpus: Corpus, problem: Problem, calibrated: Joint, anchors: dict, mask: Tensor,
       logits: Tensor | None, poll: Poll) -> tuple[dict, pa.Table, pa.Table]:
    """The summary, rows.parquet and selection.parquet of a final subset.

    Args:
        problem: with the objective on the run's scale; calibrated: the same on the calibrated one.
        mask: bool ``(n,)``; logits: ``(n,)``, NaN where not eligible, or None.

    Returns:
        Summary keys: the raw exact values of the final subset on the whole corpus, the same calibrated, the anchors.
        The tables' ``marginal_quality`` and ``marginal_diversity`` are frozen-size marginals on the run's scale and
        ``score`` is their sum weighted by lambda.
    """
    config = run.config.selection
    values = problem.joint.evaluate(mask, poll)
    shares = _rescaled(calibrated, values)
    raw_diversity = sum(weight * values.raw_diversity[name] for name, weight in config.terms)
    selected = mask.cpu().numpy()
    summary = {
        "run_id": run.id,
        "estimator": config.estimator,
        "n": len(corpus),
        "selected": int(selected.sum()),
        "tokens": None if corpus.lengths is None else float(corpus.lengths[selected].sum()),
        "quality": values.raw_quality,
        "diversity": raw_diversity,
        "joint": config.lamb * values.raw_quality + (1 - config.lamb) * raw_diversity,
        "objectives": values.raw_diversity,
        "calibrated": shares,
        "scale": config.scale,
        "anchors": {"quality": anchors["quality"].to_dict(),
                    "diversity": {name: anchor.to_dict() for name, anchor in anchors["diversity"].items()}},
        "upper_bound": None,
        "gap": None,
    }
    quality, diversity = (part.cpu().numpy() for part in problem.joint.final_marginals(mask, poll))
    score = config.lamb * quality + (1 - config.lamb) * diversity
    strength = score if logits is None else logits.double().cpu().numpy()
    eligible = np.zeros(len(corpus), dtype=bool)
    eligible[problem.eligible.cpu().numpy()] = True
    files = pa.array(list(corpus.provenance.files))
    columns = {
        corpus.provenance.columns["id"]: corpus.ids,
        "source_file": pa.DictionaryArray.from_arrays(pa.array(corpus.source_file), files),
        "source_row": pa.array(corpus.source_row),
        "selected": pa.array(selected),
        "eligible": pa.array(eligible),
        "logit": _logit_column(logits, len(corpus)),
        "score": pa.array(score),
        "quality": pa.array(corpus.quality),
        "marginal_quality": pa.array(quality),
        "marginal_diversity": pa.array(diversity),
    }
    rows = pa.table(columns)
    members = selected.nonzero()[0]
    # equal strength is ordered by the seeded hash, as everywhere
    order = members[np.lexsort((problem.ties.cpu().numpy()[members], -strength[members]))]
    taken = rows.take(pa.array(order))
    id_column = corpus.provenance.columns["id"]
    selection = pa.table({
        id_column: taken[id_column],
        "rank": pa.array(np.arange(1, len(order) + 1)),
        **{name: taken[name] for name in ("logit", "score", "quality", "marginal_quality", "marginal_diversity")},
        "source_file": taken["source_file"].cast(pa.string()),
        "source_row": taken["source_row"],
    })
    return summary, rows, selection


def references(joint: Joint, calibrated: Joint, anchors: dict, best_quality: Tensor, poll: Poll) -> dict:
    """Where random and top-quality subsets of the same size lie, on the run's scale and calibrated."""
    at_random = {"quality": joint.quality_scale(anchors["quality"].random),
                 "diversity": sum(term.weight * term.scale(anchors["diversity"][term.name].random)
                                  for term in joint.terms)}
    at_random["joint"] = joint.lamb * at_random["quality"] + (1 - joint.lamb) * at_random["diversity"]
    values = joint.evaluate(best_quality, poll)
    return {
        "random": at_random,
        "top_quality": {"joint": values.joint, "quality": values.quality, "diversity": values.diversity,
                        "calibrated": _rescaled(calibrated, values)},
    }


def constant_terms(anchors: dict) -> list[str]:
    """A sentence for every term that no selection can change and that is therefore switched off."""
    named: dict[str, Anchor] = {"quality": anchors["quality"], **anchors["diversity"]}
    return [f"{name} is the same for every selection of this size, so it is switched off"
            for name, anchor in named.items() if anchor.constant]


def provenance(run: Run) -> dict:
    """What travels inside selection.parquet: the settings, the corpus and the command line."""
    facts = run.facts()
    return {"run_id": run.id, "config": run.config.to_dict(), "fingerprint": facts.get("fingerprint"),
            "versions": facts.get("versions"), "anchors": facts.get("anchors"),
            "command": ["python", "-m", "datamask", *run.config.arguments()]}


def peak_memory() -> int:
    """The largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _rescaled(calibrated: Joint, values) -> dict[str, float]:
    """Raw values as shares of the attainable gain."""
    quality = calibrated.quality_scale(values.raw_quality)
    diversity = sum(term.weight * term.scale(values.raw_diversity[term.name]) for term in calibrated.terms)
    return {"quality": quality, "diversity": diversity,
            "joint": calibrated.lamb * quality + (1 - calibrated.lamb) * diversity}


def _logit_column(logits: Tensor | None, n: int) -> pa.Array:
    if logits is None:
        return pa.nulls(n, pa.float32())
    values = logits.float().cpu().numpy()
    return pa.array(values, mask=~np.isfinite(values))
