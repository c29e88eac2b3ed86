"""The process that runs UMAP: ``python -m datamask.corpus.umap_child FOLDER``, started by `datamask.corpus.projection`.

UMAP cannot be interrupted, and two fits in one process can abort it; a child can simply be killed. Reads ``input.npz``
in the folder, writes ``output.npy`` there, prints ``SHARE MESSAGE`` lines on stdout, and ends when its stdin closes,
which is when its parent has died.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from pathlib import Path

import numpy as np

SEEDED = 50_000
"""A seed makes UMAP use one core, so larger maps go without."""


def say(share: float, message: str) -> None:
    print(f"{share:.3f} {message}", flush=True)


class EpochLines:
    """A file for tqdm: turns its bar into lines for the parent."""

    def write(self, text: str) -> None:
        found = re.search(r"(\d+)/(\d+)", text)
        if found:
            done, total = int(found[1]), max(1, int(found[2]))
            say(0.3 + 0.7 * done / total, f"UMAP: epoch {done} of {total}")

    def flush(self) -> None:
        """tqdm calls this; `say` flushes each line itself."""


def fit(points: np.ndarray, indices: np.ndarray, similarities: np.ndarray, seed: int = 0) -> np.ndarray:
    """The recipe of the map, float32 ``(M, 2)``.

    Args:
        points: float32 ``(M, c)``, principal components of unit rows.
        indices, similarities: ``(M, k)``, nearest rows by cosine, the row itself first.
        seed: used up to `SEEDED` rows.
    """
    say(0.0, "Starting UMAP; its first half minute is compilation")
    # given as many neighbours as it is told to look at, of all points, UMAP never searches itself
    import umap

    distances = np.sqrt(np.maximum(0.0, 2.0 - 2.0 * similarities)).astype(np.float32)
    distances[:, 0] = 0.0
    seeded = len(points) <= SEEDED
    with warnings.catch_warnings():
        # no search index, no transform of new rows, one core under a seed: all as intended
        warnings.simplefilter("ignore")
        model = umap.UMAP(
            n_neighbors=indices.shape[1], min_dist=0.2, init="pca", random_state=seed if seeded else None,
            n_jobs=1 if seeded else max(1, (os.cpu_count() or 2) - 1), precomputed_knn=(indices, distances),
            tqdm_kwds={"file": EpochLines(), "disable": False, "bar_format": "{n_fmt}/{total_fmt}", "mininterval": 0.3})
        return model.fit_transform(points).astype(np.float32)


def _end_with_parent() -> None:
    # the bare descriptor: a thread inside a buffered read makes the interpreter abort when it ends
    while os.read(0, 1):
        pass
    os._exit(1)


def main(folder: str) -> int:
    """Fit what lies in `folder`."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(5)  # the page in front of the map should stay quick
    with np.load(Path(folder) / "input.npz", allow_pickle=False) as given:
        places = fit(given["points"], given["indices"], given["similarities"])
    np.save(Path(folder) / "output.npy", places)
    say(1.0, "UMAP is done")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
