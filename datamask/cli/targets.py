"""The question of an ablation on the command line: what its words name."""

from __future__ import annotations

import math
from pathlib import Path

from datamask.ablation.question import JUDGES
from datamask.config.target import STEERING, Target, read_texts
from datamask.errors import OptionError
from datamask.files import user_path


def target_of(text: str) -> tuple[Target, list[str]]:
    """The target that a word names: random, quality, COLUMN=VALUE, a file of texts, or a file of examples behind its
    kind; and the texts of a file of texts.

    Raises:
        OptionError: none of these. InputError: the file holds too few texts, or cannot be read.
    """
    if named := examples_named(text):
        from datamask.evaluation.examples import target_of_file

        return target_of_file(*named), []
    if text in ("random", "quality"):
        return Target(text), []
    if user_path(text).is_file():
        texts = read_texts(text)
        return Target.own(texts, Path(text).name), texts
    if text.startswith("high:"):
        return Target("score", text.removeprefix("high:")), []
    column, equals, value = text.partition("=")
    if not equals:
        raise OptionError(
            f"--target must be random, quality, COLUMN=VALUE or a file with one text per line, or high:COLUMN, "
            f"ids:FILE, features:FILE or examples:FILE, got {text!r}, and there is no such file"
        )
    return Target("column", column, value), []


def examples_named(text: str) -> tuple[str, str] | None:
    """Kind and path of a file of examples, as in ``ids:wanted.txt``; None: the target is none."""
    kind, colon, path = text.partition(":")
    # a file of texts may have such a name, and so may a column
    if (
        not colon
        or kind not in STEERING
        or user_path(text).is_file()
        or ("=" in path and not user_path(path).is_file())
    ):
        return None
    return kind, path


def training_text(judge: str, words: int | None, train_bytes: int | None) -> dict[str, int]:
    """Return how much of each selection trains the proxy model, where it is given.

    Raises:
        OptionError: it is given for the other proxy model.
    """
    for option, value, owner in (("words", words, "bigram"), ("train_bytes", train_bytes, "transformer")):
        if value is not None and judge in JUDGES and owner != judge:
            raise OptionError(f"--{option} belongs to --judge {owner}, and --judge is {judge}")
    given = {"words": words, "train_bytes": train_bytes}
    return {option: value for option, value in given.items() if value is not None}


def lambdas_of(text: str) -> tuple[float, ...]:
    """``0:1:11`` (start, stop, count) or ``0,0.1,0.5``.

    Raises:
        OptionError: neither.
    """
    try:
        if ":" in text:
            start, stop, count = text.split(":")
            steps = int(count)
            return tuple(float(start) + (float(stop) - float(start)) * i / max(1, steps - 1) for i in range(steps))
        values = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise OptionError(f"--lambdas must be START:STOP:COUNT or a list such as 0,0.1,0.5, got {text!r}") from error
    if not all(map(math.isfinite, values)):
        raise OptionError(f"--lambdas must be finite numbers, got {text!r}")
    return values
