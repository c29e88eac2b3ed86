"""The target of an ablation: the text that selections are judged by.

Light on purpose: pages and command line name it, and `datamask.analyses.ablation.compute` measures on it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from datamask.errors import InputError, OptionError

STEERING = ("ids", "features", "examples")
"""Kinds of which half gives the quality to select by, while the other half judges."""

KINDS = ("random", "column", "texts", "quality", "score", *STEERING)

LEAST_TEXTS = 60
"""Held-out texts below which no interval would mean anything."""

LEAST_EXAMPLES, MOST_EXAMPLES = 100, 10_000
"""Examples that a target of half steering, half judging takes."""

MOST_BYTES = 1 << 30
"""Of a file of texts: a device has no end. A pipe is read like a file."""


@dataclass(frozen=True)
class Target:
    """The text that selections should teach a small model to predict.

    Attributes:
        kind: ``random`` held-out rows; ``column``: held-out rows with `value` in the metadata column `column`;
            ``texts``: the person's own, given beside the question; ``quality``: the best quarter of the held-out rows
            by quality, which is circular and only good for looking at; ``score``: the best quarter of the held-out rows
            by the numbers in `column`. Of examples that a person cares about, one half
            gives the quality to select by and the other half judges: ``ids`` of rows of the corpus, ``features`` of
            the same model, or texts (``examples``), where the corpus's features were made by ``datamask prepare``.
        name: of own texts or examples, for people. digest: of their content, so that another text is another question.
    """

    kind: str = "random"
    column: str = ""
    value: str = ""
    name: str = ""
    digest: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise OptionError(
                "--target must be one of random, quality, COLUMN=VALUE, high:COLUMN, a file of texts, or ids:FILE, "
                f"features:FILE or examples:FILE, got {self.kind!r}"
            )
        if self.kind == "score" and not self.column:
            raise OptionError("--target high:COLUMN needs the name of a column with numbers, got none")
        if self.kind == "column" and not self.column:
            raise OptionError(f"--target COLUMN=VALUE needs the name of a column, got {self.column!r}={self.value!r}")

    @property
    def circular(self) -> bool:
        """Whether the target was made from the quality that the selections maximise."""
        return self.kind == "quality"

    @property
    def steers(self) -> bool:
        """Whether half of the target gives the quality to select by; the corpus's own quality is then not used."""
        return self.kind in STEERING

    @property
    def label(self) -> str:
        """What people call it, within a sentence."""
        return {
            "random": "held-out text of the corpus",
            "quality": "the best quarter of the held-out text by quality",
            "column": f"held-out text with {self.column} = {self.value}",
            "score": f"the best quarter of the held-out text by {self.column}",
            "texts": self.name or "your own texts",
            "ids": f"the samples named in {self.name or 'your list'}",
            "features": f"the examples in {self.name or 'your file'}",
            "examples": f"the example texts in {self.name or 'your file'}",
        }[self.kind]

    @classmethod
    def own(cls, texts: list[str], name: str = "your own texts") -> Target:
        """The target of texts that come beside the question."""
        digest = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return cls("texts", name=name, digest=digest)

    @classmethod
    def examples(cls, kind: str, content: bytes, name: str = "") -> Target:
        """The target of a file of examples, one of `STEERING`, which comes beside the question."""
        return cls(kind, name=name, digest=hashlib.sha256(content).hexdigest()[:16])


def texts_of(content: str, name: str = "the text") -> list[str]:
    """The texts of a file: one per line, or the ``text`` of each line where the lines are JSON objects. Empty lines and
    repeated texts are left out.

    Raises:
        InputError: a line begins like JSON, and is none with a ``text``.
    """
    texts: dict[str, None] = {}
    for number, line in enumerate(content.splitlines(), 1):
        line = line.strip().lstrip("\ufeff")
        if line.startswith("{") and name.lower().endswith((".jsonl", ".json", ".ndjson")):
            try:
                line = str(json.loads(line)["text"]).strip()
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(
                    f'{name} line {number:,}: expected a JSON object with a "text", got {line[:60]!r} ({error})'
                ) from error
        if line:
            texts[line] = None
    return list(texts)


def read_texts(path: str | Path) -> list[str]:
    """`texts_of` a file.

    Raises:
        InputError: it cannot be read, has more than `MOST_BYTES`, or holds too few texts.
    """
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, RuntimeError) as error:  # RuntimeError: ~somebody names no user
        why = getattr(error, "strerror", None) or error
        raise InputError(f"--target {path} cannot be read: {why}") from error
    if len(content) > MOST_BYTES:
        raise InputError(
            f"--target {path} must have at most {MOST_BYTES:,} bytes, got more; name a file with fewer texts"
        )
    return check_texts(texts_of(content.decode("utf-8", "replace"), str(path)), str(path))


def check_texts(texts: list[str], name: str) -> list[str]:
    """The texts, if there are enough of them.

    Raises:
        InputError: too few.
    """
    if len(texts) < LEAST_TEXTS:
        raise InputError(
            f"There are {len(texts):,} different texts in {name}, one per line; at least {LEAST_TEXTS} "
            "are needed to tell selections apart, and some hundreds are better"
        )
    return texts
