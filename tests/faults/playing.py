"""Plays the visitor on a tree in which a fault was brought back, in a process of its own, and tells how it ended."""

from __future__ import annotations

import json
import os
import sys
import traceback
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path


def play(tree: str, folder: str, steps: str) -> None:
    """Play until the oracle sees something, and print on the last line whether it did.

    Args:
        tree: of the patched modules; all others are today's. folder: for corpora and runs.
    """

    class Patched:
        """Finds the patched modules before the others."""

        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            file = Path(tree, *name.split(".")).with_suffix(".py")
            return spec_from_file_location(name, file) if file.is_file() else None

    sys.meta_path.insert(0, Patched)  # type: ignore[arg-type]
    from hypothesis import Phase

    from tests.dashboard.workspace import test_one_view

    seen = False
    try:
        with test_one_view.visited(Path(folder)):
            test_one_view.play(int(steps), phases=(Phase.generate,))
    except BaseException as error:
        traceback.print_exc()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        seen = isinstance(error, AssertionError) and where == test_one_view.__file__
    print(json.dumps(seen), flush=True)
    os._exit(0)  # threads of the worker may still be solving
