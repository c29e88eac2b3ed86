"""The download of the selection that the map draws where the slider was moved: its ids, and what it is."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow.parquet as pq
from streamlit.delta_generator import DeltaGenerator

from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.analyses.lambda_slider.lambda_points import LambdaPoint
from datamask.dashboard.map import scene
from datamask.dashboard.shell import downloads


def offer(
    place: DeltaGenerator, corpus: Corpus, settings: SelectionConfig, point: LambdaPoint, key: str = "map_drawn"
) -> None:
    """The button that downloads a point; nothing for the shown run's own, which has its button.

    Args:
        place: what it holds is replaced. settings: of the slider's problem. point: the one on the map.
        key: of the button, another one where it takes the place of one of the same drawing.
    """
    if point.run:
        return
    count, preview = int(point.mask.sum()), " (preview)" if point.quick else ""
    place.download_button(
        f"Download {count:,} ids at λ {point.lamb:g}{preview}",
        downloads.of_rows(count, partial(file_of, corpus, settings, point)),
        on_click="ignore",
        file_name=f"lambda-{point.lamb:g}{'-preview' if point.quick else ''}.parquet",
        mime="application/vnd.apache.parquet",
        key=key,
        icon=":material/download:",
        type="tertiary",
        help="All ids of the selection on the map, filtered or not, with quality and their place in the shards, as "
        "parquet. A run that Solve makes at this λ may differ in a few of them.",
    )


def file_of(corpus: Corpus, settings: SelectionConfig, point: LambdaPoint) -> bytes:
    """The selected ids as parquet, with quality and place in the input; what they are stands under the metadata key
    ``datamask``.
    """
    table = scene.id_table(corpus, np.flatnonzero(point.mask))
    about = {
        "lambda": point.lamb,
        "preview": point.quick,
        "gap": point.gap,
        "fingerprint": corpus.fingerprint,
        "selection": replace(settings, lamb=point.lamb).to_dict(),
    }
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"datamask": json.dumps(about)}), sink, compression="zstd")
    return sink.getvalue()
