"""The current selection as a file: its ids, and what it is. Pure."""

from __future__ import annotations

import json
from functools import partial

import numpy as np

from datamask.corpus import Corpus
from datamask.dashboard.map import scene
from datamask.dashboard.shell import downloads
from datamask.dashboard.workspace.selection import Selection
from datamask.tables import table_bytes

KEPT = "selection.parquet"
"""In a run's folder: the selected ids."""


def content(corpus: Corpus, selection: Selection) -> downloads.Content:
    """What the download button is given: the run's own file where it is a run."""
    if selection.run is not None:
        return downloads.of_file(selection.run.path / KEPT)
    return downloads.of_rows(selection.count, partial(ids, corpus, selection))


def name(selection: Selection) -> str:
    """What the file is called."""
    if selection.run is not None:
        return f"{selection.run.id}.parquet"
    return f"lambda-{selection.lamb:g}{'-preview' if selection.preview else ''}.parquet"


def ids(corpus: Corpus, selection: Selection) -> bytes:
    """The selected ids as parquet, with quality and place in the input; what they are stands under the metadata key
    ``datamask``.
    """
    table = scene.id_table(corpus, np.flatnonzero(selection.mask))
    about = {
        "lambda": selection.lamb,
        "preview": selection.preview,
        "quality": selection.quality,
        "diversity": selection.diversity,
        "gap": selection.gap,
        "fingerprint": corpus.fingerprint,
        "selection": selection.settings.to_dict(),
    }
    return table_bytes(table.replace_schema_metadata({"datamask": json.dumps(about)}), ".parquet")
