"""Reading what a page drew."""

from __future__ import annotations

import json

from streamlit.testing.v1 import AppTest


def spec(app: AppTest) -> dict:
    """The page's plotly figure."""
    return json.loads(app.get("plotly_chart")[0].proto.spec)


def titles(app: AppTest) -> list[str]:
    """The titles of the figure's panels."""
    return [note["text"][3:-4] for note in spec(app)["layout"]["annotations"] if note["text"].startswith("<b>")]


def captions(app: AppTest) -> str:
    """All captions of the page as one text."""
    return " ".join(caption.value for caption in app.caption)
