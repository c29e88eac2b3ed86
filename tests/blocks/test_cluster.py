"""Blocks as tasks of a Ray cluster of three nodes on this machine, of which one is lost."""

from __future__ import annotations

import json
import threading
import time

import pyarrow.parquet as pq
import pytest

from datamask.blocks.plan import Folder
from datamask.blocks.solving import solve_block
from datamask.cli import main
from datamask.cluster import solve_on_ray
from tests.blocks.test_blocks import BLOCKS, corpus, cut, joined, solved  # noqa: F401

ray = pytest.importorskip("ray")


def noted_step(folder: Folder, block: int) -> None:
    """A step that notes where it begins; the first one of block 2 takes until its node is lost."""
    node = ray.get_runtime_context().get_node_id()
    notes = folder.path / "notes"
    first = block == 2 and not any(folder.path.glob("notes/2-*"))
    notes.mkdir(exist_ok=True)
    (notes / f"{block}-{time.time_ns()}").write_text(node)
    if first:
        time.sleep(600)
    solve_block(folder, block)


def test_a_lost_node_costs_its_block_alone(corpus, tmp_path, capsys):  # noqa: F811
    from ray.cluster_utils import Cluster

    expected, _ = solved(corpus, tmp_path / "alone", capsys)
    folder = tmp_path / "cluster"
    cut(corpus, folder)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes = {}
        for _ in range(3):
            node = cluster.add_node(num_cpus=1)
            nodes[node.node_id] = node

        def lose() -> None:
            while not (begun := list(folder.glob("notes/2-*"))) or not begun[0].read_text():
                time.sleep(0.05)
            cluster.remove_node(nodes[begun[0].read_text()], allow_graceful=False)

        ray.cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["noted_step"]))
        loser = threading.Thread(target=lose, daemon=True)
        loser.start()
        solve_on_ray(Folder(folder), cluster.address, step=noted_step)
        loser.join()
        begun = sorted(path.name.partition("-")[0] for path in (folder / "notes").iterdir())
        assert begun == sorted(["1", "2", "3", "4"] * 2 + ["2"])
        assert joined(folder, capsys)[0] == expected
        # a cluster that has nothing to do: the command joins what is there
        words = ["--select_ratio", "0.2", "--into", str(folder), "--output", str(tmp_path / "out.parquet"), "--json"]
        assert main(["select", str(corpus), "--blocks", str(BLOCKS), "--ray", cluster.address, *words]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["selected"] == 180
        assert pq.read_table(tmp_path / "out.parquet") == expected
    finally:
        cluster.shutdown()
