"""Draw what each diversity objective selects from one made-up corpus: the picture in the help of the objective menu.

    python docs/draw_objectives.py            # some seconds; writes datamask/dashboard/runs/objectives.svg

A thousand points in the plane, in four groups: a crowd in the middle, families of duplicates around it, a niche of good
rows to one side, outliers of low quality at the rim. Nearness in the plane becomes cosine similarity by random Fourier
features of a Gaussian kernel (Rahimi and Recht 2007), so the picture shows what the objectives are given. The points
are made up; what is selected is computed.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    # run as a script, the folder on the path is this one and not the project's
    sys.path.insert(0, str(ROOT))

from datamask import catalogue, learning  # noqa: E402 - after the path
from datamask.config import SelectionConfig  # noqa: E402
from datamask.corpus.corpus import ColumnNames, Corpus, Provenance  # noqa: E402
from datamask.evaluation.pool import Pool  # noqa: E402
from datamask.evaluation.problems import pose  # noqa: E402
from datamask.learning.loop import learn  # noqa: E402
from datamask.objectives.contract import no_poll  # noqa: E402

OUTPUT = ROOT / "datamask" / "dashboard" / "runs" / "objectives.svg"

GROUPS = ("crowd", "duplicates", "good niche", "outliers")
FAMILIES, FAMILY = 28, 7
SIZES = (640, FAMILIES * FAMILY, 90, 24)
OBJECTIVES = ("facility", "pairwise", "disf", "vendi")
RATIO, LAMBDA = 0.15, 0.5
WIDTH = 0.5
"""Standard deviation of the kernel, in the units of the plane: cosine 0.14 at twice this distance."""

DIM = 128
APART = 0.24
"""Duplicates lie on top of each other; they are drawn this far around their place, so that they can be counted."""

PANEL, STEP = (320, 236), 25.0
"""Units of one panel, and of one unit of the plane; a pixel has two, as a help text has some 640 by 250 pixels."""

HEAD, FOOT = 34, 40
"""Units above a panel's points and below them, for words."""

TOLD = ("crowd", "duplicates")
"""Groups whose selected share stands below each panel: by these the objectives differ most."""

SELECTED, LEFT_OUT = "#2B86C5", "#8A949E"
"""Two tones that read on a light and on a dark ground."""

STYLE = (
    "text{font:20px system-ui,sans-serif;fill:#31333F}.b{font:600 24px system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){text{fill:#E6EAEE}}"
    f"path{{fill:none;stroke-linecap:round}}.s{{stroke:{SELECTED};stroke-width:6.5}}"
    f"#all{{stroke:{LEFT_OUT};stroke-width:3.4;opacity:.7}}"
)


def planted(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return points ``(n, 2)``, group ``(n,)``, quality ``(n,)`` and features ``(n, DIM)``, the same for a seed."""
    random = np.random.default_rng(seed)
    crowd = random.normal(size=(SIZES[0], 2)) * [0.8, 0.65]
    angle = np.arange(FAMILIES) * 2 * np.pi / FAMILIES + 0.1
    reach = np.where(np.arange(FAMILIES) % 2 == 0, 1.0, 1.3)
    centers = np.stack([2.9 * reach * np.cos(angle), 2.2 * reach * np.sin(angle)], 1)
    copies = np.repeat(centers, FAMILY, axis=0) + 0.035 * random.normal(size=(SIZES[1], 2))
    niche = np.array([5.2, 0.2]) + 0.3 * random.normal(size=(SIZES[2], 2))
    angle = random.uniform(0, 2 * np.pi, SIZES[3])
    outliers = np.stack([5.6 * np.cos(angle), 3.9 * np.sin(angle)], 1) + 0.3 * random.normal(size=(SIZES[3], 2))
    points = np.concatenate([crowd, copies, niche, outliers])
    group = np.repeat(np.arange(len(GROUPS), dtype=np.int8), SIZES)
    middle, spread = np.array([0.0, 0.3, 1.5, -1.0]), np.array([1.0, 0.3, 0.4, 0.4])
    quality = middle[group] + spread[group] * random.normal(size=len(group))
    phase = points @ random.normal(size=(2, DIM // 2)) / WIDTH
    features = np.concatenate([np.cos(phase), np.sin(phase)], 1) / np.sqrt(DIM // 2)
    return points.astype(np.float32), group, quality, np.ascontiguousarray(features, np.float32)


def solve(cache_dir: Path) -> dict[str, np.ndarray]:
    """Select with every objective of the picture by the default method; by objective a mask, bool ``(n,)``."""
    _, group, quality, features = planted()
    n = len(group)
    fingerprint = hashlib.sha256(features.tobytes() + quality.tobytes()).hexdigest()
    columns: ColumnNames = {"id": "id", "feature": "features", "quality": ["quality"], "length": None, "text": None}
    corpus = Corpus(
        pa.array(np.arange(n)),
        quality,
        features,
        None,
        pa.table({"group": pa.array(group)}),
        np.zeros(n, np.int32),
        np.arange(n),
        fingerprint,
        Provenance(("made up",), n, n, columns),
    )
    pool = Pool(corpus, torch.device("cpu"), cache_dir)
    masks = {}
    for name in OBJECTIVES:
        config = SelectionConfig.from_options(objective=name, lamb=LAMBDA, select_ratio=RATIO)
        estimator = learning.load(config.estimator)(pose(pool, config, no_poll).problem, config)
        masks[name] = learn(estimator, poll=no_poll).mask.cpu().numpy()
    return masks


def shares(mask: np.ndarray) -> dict[str, float]:
    """By group, the share of its rows that a mask selects."""
    group = planted()[1]
    return {name: float(mask[group == place].mean()) for place, name in enumerate(GROUPS)}


def drawing(masks: Mapping[str, np.ndarray]) -> str:
    """Return the picture as SVG: panels next to each other, all points small and gray, the selected large and blue."""
    points, group, *_ = planted()
    points = points.copy()
    copies = np.flatnonzero(group == GROUPS.index("duplicates"))
    angle = np.arange(len(copies)) * 2 * np.pi / FAMILY
    points[copies] += APART * np.stack([np.cos(angle), np.sin(angle)], 1).astype(np.float32)
    width, height = PANEL
    places = np.rint(points * [STEP, -STEP] + [width / 2, height / 2]).astype(int)
    size = (len(masks) * width, height + HEAD + FOOT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0] // 2}" height="{size[1] // 2}" '
        f'viewBox="0 0 {size[0]} {size[1]}"><style>{STYLE}</style>',
        f'<defs><path id="all" d="{_dots(places)}"/></defs>',
    ]
    for place, (name, mask) in enumerate(masks.items()):
        said = ", ".join(f"{label} {shares(mask)[label]:.0%}" for label in TOLD)
        parts.append(
            f'<g transform="translate({place * width})"><text class="b" x="6" y="24">{_label(name)}</text>'
            f'<g transform="translate(0 {HEAD})"><use href="#all"/><path class="s" d="{_dots(places[mask])}"/></g>'
            f'<text x="6" y="{HEAD + height + 18}">{said}</text></g>'
        )
    return "".join(parts) + "</svg>\n"


def _label(name: str) -> str:
    return catalogue.objective(name).label.partition(" (")[0]


def _dots(places: np.ndarray) -> str:
    """A path of lines without length, which round ends make dots."""
    return "".join(f"M{x} {y}h0" for x, y in places)


def main() -> None:
    """Solve and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    output = parser.parse_args().output
    torch.set_num_threads(1)  # so few rows: more threads only wait for each other
    with tempfile.TemporaryDirectory() as folder:
        output.write_text(drawing(solve(Path(folder))), encoding="utf-8")
    print(f"wrote {output} ({output.stat().st_size:,} bytes)")


if __name__ == "__main__":
    main()
