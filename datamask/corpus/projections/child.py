"""The process that fits: ``python -m datamask.corpus.projections.child MODULE:FUNCTION FOLDER``, started by `layouts`.

A fit cannot be interrupted, and two of UMAP's in one process can abort it; a child can simply be killed. Reads
``input.npz`` in the folder, writes ``output.npy`` there, prints ``SHARE MESSAGE`` lines on stdout, and ends when its
stdin closes, which is when its parent has died.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from pathlib import Path

import numpy as np


def say(share: float, message: str) -> None:
    # not sys.stdout, which a fit may turn to itself to hear what its library prints
    print(f"{share:.3f} {message}", flush=True, file=sys.__stdout__)


def _end_with_parent() -> None:
    # the bare descriptor: a thread inside a buffered read makes the interpreter abort when it ends
    while os.read(0, 1):
        pass
    os._exit(1)


def main(name: str, folder: str) -> int:
    """Fit what lies in `folder` by the function called `name`."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(5)  # the page in front of the map should stay quick
    module, _, function = name.partition(":")
    fit = getattr(importlib.import_module(module), function)
    with np.load(Path(folder) / "input.npz", allow_pickle=False) as inputs:
        places = fit(inputs["points"], inputs["indices"], inputs["similarities"], 0, say)
    np.save(Path(folder) / "output.npy", np.asarray(places, np.float32))
    say(1.0, "The fit is done")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
