"""Recipe files somebody altered, and files of `apply` under way: applied as they say, or refused in a sentence."""

from __future__ import annotations

import copy
import functools
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.torture import materials
from tests.torture.contract import Finding
from tests.torture.judging import ACCEPTED, REFUSED, Family, attempted, command
from tests.torture.run_folders import TEXTS, VALUES

SETTINGS = ("counterfactual", "greedy")
"""Of the finished runs those whose objective has a rule."""

INJECTED = ("x\nCOPY (SELECT 1) TO 'pwned.csv';\n-- ", "'; DROP VIEW shards; --", "\x1b[31mred\r", "a\u2028b\x00c")
"""Texts that become a statement, or move the cursor, where they are printed as they are."""

NUMBERS = (0, -1, 1e308, -1e308, 1e-320, 1e200, 0.5, 3, -0.0, 1e15)


@functools.cache
def recipe_text(setting: str) -> str:
    """The recipe of a finished run."""
    from datamask.runs.recipe import recipe_of
    from datamask.runs.store import RunStore

    (run,) = RunStore(materials.finished(setting)).list()
    return recipe_of(run).to_json()


def _places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value of a record, of long lists to the first and the last."""
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = [(place, value[place]) for place in sorted({0, len(value) - 1}) if value]
    else:
        return [way]
    return [way, *(place for name, part in inner for place in _places(part, (*way, name)))]


def _altered(text: str, rng: random.Random) -> bytes:
    """The record with one or two values that should not be there, or the file with bytes that should not."""
    how = rng.random()
    if how < 0.75:
        record = json.loads(text)
        for _ in range(rng.choice([1, 1, 2])):
            way = rng.choice(_places(record)[1:])
            owner = record
            for step in way[:-1]:
                owner = owner[step]
            if rng.random() < 0.2 and isinstance(owner, dict):
                del owner[way[-1]]
            else:
                owner[way[-1]] = copy.deepcopy(rng.choice(rng.choice([VALUES, NUMBERS, INJECTED])))
        return json.dumps(record).encode("utf-8", "surrogatepass")
    if how < 0.8:
        return rng.choice(TEXTS)
    content = bytearray(text.encode())
    for _ in range(rng.choice([1, 2, 20])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content[: rng.randrange(len(content))] if rng.random() < 0.2 else content)


def run_recipe(number: int, folder: Path) -> str:
    """Read it; where it is one, apply it, with its own threshold or for a share, and write it as SQL."""
    from datamask.recipes import read_recipe
    from datamask.recipes.sql import duckdb_sql

    rng = random.Random(f"recipe {number}")
    path = folder / "recipe.json"
    path.write_bytes(_altered(recipe_text(rng.choice(SETTINGS)), rng))
    word, recipe = attempted(lambda: read_recipe(path), "reading a recipe", "recipe.json")
    kind = rng.choice(["ids", "masks", "rows"])
    words = ["apply", path, materials.corpus_file(), "--output", folder / "out", "--as", kind]
    words += ["--select_ratio", str(rng.random())] * (rng.random() < 0.3)
    code, _ = command(*words, doing=f"applying a recipe that is {word}")
    written = list((folder / "out").glob("*.parquet"))
    if code == 0 and (recipe is None or len(written) != 1):
        raise Finding(f"a recipe that is {word} was applied, and left {len(written)} files")
    if code and written:
        raise Finding("a refused recipe left a file")
    if recipe is not None:
        _, query = attempted(lambda: duckdb_sql(recipe), "a recipe as SQL")
        if query is not None and not query.replace("\n", "").isprintable():
            raise Finding("a recipe's SQL holds a character that is not printable")
        if query is not None and (query.count("\n-- ") != 2 or "pwned" in re.sub(r"'(?:[^']|'')*'|\".*?\"", "", query)):
            raise Finding("a text of a recipe stands in its SQL outside of quotes")
        if any(not math.isfinite(part) for part in recipe.rule.to_dict().values() if isinstance(part, float)):
            raise Finding("a recipe was read with a weight that is no number")
    return f"{word}, applied" if code == 0 else REFUSED if recipe is None else f"{word}, not applied"


def run_resumed(number: int, folder: Path) -> str:
    """Damage what `apply` wrote; the same command leaves what an unbroken one leaves."""
    rng = random.Random(f"applied {number}")
    path, kind = folder / "recipe.json", rng.choice(["ids", "masks", "rows"])
    path.write_text(recipe_text(rng.choice(SETTINGS)))
    words = ["apply", path, materials.corpus_file(), "--output", folder / "out", "--as", kind]
    command(*words, doing="applying", codes=(0,))
    (target,) = (folder / "out").glob("*.parquet")
    whole, content = pq.read_table(target), bytearray(target.read_bytes())
    how = rng.randrange(5)
    if how == 0:
        target.write_bytes(bytes(content[: rng.randrange(len(content))]))
    elif how == 1:
        for _ in range(rng.choice([1, 5, 50])):  # of the footer, where the note of what it was made of is
            content[rng.randrange(len(content) // 2, len(content))] = rng.randrange(256)
        target.write_bytes(bytes(content))
    elif how == 2:
        target.unlink()
        rng.choice([target.mkdir, lambda: target.symlink_to(target), lambda: target.symlink_to("/dev/zero")])()
    elif how == 3:
        target.write_bytes(rng.choice(TEXTS))
    else:
        target.with_name(f"x-{target.name}").write_bytes(bytes(content))
    code, _ = command(*words, doing=f"applying once more over a damaged file ({how})")
    if how == 4 and not code:
        raise Finding("a folder with a file of another call of apply was written into")
    if code:
        return REFUSED
    if how == 1:  # a file whose note is whole is believed, whatever became of its pages
        return "believed or written anew"
    _, again = attempted(lambda: pq.read_table(target), "reading what was written again")
    if again is None or not again.equals(whole):
        raise Finding(f"the same command left other rows over a damaged file ({how})")
    return ACCEPTED


FAMILIES = (
    Family("recipe", 1_500, run_recipe),
    Family("applied", 300, run_resumed),
)
