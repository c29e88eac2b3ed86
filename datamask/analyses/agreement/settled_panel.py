"""The colours of the map that tell which samples of a run are settled: by its proof, or selected again on parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.linked import agreed, settled_rows
from datamask.dashboard.map.hexagons import Hexagons
from datamask.dashboard.map.layers import Blank, Layer
from datamask.dashboard.map.scene import RunColumns
from datamask.evaluation.result import NO_RESULT
from datamask.runs.store import Run
from datamask.runs.stored_measures import stored_agreement

NAMES = (settled_rows.BY_PROOF, settled_rows.BY_PARTS)


def layer(name: str, run: Run, columns: RunColumns, corpus: Corpus, cache_dir: Path, cells: Hexagons | None) -> Layer:
    """One of `NAMES` as a layer; a blank panel with the reason where the run has no such thing."""
    config = run.config.selection
    if name == settled_rows.BY_PROOF:
        if columns.settled is None or not (columns.settled >= 0).any():
            reason = settled_rows.no_proof(config, run.status().result or NO_RESULT)
            return Blank(settled_rows.title_of(name), reason)
        return settled_rows.layer(name, settled_rows.proof_codes(columns.settled, columns.eligible), cells)
    kept = stored_agreement(run, corpus.fingerprint, cache_dir).path
    changed = kept.stat().st_mtime_ns if kept.is_file() else 0
    codes = _part_codes(corpus.identity, run.id, changed, run, corpus, cache_dir, columns.selected)
    if codes is None:
        return Blank(settled_rows.title_of(name), settled_rows.no_parts(config))
    return settled_rows.layer(name, codes, cells)


@st.cache_resource(max_entries=4, show_spinner=False)
def _part_codes(
    identity: str, run_id: str, changed: int, _run: Run, _corpus: Corpus, _cache_dir: Path, _selected: np.ndarray
) -> np.ndarray | None:
    stored = stored_agreement(_run, _corpus.fingerprint, _cache_dir).find()
    if stored is None or len(stored[0]) != len(_corpus):
        return None
    return settled_rows.part_codes(agreed.agreed(*stored, _selected))
