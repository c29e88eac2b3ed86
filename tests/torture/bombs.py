"""Bombs opened by several visitors of one process: the memory stays within the limit, and others are served."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import datamask.memory
from datamask import CorpusConfig
from datamask.corpus.shared_corpora import SharedCorpora
from datamask.errors import DatamaskError
from datamask.work import ledger
from tests.torture.contract import Finding
from tests.torture.judging import ACCEPTED, Family, attempted, check_sentence
from tests.torture.materials import table

MEMORY = 1 << 30
WAIT_SECONDS = 2.0
"""How long a visitor waits for memory here, of 30."""

PROGRAM = 200 << 20
"""Bytes that the program takes besides the ledger: what it imports and compiles in a case."""

COLUMNS = ("chunk_id", "text", "domain", "feature_arr")
CASES = tuple(itertools.product((3, 6, 12), COLUMNS, (32, 128, 240)))


def bomb(path: Path, column: str, megabytes: int) -> None:
    """Write a small file of which one column takes so much when it is read."""
    if column == "feature_arr":
        rows, dim = 1_000, megabytes * 262
        wide = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(rows * dim, np.float32)), dim)
        content = table(rows, feature_arr=wide)
    elif column == "chunk_id":
        content = table(megabytes * 4, chunk_id=pa.array([f"{k}" + "z" * (1 << 18) for k in range(megabytes * 4)]))
    else:
        rows = megabytes * 4
        texts = pa.array(["z" * (1 << 18)])
        long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), texts)
        content = table(rows, **{column: long})
    pq.write_table(content, path, compression="zstd", store_schema=False, dictionary_pagesize_limit=1 << 28)


def most_resident() -> int:
    """Bytes of memory that this process had at most."""
    return 1024 * int(next(x for x in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in x).split()[1])


def run(number: int, folder: Path) -> str:
    """So many visitors open one such file each, while another opens small ones."""
    visitors, column, megabytes = CASES[number]
    for place in range(visitors):
        bomb(folder / f"{place}.parquet", column, megabytes)
    pq.write_table(table(), folder / "small.parquet")
    groups = folder / "sys/fs/cgroup"
    groups.mkdir(parents=True)
    (groups / "memory.max").write_text(str(MEMORY))
    datamask.memory.ROOT, ledger.WAIT_SECONDS = str(folder), WAIT_SECONDS
    Path("/proc/self/clear_refs").write_text("5")  # what the makers of the files took does not count
    before, shared = most_resident(), SharedCorpora()
    opened: list[object] = []
    refused: list[str] = []
    broken: list[str] = []

    def visit(place: int) -> None:
        try:
            opened.append(shared.get(CorpusConfig((str(folder / f"{place}.parquet"),))))
        except DatamaskError as error:
            refused.append(str(error))
        except Exception as error:
            broken.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=visit, args=(place,)) for place in range(visitors)]
    for thread in threads:
        thread.start()
    served = 0
    while served < 1 or any(thread.is_alive() for thread in threads):
        config = CorpusConfig((str(folder / "small.parquet"),), seed=served)
        word, _ = attempted(lambda config=config: shared.get(config), "opening a small corpus meanwhile")
        if word != ACCEPTED:
            raise Finding(f"{describe(number)}: a small corpus was refused meanwhile")
        served += 1
    if broken:
        raise Finding(f"{describe(number)}: {broken[0]}")
    for sentence in refused:
        check_sentence(sentence, describe(number))
    if (taken := most_resident() - before) > ledger.SHARE * MEMORY + PROGRAM:
        raise Finding(f"{describe(number)}: takes {taken >> 20:,} MiB, reserved are at most 80 % of {MEMORY >> 20:,}")
    return f"{'all' if not refused else 'some' if opened else 'none'} opened"


def describe(number: int) -> str:
    """Case `number` in a few words."""
    visitors, column, megabytes = CASES[number]
    return f"{visitors} visitors, each a bomb of {megabytes} MB in {column}"


FAMILIES = (Family("bombs together", len(CASES), run, describe),)
