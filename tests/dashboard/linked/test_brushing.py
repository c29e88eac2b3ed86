"""What a session has brushed belongs to one corpus."""

from __future__ import annotations

from types import SimpleNamespace

from datamask.dashboard.linked import brushing
from datamask.dashboard.map import canvas_map
from datamask.dashboard.map.filters import Between, Filters
from datamask.dashboard.map.regions import Region


def test_another_corpus_lets_go_of_conditions_and_regions_and_an_address_is_for_the_first(monkeypatch):
    drawn = canvas_map.awaiting("UMAP", (Region.lasso([0, 1, 0], [0, 0, 1]),))
    condition = Filters().taking(Between("quality", 0.0, 1.0))
    state = {brushing.FILTERS: (None, condition), f"{brushing.MAP}_memory": drawn}
    monkeypatch.setattr(brushing.st, "session_state", state)
    first, other = SimpleNamespace(fingerprint="one"), SimpleNamespace(fingerprint="two")
    for _ in range(2):
        assert brushing.kept(first) == condition and drawn.regions
    assert brushing.kept(other) == Filters() and not drawn.regions
    assert brushing.kept(first) == Filters()
