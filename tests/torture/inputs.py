"""Part `inputs`: files, folders, run folders, caches, lists, addresses and uploads as nobody should make them."""

from __future__ import annotations

from pathlib import Path

from tests.torture import (
    bombs,
    crafted,
    lists_and_addresses,
    materials,
    recipe_files,
    resumed,
    run_folders,
    schemas,
    shard_mutants,
    text_files,
)
from tests.torture.contract import Part
from tests.torture.judging import Family

FAMILIES: tuple[Family, ...] = tuple(
    family
    # new ones last: a case keeps its number
    for module in (
        shard_mutants,
        schemas,
        crafted,
        run_folders,
        resumed,
        lists_and_addresses,
        text_files,
        recipe_files,
        bombs,
    )
    for family in module.FAMILIES
)


def _of(number: int) -> tuple[Family, int]:
    """The family of a case, and its number there."""
    for family in FAMILIES:
        if number < family.size:
            return family, number
        number -= family.size
    raise IndexError(f"there are {PART.size:,} cases")


def run(number: int, folder: Path) -> str:
    """Case `number`."""
    family, own = _of(number)
    return family.run(own, folder)


def describe(number: int) -> str:
    """Case `number` in a few words."""
    family, own = _of(number)
    return f"{family.name}: {family.about(own) or own}"


def warm() -> None:
    """Import and compile what cases need, and make what they start from: every case is a new process."""
    import torch

    from datamask import CorpusConfig, open_corpus
    from datamask.analyses.report import report
    from datamask.dashboard.frame import address
    from datamask.evaluation import id_lists
    from datamask.runs.store import RunStore

    torch.set_num_threads(1)
    materials.bases()
    open_corpus(CorpusConfig((str(materials.corpus_file()),)))
    for setting in materials.SETTINGS:
        materials.selected_ids(setting)
    for setting in resumed.LEARNERS:
        materials.half_done(setting)
    for setting in recipe_files.SETTINGS:
        recipe_files.recipe_text(setting)
    store = RunStore(materials.finished("counterfactual"))
    report(store.list()[0], store.list())
    assert address.PARTS and id_lists.read_rows


PART = Part(
    name="inputs",
    title="hostile and damaged input of every kind",
    size=sum(f.size for f in FAMILIES),
    run=run,
    weight=4.0,
    describe=describe,
)
