"""The sheet of keys: opened from the menu of every page, and it has the keys that the map hears."""

from __future__ import annotations

import re

from datamask.dashboard.frame import keys
from datamask.dashboard.shell import components

BROWSER = components.FILES


def test_the_sheet_opens_from_the_menu_and_stays_closed_until_then(page, explained):
    app = page()
    assert not any("On a map" in element.value for element in app.markdown)
    explained(app)
    app.button(key="keys").click().run()
    assert not app.exception
    shown = " ".join(element.value for element in app.markdown)
    for place in ("On a map", *(place for place, _ in keys.OTHERS)):
        assert place in shown
    # a place is a heading, not a cell that is as wide as the keys below it
    assert shown.count("| Keys | Action |") == 1 + len(keys.OTHERS)
    assert "| `←` `→` `↑` `↓` | move the map |" in shown and "| `L` `B` `P` |" in shown and "`Shift+←`" in shown


def test_every_key_that_a_map_hears_stands_on_the_sheet():
    script = (BROWSER / "hands.js").read_text(encoding="utf-8")
    table = re.search(r"const keys = \{(.*?)\n  \};", script, re.S)
    heard = {first or second for first, second in re.findall(r'(?:"(.)"|\b(\w+)): \(\) =>', table[1])}
    assert len(heard) > 10 and heard == {key for names, _ in keys.MAP for key in names}
