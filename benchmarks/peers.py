"""Other libraries' facility location, in an environment of their own; their selections are measured as ours are."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.contestants import opened, pool_of

PEERS = ("apricot", "submodlib", "submodlib-sparse", "kmedoids", "onebatch", "pyversity-cover", "gist-select")
PEER = Path(__file__).with_name("selection_peer.py")
NEIGHBORS = 80
"""List length of the sparse mode: ours at ratio 0.1."""


def memory_limit() -> int:
    """Half of the machine's memory, in bytes: a peer that wants more fails instead of taking the machine with it."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def peer(who: str, python: str, problem: dict, limit: float) -> dict:
    """A peer library's selection, kernel included in its time, on our scale; quality plays no part, so lambda is 0."""
    import torch

    from datamask.evaluation.anchors import diversity_anchor
    from datamask.objectives.joint import Scale

    corpus = opened(problem["path"], problem["rows"])
    memory = memory_limit()
    with tempfile.TemporaryDirectory() as folder:
        features, out = Path(folder) / "x.npy", Path(folder) / "rows.npy"
        np.save(features, corpus.features)
        numbers = [str(problem["size"]), str(out), str(memory), str(NEIGHBORS)]
        command = [python, str(PEER), who, str(features), *numbers]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return {"note": f"over {limit:.0f} s"}
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["killed"])[-1]
            return {"note": f"failed with {memory / 1e9:.0f} GB of memory: {reason[:150]}"}
        rows = np.load(out)
    pool = pool_of(corpus, problem["cache"])
    mask = torch.zeros(len(corpus), dtype=torch.bool)
    mask[torch.from_numpy(rows)] = True
    raw = pool.function("facility", problem["size"]).value(mask)
    value = Scale.calibrated(diversity_anchor(pool, "facility", problem["size"]))(raw)
    return {"joint": value, "diversity": value, "raw": raw, **json.loads(done.stdout)}
