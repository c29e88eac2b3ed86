"""How fast `.jsonl.zst` is read, against `pyarrow.json.open_json` over the same stream; in what memory.

    python -m benchmarks.json_lines [--gigabytes 1] [--rounds 5] [--work FOLDER] [--output FILE.json]

A made file of lines like DCLM's (text, url, ids, nested metadata with scores) is read by each contestant in turn, each
time in a process of its own. `pyarrow` is `open_json` as it comes. `look` is what `open_shard` reads to know rows and
types; `open_json` takes these from the first block. `rows` are all columns of a file that was looked at. Ratios are
pyarrow's seconds over ours, the median of the rounds. Memory is the most anonymous memory beyond that of the process
before it reads, looked at every hundredth of a second. The file holds the same 32 MB of lines over and over, which is
further apart than zstd looks back.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json

from benchmarks.corpus import machine
from benchmarks.million import commit
from datamask.corpus.readers.shard import open_shard
from datamask.corpus.text_shards import BATCH_ROWS

NEEDED = 0.6
"""The speed of rows over that of `open_json`."""

BOUND = 128 << 20
"""Bytes that reading lines of ordinary length may take beyond the process itself."""

UNIT = 32 << 20
LOOK_SECONDS = 0.01


def made_lines(size: int, seed: int = 0) -> Iterator[bytes]:
    """Lines of about so many bytes: half of them with every letter beyond ASCII escaped."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("etaoinshrdlucmfwyp", k=draw.randrange(1, 11))) for _ in range(20_000)]
    made = number = 0
    while made < size:
        text = " ".join(draw.choices(words, k=max(20, int(draw.lognormvariate(5.8, 1.1)))))
        row = {
            "text": text.replace(" a", '\n"a" é ', 5) if number % 2 else text,
            "url": f"https://example.org/{number}/{draw.choice(words)}",
            "id": f"<urn:uuid:{draw.getrandbits(128):032x}>",
            "metadata": {
                "score": draw.random(),
                "WARC-Type": "response",
                "WARC-Date": "2020-01-01T00:00:00Z",
                "Content-Length": len(text),
                "lang": {"en": draw.random(), "fr": 0.01},
            },
            "previous_word_count": text.count(" ") + 1,
            "duplicate_spans": [[1, 2]] if number % 7 == 0 else [],
            "fasttext_score": draw.random(),
        }
        line = json.dumps(row, ensure_ascii=number % 4 < 2).encode() + b"\n"
        made, number = made + len(line), number + 1
        yield line


def make(path: Path, size: int) -> int:
    """Write the file; its bytes unpacked."""
    unit = b"".join(made_lines(min(size, UNIT)))
    times = max(1, round(size / len(unit)))
    with pa.CompressedOutputStream(str(path), "zstd") as sink:
        for _ in range(times):
            sink.write(unit)
    return times * len(unit)


def read_by_pyarrow(path: str) -> int:
    """All rows as `open_json` gives them."""
    with pa.input_stream(path, compression="zstd") as stream:
        return sum(batch.num_rows for batch in pa.json.open_json(stream))


def anonymous_bytes() -> int:
    """Memory of this process that is no part of a file."""
    status = Path("/proc/self/status").read_text().split("RssAnon:")[1]
    return int(status.split()[0]) * 1024


def timed(work: Callable[[], int], before: int) -> dict[str, Any]:
    """What one call takes. before: memory of the process before it read anything."""
    most, ended = before, threading.Event()

    def look() -> None:
        nonlocal most
        while not ended.wait(LOOK_SECONDS):
            most = max(most, anonymous_bytes())

    watcher = threading.Thread(target=look)
    watcher.start()
    wall, cpu = time.perf_counter(), time.process_time()
    rows = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    ended.set()
    watcher.join()
    return {"rows": rows, "wall": wall, "cpu": cpu, "anonymous_bytes": most - before}


def contest(contestant: str, path: str) -> dict[str, Any]:
    """What each part of reading takes, in this process."""
    before = anonymous_bytes()
    if contestant == "pyarrow":
        return {"pyarrow": timed(lambda: read_by_pyarrow(path), before)}
    look = timed(lambda: open_shard(path).rows, before)
    shard = open_shard(path)  # remembered
    return {"look": look, "rows": timed(lambda: sum(b.num_rows for b in shard.batches(None, None, BATCH_ROWS)), before)}


def measure(path: Path, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """What each contestant takes in every round; a first round warms the page cache and does not count."""
    found: dict[str, list[dict[str, Any]]] = {"pyarrow": [], "look": [], "rows": []}
    for number in range(rounds + 1):
        for contestant in ("pyarrow", "datamask"):
            command = [sys.executable, "-m", "benchmarks.json_lines", "--contestant", contestant, "--file", str(path)]
            out = subprocess.run(command, capture_output=True, text=True, check=True)
            for name, taken in json.loads(out.stdout).items():
                if number:
                    found[name].append(taken)
    return found


def summary(found: dict[str, list[dict[str, Any]]], size: int) -> dict[str, Any]:
    """Medians, ratios and whether they are what is needed."""
    counts = {taken["rows"] for each in found.values() for taken in each}
    if len(counts) != 1:
        raise RuntimeError(f"the contestants read different numbers of rows: {sorted(counts)}")
    ours = {"rows": found["rows"], "look": found["look"]}
    both = zip(found["look"], found["rows"], strict=True)
    ours["look_and_rows"] = [{kind: look[kind] + rows[kind] for kind in ("cpu", "wall")} for look, rows in both]
    ratios = {
        f"{name}_{kind}": statistics.median(
            theirs[kind] / taken[kind] for theirs, taken in zip(found["pyarrow"], each, strict=True)
        )
        for name, each in ours.items()
        for kind in ("cpu", "wall")
    }
    memory = {name: max(taken["anonymous_bytes"] for taken in each) for name, each in found.items()}
    return {
        "rows": counts.pop(),
        "decoded_bytes": size,
        "speed_over_open_json": {name: round(ratio, 3) for name, ratio in ratios.items()},
        "needed": NEEDED,
        "holds": ratios["rows_cpu"] >= NEEDED and ratios["rows_wall"] >= NEEDED,
        "seconds": {
            name: {kind: [round(taken[kind], 2) for taken in each] for kind in ("cpu", "wall")}
            for name, each in found.items()
        },
        "anonymous_bytes": memory,
        "bound": BOUND,
        "within_bound": max(memory["look"], memory["rows"]) <= BOUND,
    }


def main() -> None:
    """Make the file, measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of lines, unpacked")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, help="folder for the file, which is removed; default: a temporary one")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "json-lines.json")
    parser.add_argument("--contestant", choices=["pyarrow", "datamask"], help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contestant:
        print(json.dumps(contest(options.contestant, options.file)))
        return
    result: dict[str, Any] = {"commit": commit(), "machine": machine()}
    with tempfile.TemporaryDirectory(prefix="json-lines-", dir=options.work) as folder:
        path = Path(folder) / "made.jsonl.zst"
        size = make(path, int(options.gigabytes * 1e9))
        result |= {"packed_bytes": path.stat().st_size} | summary(measure(path, options.rounds), size)
    result["load_average_at_end"] = [round(value, 2) for value in os.getloadavg()]
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
