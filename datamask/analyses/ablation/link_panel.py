"""What the stored ablations say of the current selection, as a link from the Map to Evidence."""

from __future__ import annotations

from datamask.ablation.offer import Offer, offer
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.workspace.workspace import Workspace
from datamask.runs import ablation_results


def found(workspace: Workspace) -> Offer:
    """What the stored ablations of the open corpus say of the current selection."""
    results = ablation_results.results(session.store().cache_dir, workspace.corpus.fingerprint)
    return offer(results, workspace.settings)


def show(workspace: Workspace) -> None:
    """Draw the link."""
    offered = found(workspace)
    answer = {} if offered.result is None else {"answer": offered.result.question.key}
    views.page_link(
        "pages/evidence.py",
        words.plain(offered.sentence, 120),
        ":material/balance:",
        address={**views.now().address, **answer},
        width="content",
    )
