"""Blocks as tasks of a Ray cluster. Nothing else knows Ray.

A task is the next step of one block. It writes its file into the folder, which all nodes share, and a file that is
there is not made again. So a worker or node that dies costs the block that it had, and the same command goes on where
another one was killed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from datamask.blocks.plan import Folder
from datamask.blocks.solving import solve_block
from datamask.errors import DatamaskError, OptionError, RunStateError
from datamask.process import ask_threads, asked_threads
from datamask.work.context import UNWATCHED, Work

RETRIES = 3
"""How often a block is given to another worker when its worker dies."""

POLL_SECONDS = 0.3

Step = Callable[[Folder, int], object]


def solve_on_ray(folder: Folder, address: str, work: Work = UNWATCHED, step: Step = solve_block) -> None:
    """Do all steps of all blocks on a cluster: first the picks, then the swaps.

    Args:
        address: of the cluster, or ``auto``. step: what a task does with a block.

    Raises:
        OptionError: Ray is not installed, or no cluster answers. RunStateError: a block was lost too often.
        InputError and others: as the step raises them. Stopped: from `work`; tasks that run are ended.
    """
    try:
        import ray
    except ImportError as error:
        raise OptionError("--ray needs Ray: pip install 'datamask[ray]', here and on every node") from error
    plan = folder.plan(work.poll)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise OptionError(f"--ray {address}: no cluster answers; start one with `ray start --head`") from error
    try:
        most = max(int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"])
        threads = max(1, min(asked_threads() or 1, most))  # Ray waits for ever where no node has as many
        task = ray.remote(num_cpus=threads, max_retries=RETRIES)(_task)
        for share, kind in ((0.0, "picks"), (0.5, "selected")):
            part, blocks = work.part(share, share + 0.5), folder.missing(kind, plan)
            waiting = [task.remote(step, str(folder.path), block, threads) for block in blocks]
            while waiting:
                work.poll()
                done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=POLL_SECONDS)
                for each in done:
                    _check(ray, each)
                part.report(1 - len(waiting) / len(blocks), f"Blocks: {kind}")
    finally:
        ray.shutdown()


def _task(step: Step, path: str, block: int, threads: int) -> None:
    """What a worker does."""
    ask_threads(threads)
    step(Folder(Path(path)), block)


def _check(ray: Any, task: Any) -> None:
    """Raise what a task raised, in this process."""
    try:
        ray.get(task)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, DatamaskError) else error from None
    except ray.exceptions.RayError as error:
        raise RunStateError(
            f"a block was lost {RETRIES + 1} times; give the command again to go on: {error}"
        ) from error
