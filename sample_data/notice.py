"""The licenses of the packages whose docstrings the demo corpus holds."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sysconfig
from pathlib import Path

from sample_data.docstrings import PACKAGES, STANDARD_LIBRARY

LICENSES = {
    STANDARD_LIBRARY: "PSF-2.0",
    "plotly": "MIT",
    "pyarrow": "Apache-2.0",
    "streamlit": "Apache-2.0",
    "numba": "BSD-2-Clause",
}
"""Source -> SPDX name; the others of `PACKAGES` are under BSD-3-Clause."""

HOMES = {
    "streamlit": "Copyright Streamlit Inc. and Snowflake Inc.",
    "pyarrow": "Copyright The Apache Software Foundation",
}
"""Whose the packages under the Apache license are; its text is the file LICENSE of this project."""

_OTHERS = re.compile(r"^(-{4,}|={4,})", re.MULTILINE)
"""What stands before the licenses of bundled parts, which are not read."""


def versions() -> dict[str, str]:
    """Return the version of every source."""
    return {STANDARD_LIBRARY: platform.python_version()} | {name: importlib.metadata.version(name) for name in PACKAGES}


def notice(sources: list[str]) -> str:
    """Return the NOTICE: names, versions and licenses, then each license as its package has it."""
    known = versions()
    lines = [
        "The file demo.parquet holds docstrings of the packages below, unchanged but for their indentation. Each stays",
        "under the license of its package.",
        "",
        *(f"{source} {known[source]}: {LICENSES.get(source, 'BSD-3-Clause')}" for source in sources),
    ]
    for source in sources:
        lines += ["", "=" * 100, f"{source} {known[source]}", "", license_text(source).strip()]
    return "\n".join(lines) + "\n"


def license_text(source: str) -> str:
    """Return the license of a source without those of the parts that it bundles."""
    if source in HOMES:
        return f"{HOMES[source]}\nLicensed under the Apache License, Version 2.0; see the file LICENSE of this project."
    if source == STANDARD_LIBRARY:
        path = Path(sysconfig.get_paths()["stdlib"]) / "LICENSE.txt"
    else:
        distribution = importlib.metadata.distribution(source)
        found = [
            file
            for file in distribution.files or []
            if file.name.upper().startswith(("LICENSE", "COPYING")) and file.parts[0].endswith(".dist-info")
        ]
        path = Path(str(distribution.locate_file(found[0])))
    text = path.read_text(encoding="utf-8", errors="replace")
    return text if source == STANDARD_LIBRARY else _OTHERS.split(text)[0]
