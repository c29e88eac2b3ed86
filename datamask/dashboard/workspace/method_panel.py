"""Open the selection of an ablation's method: the stored run of equal settings, or one that is started for it."""

from __future__ import annotations

from collections.abc import Sequence

from datamask.ablation.methods import equal, settings_of
from datamask.ablation.result import Method
from datamask.config import SelectionConfig
from datamask.dashboard.shell import view as views
from datamask.dashboard.workspace import keeping
from datamask.dashboard.workspace.workspace import Workspace
from datamask.runs.store import Run


def stored_run(runs: Sequence[Run], settings: SelectionConfig) -> Run | None:
    """The newest finished run of equal settings, whatever seed and device it had; None: there is none."""
    return next((run for run in runs if equal(run.config.selection, settings)), None)


def open_method(workspace: Workspace, method: Method, ratio: float) -> None:
    """Show the stored run of a method, or start one, which the Map shows once it has ended. For a button's `on_click`.

    What cannot be done is kept in `trouble`.

    Args:
        workspace: the view on the open corpus. ratio: the select ratio.
    """
    settings = settings_of(method, ratio, len(workspace.corpus))
    run = stored_run(workspace.runs, settings)
    if run is not None:
        views.choose_run(run.id)
        return
    keeping.start(workspace, settings)
