"""What a dataset card shows of a run: a list of allowed settings and facts, for a card may be public.

Names of files stand in the place of their paths on this machine. What is not listed here, such as a run's notes, is not
shown, also not in the settings, in the recipe and in the metadata of the ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.options import CORPUS_OPTIONS, OPTIONS, IdFile, InputPaths, Option
from datamask.storage.address import harmless, is_address

OF_CORPUS = (
    *("inputs", "features", "scores", "id_column", "feature_column", "length_column", "quality_columns"),
    *("quality_within", "rows", "seed", "drop_invalid", "make_ids", "feature_bits", "split"),
)
OF_SELECTION = (
    *("objective", "lamb", "select_ratio", "budget", "estimator", "preset", "scale", "n_rollout", "n_epochs"),
    *("partial", "max_lr", "min_lr", "init", "polish", "temperature", "clusters", "clip", "inside", "center", "prune"),
    *("components", "collapse", "pin", "ban", "given", "quotas", "neighbors", "seed", "device"),
)
OF_RECIPE = (
    *("run", "name", "fingerprint", "total_rows", "files", "columns", "versions", "estimator", "calibrated"),
    *("upper_bound", "settings", "rows", "selected", "share_selected", "kept", "share_kept", "otherwise"),
    *("beyond_the_run", "prune", "collapse", "center", "components", "quotas", "pinned", "left_out"),
)
"""Of where a recipe was learned."""


def public_config(config: RunConfig) -> RunConfig:
    """Return the settings that a card shows; the others are at their defaults."""
    corpus = CorpusConfig(**_shown(config.corpus, CORPUS_OPTIONS, OF_CORPUS))
    if config.selection.scratch_dir is not None:  # it selects from all rows, and pages draw so many
        corpus = replace(corpus, rows=None)
    hidden = {name: option.default for name, option in OPTIONS.items() if name not in OF_SELECTION}
    selection = replace(config.selection, **hidden | _shown(config.selection, OPTIONS, OF_SELECTION))
    ids = None if config.ids is None else public_name(config.ids)
    return RunConfig(corpus, selection, one_line(config.name), ids=ids, ignore_unknown=config.ignore_unknown)


def public_recipe(text: str, config: RunConfig) -> str:
    """Return the file of a recipe, JSON, with the facts that a card shows of where it was learned.

    Args:
        config: of its run.
    """
    recipe = json.loads(text)
    facts = {name: value for name, value in recipe["learned"].items() if name in OF_RECIPE}
    facts |= {"files": [public_name(str(file)) for file in facts["files"]]} if "files" in facts else {}
    facts |= {"settings": public_config(config).selection.to_dict()} if "settings" in facts else {}
    return json.dumps({**recipe, "learned": facts}, indent=1, allow_nan=False) + "\n"


def public_name(path: str) -> str:
    """Return the name of a local file or folder, or an address without secrets."""
    return harmless(path) if is_address(path) else Path(path).absolute().name or "corpus"


def one_line(text: str) -> str:
    """Return text on one line; halves of characters, which no file can hold, become question marks."""
    return " ".join(text.encode(errors="replace").decode().split())


def _shown(settings: CorpusConfig | SelectionConfig, options: Mapping[str, Option], names: tuple[str, ...]) -> Any:
    return {name: _public(options[name], getattr(settings, name)) for name in names}


def _public(option: Option, value: Any) -> Any:
    if isinstance(option.kind, InputPaths):
        return tuple(map(public_name, value))
    return public_name(value) if isinstance(option.kind, IdFile) and value is not None else value
