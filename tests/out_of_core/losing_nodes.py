"""A cluster of Ray of three nodes that share a folder, which loses a node in each phase of a solution and gets another.

    python -m tests.out_of_core.losing_nodes FOLDER [NODES]

NODES: how many it loses at most. Writes ``outcome.json`` into FOLDER, as Ray prints lines of its own: ``same``, whether
the rows are those that one process selects; ``phases``, how many could lose a node; ``lost``, how many nodes were;
``repeated``, how many tasks were begun more than once, and ``most``, how often one was at most.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import ray
from ray.cluster_utils import Cluster

from datamask.config import SelectionConfig
from datamask.out_of_core.engines import Engine, open_engine
from datamask.out_of_core.engines.contract import ONE_THREAD
from datamask.out_of_core.facility import solve_facility
from datamask.out_of_core.scratch import Scratch
from tests.making.shards import SerialEngine, clustered, scratch_of
from tests.out_of_core.watched import WatchedEngine

STORE = 78_643_200
"""Bytes: the least that Ray allows."""


def solved(scratch: Scratch, engine: Engine) -> np.ndarray:
    config = SelectionConfig.from_options(objective="facility", lamb=0.4)
    return solve_facility(scratch, config, 50, engine, listed_rows=300).selected


def parent(process: int) -> int:
    """The process that started it: of a worker of Ray, its node's."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def lose_nodes(cluster: Cluster, engine: WatchedEngine, solving: Future) -> int:
    """Remove the node of every task that hangs, and add another in its place, until all is solved; how many were."""
    lost = 0
    while not solving.done():
        for each in engine.hung()[lost:]:
            raylet = parent(each.process)
            cluster.remove_node(
                next(node for node in cluster.worker_nodes if node.all_processes["raylet"][0].process.pid == raylet),
                allow_graceful=False,
            )
            cluster.add_node(num_cpus=1, object_store_memory=STORE)
            lost += 1
        time.sleep(0.05)
    return lost


def outcome(folder: Path, cluster: Cluster, most: int) -> dict[str, int | bool]:
    """What a solution came to whose cluster loses nodes meanwhile."""
    features, quality = clustered(600, seed=3)
    expected = solved(scratch_of(folder / "here", features, quality), SerialEngine())
    scratch = scratch_of(folder / "there", features, quality)
    inner = open_engine("ray", address=cluster.address)
    # nodes can be added in the main thread alone
    with WatchedEngine(inner, folder / "notes", hang=0, most=most) as engine, ThreadPoolExecutor(1) as pool:
        solving = pool.submit(solved, scratch, engine)
        lost = lose_nodes(cluster, engine, solving)
        begun = engine.begun()
    times = Counter((each.phase, each.number) for each in begun)
    return {
        "same": bool(np.array_equal(solving.result(), expected)),
        "phases": len({each.name for each in begun}),
        "lost": lost,
        "repeated": sum(count > 1 for count in times.values()),
        "most": max(times.values()),
    }


def main(folder: Path, most: int = 1000) -> None:
    # the node of the driver computes nothing
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": STORE})
    # while it is the only one: a driver on a node that is lost would be lost with it
    ray.init(address=cluster.address, log_to_driver=False, runtime_env={"env_vars": ONE_THREAD})
    for _ in range(2):
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    (folder / "outcome.json").write_text(json.dumps(outcome(folder, cluster, most)))
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
