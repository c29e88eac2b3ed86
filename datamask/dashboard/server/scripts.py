"""Where the scripts of the web server lie: app.py, its pages, its settings, and the demo corpus.

In a checkout they stand beside the package; an installed package carries them in a folder of its own (setup.py).
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
INSTALLED = PACKAGE / "served"
"""Their folder in an installed package; not there in a checkout."""

IS_INSTALLED = (INSTALLED / "app.py").is_file()
FOLDER = INSTALLED if IS_INSTALLED else PACKAGE.parent
APP = FOLDER / "app.py"
