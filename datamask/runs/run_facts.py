"""What a run's folder says beside its tables: where the references lie, and where the selection comes from."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import RunStateError
from datamask.evaluation.anchors import diversity_best
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem
from datamask.objectives import own
from datamask.polling import Poll
from datamask.runs.store import Run


def of_corpus(corpus: Corpus) -> dict[str, Any]:
    """Facts of the corpus, as they are kept in every run."""
    source = corpus.provenance
    return {
        "fingerprint": corpus.fingerprint,
        "n": len(corpus),
        "dim": corpus.dim,
        "total_rows": source.total_rows,
        "columns": source.columns,
        "files": list(source.files),
        "dropped": source.dropped,
        "notes": list(source.notes),
    }


def of_graph(pool: Pool) -> dict[str, Any]:
    """What is known about the neighbor graph; null where none was needed."""
    graph = pool.graph_facts()
    return {"neighbors": None if graph is None else graph.to_dict()}


def of_own_code(config: SelectionConfig, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What the code of objectives of one's own was, where the run has any.

    Raises:
        RunStateError: it has changed since the run began.
    """
    now = {name: own.code_digest(name) for name, _ in config.terms if catalogue.is_own(name)}
    if now and facts.get("own_code") not in (None, now):
        raise RunStateError(
            f"the code of {', '.join(now)} has changed since the run began, so it cannot go on; start a new one"
        )
    return {"own_code": now} if now else {}


def of_problem(posed: PosedProblem, poll: Poll) -> dict[str, Any]:
    """Facts of the posed problem: rows that may be taken, the ends of the scales, and what lies between them."""
    problem = posed.problem
    return {
        "selected": posed.wanted,
        "given": int(posed.given.sum()),
        **posed.ruled,
        "eligible": len(problem.eligible),
        "budget": problem.limits.wanted if problem.limits.by_tokens else None,
        "anchors": posed.anchors().to_dict(),
        "references": references(posed, posed.best_quality, poll),
        "switched_off": posed.switched_off(),
        "duplicates": posed.duplicates.facts(),
    }


def alone(pool: Pool, posed: PosedProblem, poll: Poll) -> dict[str, Tensor]:
    """What each term alone would select, bool ``(n,)``: ``quality``, as at lambda 1, and every diversity objective.

    The latter are the subsets behind the anchors' best ends, free of any rules.
    """
    problem = posed.problem
    tokens = problem.limits.most if problem.limits.by_tokens else None
    return {
        "quality": problem.subset(problem.joint.quality.scores[problem.eligible]),
        **{name: diversity_best(pool, name, problem.size, poll, tokens) for name in posed.diversity_anchors},
    }


def references(posed: PosedProblem, best_quality: Tensor, poll: Poll) -> dict[str, Any]:
    """Where random and top-quality subsets of the same size lie, on the run's scale and calibrated.

    Args:
        best_quality: bool ``(n,)``, the top-quality subset.
    """
    joint = posed.problem.joint
    at_random = {
        "quality": joint.quality_scale(posed.quality_anchor.random),
        "diversity": sum(term.weight * term.scale(posed.diversity_anchors[term.name].random) for term in joint.terms),
    }
    at_random["joint"] = joint.lamb * at_random["quality"] + (1 - joint.lamb) * at_random["diversity"]
    values = joint.evaluate(best_quality, poll, sampled=True)
    return {
        "random": at_random | {"calibrated": {"quality": 0.0, "diversity": 0.0, "joint": 0.0}},
        "top_quality": {
            "joint": values.joint,
            "quality": values.quality,
            "diversity": values.diversity,
            "calibrated": posed.shares(values).to_dict(),
        },
    }


def provenance(run: Run) -> dict[str, Any]:
    """What travels inside selection.parquet: the settings, the corpus and the command line."""
    facts = run.facts()
    return {
        "run_id": run.id,
        "config": run.config.to_dict(),
        "fingerprint": (run.whole or facts).get("fingerprint"),
        "versions": facts.get("versions"),
        "anchors": facts.get("anchors"),
        "warm_from": facts.get("warm_from"),
        "command": ["python", "-m", "datamask", *run.config.arguments()],
    }


def peak_memory() -> int:
    """The largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
