"""What one drawing of the Map shows, and what the map and all beside it have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from datamask.corpus import Corpus
from datamask.dashboard.linked import brushing, columns
from datamask.dashboard.linked.facets import Facet
from datamask.dashboard.map import scene
from datamask.dashboard.map.filters import Rows
from datamask.dashboard.shell import session
from datamask.dashboard.workspace.current import Current
from datamask.pages.map import colors, compared_panel
from datamask.pages.map.compared_panel import Compared
from datamask.runs.store import Run


@dataclass(frozen=True)
class Shown:
    """What one drawing of the page shows.

    Attributes:
        current: the current selection. against: what it is held against; None: nothing.
        scored: the run whose scores there are; None: there is none. scores: these. rows: what conditions look at.
    """

    current: Current
    against: Compared | None
    scored: Run | None
    scores: scene.RunColumns | None
    rows: Rows

    @classmethod
    def of(cls, current: Current) -> Shown:
        """What there is to show of a selection."""
        scored = colors.scored(current)
        scores = None if scored is None else scene.run_columns(scored)
        shown = cls(current, compared_panel.compared(current), scored, scores, Rows(0))
        cache_dir = session.store().cache_dir
        return replace(shown, rows=columns.rows(shown.corpus, cache_dir, shown.scores_of, scores, shown.selected))

    @property
    def corpus(self) -> Corpus:
        """The open corpus."""
        return self.current.workspace.corpus

    @property
    def selected(self) -> np.ndarray | None:
        """The current selection, bool ``(N,)``; None: nothing is selected."""
        return None if self.current.selection is None else self.current.selection.mask

    @property
    def own(self) -> bool:
        """Whether the current selection is a stored run."""
        return self.current.selection is not None and self.current.selection.run is not None

    @property
    def scores_of(self) -> str:
        """The id of the run whose scores there are, or nothing."""
        return "" if self.scored is None else self.scored.id


@dataclass(frozen=True)
class Linked:
    """What the map and all beside it have in common.

    Attributes:
        ground: where rows lie. view: the rows and the conditions on them. passing: bool ``(N,)``, those that are shown.
        few, others: the distributions in the rail, and below the map.
    """

    ground: scene.Ground
    view: brushing.Linked
    passing: np.ndarray
    few: Sequence[Facet]
    others: Sequence[Facet]
