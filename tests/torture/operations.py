"""What faults are injected into: operations of the program by their public doors, and what must hold afterwards."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.torture import materials
from tests.torture.contract import Finding
from tests.torture.judging import command

RUN = "half-done"


@dataclass(frozen=True)
class Operation:
    """Something a person does.

    Attributes:
        name: for the report.
        most: file operations that are tried, at least as many as it does: a tenth more is room for the next change.
        prepare: ``prepare(folder)`` puts down what it starts from.
        act: ``act(folder)`` does it; gives the exit code.
        check: ``check(folder)`` looks after a fault: nothing half-written is believed.
        again: ``again(folder)`` goes on, or does it once more, and must succeed; gives what came of it.
        swaps: whether the shard is also replaced in its middle.
    """

    name: str
    most: int
    prepare: Callable[[Path], None]
    act: Callable[[Path], int]
    check: Callable[[Path], None]
    again: Callable[[Path], str]
    swaps: bool = False


def corpus(folder: Path) -> Path:
    return folder / "corpus" / "part-0.parquet"


def put_corpus(folder: Path, seed: int = 0) -> None:
    """The shard, or another one with the same ids and other contents in its place."""
    data = materials.corpus_file().read_bytes() if seed == 0 else materials.shard_bytes(materials.table(seed=seed))
    corpus(folder).parent.mkdir(exist_ok=True)
    corpus(folder).write_bytes(data)


def _selects(setting: str, most: int) -> Operation:
    def words(folder: Path) -> list[str]:
        return materials.select_words(setting, folder / "out.parquet", folder / "runs", corpus(folder).parent)

    def again(folder: Path) -> str:
        runs = unfinished(folder / "runs")
        if not runs:
            command(*words(folder), doing="selecting once more", codes=(0,))
            word = "done anew"
        else:
            command("resume", runs[0], "--runs_dir", folder / "runs", doing="resuming", codes=(0,))
            word = "resumed"
        whole_selection(folder / "out.parquet", setting)
        check_runs(folder, setting, finished=True)
        return word

    def check(folder: Path) -> None:
        check_runs(folder, setting)
        if (folder / "out.parquet").exists():
            whole_selection(folder / "out.parquet", setting)

    return Operation(
        f"run {setting}",
        most,
        put_corpus,
        lambda folder: command(*words(folder), doing="select", codes=(0, 2))[0],
        check,
        again,
        swaps=True,
    )


def _resumes(setting: str, most: int) -> Operation:
    def prepare(folder: Path) -> None:
        shutil.copytree(materials.half_done(setting), folder / "runs")

    def words(folder: Path) -> list[str]:
        return ["resume", RUN, "--output", str(folder / "out.parquet"), "--runs_dir", str(folder / "runs")]

    def check(folder: Path) -> None:
        check_runs(folder, setting, among=RUN)
        if (folder / "out.parquet").exists():
            whole_selection(folder / "out.parquet", setting)

    def again(folder: Path) -> str:
        command(*words(folder), doing="resuming again", codes=(0,))
        whole_selection(folder / "out.parquet", setting)
        check_runs(folder, setting, among=RUN, finished=True)
        return "resumed"

    return Operation(
        f"resume {setting}", most, prepare, lambda folder: command(*words(folder), doing="resume")[0], check, again
    )


def _once_more(what: str, act: Callable[[Path], int], check: Callable[[Path], None]) -> Callable[[Path], str]:
    """The `again` of an operation that is simply done again: it must succeed, and leave what `check` expects."""

    def again(folder: Path) -> str:
        if act(folder):
            raise Finding(f"{what} does not succeed afterwards")
        check(folder)
        return "done again"

    return again


def _exports() -> Operation:
    setting = "counterfactual"

    def prepare(folder: Path) -> None:
        shutil.copytree(materials.finished(setting), folder / "runs")

    def act(folder: Path) -> int:
        return command(
            "runs",
            "export",
            materials.only_run(folder / "runs"),
            "--runs_dir",
            folder / "runs",
            "--ids",
            folder / "ids.csv",
            "--rows",
            folder / "rows.parquet",
            "--mask",
            folder / "masks",
            doing="export",
        )[0]

    def check(folder: Path) -> None:
        check_runs(folder, setting, finished=True)
        if (folder / "ids.csv").exists() and len((folder / "ids.csv").read_text().splitlines()) != 13:
            raise Finding("half a list of ids was left")
        if (folder / "rows.parquet").exists():
            whole_selection(folder / "rows.parquet", setting)
        for mask in (folder / "masks").glob("*.parquet") if (folder / "masks").exists() else ():
            if sum(pq.read_table(mask)["selected"].to_pylist()) != 12:
                raise Finding("half a mask was left")

    return Operation("export", 70, prepare, act, check, _once_more("the export", act, check))


def _uploads() -> Operation:
    data = materials.shard_bytes(materials.table(20))

    def act(folder: Path) -> int:
        from datamask.dashboard.data.inputs import keep_uploads
        from datamask.errors import DatamaskError

        try:
            keep_uploads([("s.parquet", io.BytesIO(data))], folder / "runs")
        except DatamaskError:
            return 2
        return 0

    def check(folder: Path) -> None:
        for path in (folder / "runs").rglob("*.parquet"):
            if not path.name.startswith(".") and path.read_bytes() != data:
                raise Finding("half an upload is kept under its name")

    return Operation("upload", 20, lambda folder: None, act, check, _once_more("the upload", act, check))


def _sweeps() -> Operation:
    setting = "counterfactual"

    def act(folder: Path) -> int:
        return command(
            "sweep",
            corpus(folder).parent,
            "--runs_dir",
            folder / "runs",
            "--select_ratio",
            "0.2",
            "--objective",
            "pairwise",
            "--estimator",
            "relaxed",
            "--n_epochs",
            "4",
            "--vary",
            "lamb=0.2,0.8",
            "--output",
            folder / "table.csv",
            *materials.COMMAND,
            doing="sweep",
        )[0]

    def check(folder: Path) -> None:
        check_runs(folder, setting, same=False)

    def again(folder: Path) -> str:
        if act(folder):
            raise Finding("the sweep does not succeed afterwards")
        lines = (folder / "table.csv").read_text().splitlines()
        if len(lines) != 3 or not all("done" in line for line in lines[1:]):
            raise Finding(f"the sweep's table afterwards has {len(lines) - 1} lines, expected 2 of done runs")
        return "done again"

    return Operation("sweep", 720, put_corpus, act, check, again)


TEXTS = (
    "the quick brown fox jumps over the lazy dog",
    "a stitch in time saves nine of the quick ones",
    "all the world is a stage and the fox a player",
    "time and tide wait for no lazy man of the world",
)


def _prepares() -> Operation:
    def prepare(folder: Path) -> None:
        (folder / "texts").mkdir()
        for shard in range(2):
            pq.write_table(
                pa.table({"text": [f"{TEXTS[k % 4]} {k % 7}" for k in range(24)]}),
                folder / "texts" / f"{shard}.parquet",
            )

    def act(folder: Path) -> int:
        return command(
            "prepare",
            folder / "texts",
            "--output",
            folder / "prepared",
            "--text_column",
            "text",
            "--dim",
            "4",
            doing="prepare",
        )[0]

    def check(folder: Path) -> None:
        if (folder / "prepared").exists():
            shards = sorted((folder / "prepared").glob("*.parquet"))
            if len(shards) != 2 or any(len(pq.read_table(path)) != 24 for path in shards):
                raise Finding("a half-prepared folder was left under its name")

    once_more = _once_more("preparing", act, check)

    def again(folder: Path) -> str:
        return "done already" if (folder / "prepared").exists() else once_more(folder)

    return Operation("prepare", 28, prepare, act, check, again)


def _scores() -> Operation:
    """Measuring a selection fills the caches; what a fault leaves there must not be believed."""
    setting = "greedy"

    def act(folder: Path) -> int:
        return command(
            "score",
            "--selection",
            materials.finished(setting) / materials.only_run(materials.finished(setting)) / "selection.parquet",
            corpus(folder).parent,
            "--runs_dir",
            folder / "runs",
            "--device",
            "cpu",
            "--json",
            doing="score",
        )[0]

    def again(folder: Path) -> str:
        if act(folder):
            raise Finding("scoring does not succeed afterwards")
        command(
            *materials.select_words(setting, folder / "out.parquet", folder / "runs", corpus(folder).parent),
            doing="selecting beside the caches that were left",
            codes=(0,),
        )
        whole_selection(folder / "out.parquet", setting)
        return "done again"

    return Operation("cached results", 150, put_corpus, act, lambda folder: None, again)


def _labels() -> Operation:
    def prepare(folder: Path) -> None:
        shutil.copytree(materials.finished("greedy"), folder / "runs")

    def act(folder: Path) -> int:
        from datamask.errors import DatamaskError
        from datamask.runs.store import RunStore

        try:
            run = RunStore(folder / "runs").list()[0]
            run.relabel(name="named", tags=["a"])
            run.request_stop()
        except DatamaskError:
            return 2
        return 0

    # what a killed writer left goes with the next label, not before: readers write nothing
    return Operation(
        "labels",
        44,
        prepare,
        act,
        lambda folder: check_runs(folder, "greedy"),
        _once_more("labelling", act, lambda folder: check_runs(folder, "greedy", finished=True)),
    )


# -- what must hold --------------------------------------------------------------------------------------------------


def whole_selection(path: Path, setting: str) -> None:
    """The file holds the selection of the unbroken run."""
    if materials.ids_of(path) != materials.selected_ids(setting):
        raise Finding(f"{path.name} holds other ids than those of the unbroken run")


def unfinished(root: Path) -> list[str]:
    """Runs that are not done."""
    from datamask.runs.store import RunStore

    return [run.id for run in RunStore(root).list() if run.status().state != "done"]


def check_runs(
    folder: Path, setting: str, *, among: str | None = None, finished: bool = False, same: bool = True
) -> None:
    """The store lists, a run that says done is whole, and a finished one has left nothing half-written."""
    from datamask.runs.store import RunStore

    root = folder / "runs"
    runs = RunStore(root).list()
    if among is not None and among not in [run.id for run in runs]:
        raise Finding(f"run {among} was lost")
    command("runs", "list", "--runs_dir", root, doing="listing runs", codes=(0,))
    for run in runs:
        state = run.status().state
        if state in ("running", "queued"):
            raise Finding(f"a run whose process has ended says {state}")
        if finished and same and state != "done":
            raise Finding(f"a run says {state} after it was gone on with: {run.status().error or run.status().message}")
        if (
            state == "done"
            and same
            and materials.ids_of(run.path / "selection.parquet") != materials.selected_ids(setting)
        ):
            raise Finding("a run says done and holds other ids than the unbroken one")
        if finished and (left := [path.name for path in run.path.iterdir() if path.name.startswith(".")]):
            raise Finding(f"files are left in the run's folder for good: {', '.join(left)}")
    if finished and (folder / "scratch").exists() and (left := sorted(map(str, (folder / "scratch").rglob("*")))):
        raise Finding(f"scratch of a run that is done is left for good: {', '.join(left)[:300]}")


OPERATIONS = (  # some writes go by the clock: on a busy machine a run takes a fifth more of them
    _selects("counterfactual", 420),
    _selects("greedy", 460),
    _selects("whole", 1_400),
    _resumes("counterfactual", 400),
    _resumes("reinforce", 420),
    _resumes("relaxed", 420),
    _exports(),
    _uploads(),
    _sweeps(),
    _prepares(),
    _scores(),
    _labels(),
)
