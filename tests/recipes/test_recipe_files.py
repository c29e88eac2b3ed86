"""Recipe files: written whole, read back digit by digit, and refused in a sentence where somebody altered them."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import numpy as np
import pytest

from datamask.cli import main
from datamask.errors import InputError
from datamask.recipes import Recipe, read_recipe, write_recipe
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import FeatureColumn, ScoreRule, Thresholds
from tests.making.derivable_runs import done

ENDS = {"random": 0.0, "best": 1.0, "best_kind": "proved"}


def made(**fields) -> Recipe:
    """A recipe with something in every field."""
    rng = np.random.default_rng(0)
    moment = rng.normal(size=(3, 3))
    given = {
        "objective": "pairwise:0.5,disf_fixed:0.5",
        "lamb": 0.5,
        "scale": "calibrated",
        "anchors": {"quality": ENDS, "diversity": {"pairwise": ENDS, "disf_fixed": ENDS}},
        "share": 0.3,
        "of": "tokens",
        "rule": ScoreRule(0.5, 1.0, rng.normal(size=3), 0.25, moment + moment.T, np.zeros(3), np.ones(3), 1e-7),
        "thresholds": Thresholds(0.125, "source", {"web": 0.5, "code": None}, -1.0),
        "quality": (
            FrozenQuality("a", 1.0),
            FrozenQuality("b", -2.0, "z", 0.1, 1 / 3),
            FrozenQuality("c", 0.5, "rank", values=np.array([1.0, 2.0]), ranks=np.array([0.0, 1.0])),
        ),
        "features": FeatureColumn("feature_arr", 3, np.array([0.1, 0.2, 0.3])),
        "id_column": "id",
        "length_column": "n_tokens",
        "always": ("a", "b"),
        "never": (1, 2**63),
        "learned": {"share_kept": 0.29},
        "notes": ("read this",),
    }
    return Recipe(**given | fields)


def test_what_is_written_is_read_back_digit_by_digit(tmp_path):
    recipe = made()
    write_recipe(recipe, tmp_path / "recipe.json")
    again = read_recipe(tmp_path / "recipe.json")
    assert again.to_dict() == recipe.to_dict() and again.digest == recipe.digest
    assert np.array_equal(again.rule.direction, recipe.rule.direction)
    assert again.share_kept == 0.29 and made(all_rows={"share_kept": 0.31}).share_kept == 0.31
    assert made(lamb=0.25).digest != recipe.digest


def _set(path, value):
    def alter(record):
        *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        for step in way:
            record = record[step]
        if value is ...:
            del record[last]
        else:
            record[last] = value

    return alter


ALTERED = {
    "another format": (_set("format", "datamask 2.0"), "was made by another version of datamask; make it again"),
    "a format of numbers": (_set("format", 1), "format must be a Unicode text"),
    "no objective": (_set("objective", ...), "objective must be a text"),
    "an unknown objective": (_set("objective", "pairwize"), "pairwize"),
    "an objective without rule": (_set("objective", "facility"), "objective must be made of pairwise and disf_fixed"),
    "lambda above 1": (_set("lambda", 1.5), "lambda must be a finite number from 0 to 1, got float 1.5"),
    "lambda as text": (_set("lambda", "0.5"), "lambda must be a finite number"),
    "lambda as truth": (_set("lambda", True), "lambda must be a finite number"),
    "a huge number": (_set("lambda", 10**400), "lambda must be a finite number"),
    "no rule": (_set("rule", ...), "rule must be a JSON object, got nothing"),
    "a rule of numbers": (_set("rule", [1, 2]), "rule must be a JSON object"),
    "a negative weight": (
        _set("rule.crowding_weight", -1),
        "rule.crowding_weight must be a finite number of at least 0",
    ),
    "a short direction": (_set("rule.direction", [1.0, 2.0]), "rule.direction must be a list of 3 finite numbers"),
    "a direction of texts": (_set("rule.direction", ["a", "b", "c"]), "rule.direction must be a list of 3 finite"),
    "no direction": (_set("rule.direction", None), "rule.direction must be given, since crowding_weight is above 0"),
    "no moment": (_set("rule.moment", None), "rule.moment must be given"),
    "no mean": (_set("rule.mean", ...), "rule.mean must be a list of 3"),
    "a ragged moment": (_set("rule.moment.1", [1.0]), "rule.moment must be 3 lists of 3 finite numbers"),
    "a lopsided moment": (_set("rule.moment.0", [0.0, 5.0, -7.0]), "rule.moment must be symmetric"),
    "no tau": (_set("thresholds.tau", ...), "thresholds.tau must be a finite number, got nothing"),
    "a tau of text": (_set("thresholds.tau", "high"), "thresholds.tau must be a finite number"),
    "a group's tau of text": (_set("thresholds.groups.web", "x"), "thresholds.groups.web must be a finite number"),
    "groups without a column": (_set("thresholds.column", None), "thresholds.column must be the column"),
    "groups as a list": (_set("thresholds.groups", [1]), "thresholds.groups must be a JSON object"),
    "no quality": (_set("quality", []), "quality must be a list of one object at least"),
    "a quality of text": (_set("quality.0", "a"), r"quality\[0\] must be a JSON object"),
    "an unknown transform": (
        _set("quality.1.transform", "log"),
        r"quality\[1\].transform must be one of 'raw', 'z', 'rank'",
    ),
    "a negative sd": (_set("quality.1.sd", -1.0), r"quality\[1\].sd must be a finite number of at least 0"),
    "falling values": (_set("quality.2.values", [2.0, 1.0]), r"quality\[2\].values must be rising"),
    "too few ranks": (_set("quality.2.ranks", [0.5]), r"quality\[2\].ranks must be a list of 2 finite numbers"),
    "no dimensions": (_set("features.dim", 0), "features.dim must be a whole number from 1"),
    "a huge dimension": (_set("features.dim", 10**9), "features.dim must be a whole number from 1 to 65536"),
    "another norm": (_set("features.normalise", "L1"), "features.normalise must be one of 'L2'"),
    "a long center": (_set("features.center", [0.0] * 4), "features.center must be a list of 3 finite numbers"),
    "no anchors": (_set("anchors", ...), "anchors must be a JSON object"),
    "an anchor of text": (_set("anchors.quality.best", "1"), "anchors.quality.best must be a finite number"),
    "ids of two kinds": (_set("always", ["a", 1]), "always must be a list of ids"),
    "ids of numbers": (_set("never", [1.5]), "never must be a list of ids"),
    "an id beyond 64 bits": (_set("never", [2**64]), "never must be a list of whole numbers of 64 bits"),
    "no length column": (_set("length_column", None), "length_column must be the column that counts tokens"),
    "no id column": (_set("id_column", ""), "id_column must be a Unicode text"),
    "notes as text": (_set("notes", "read me"), "notes must be a list of texts"),
    "learned as text": (_set("learned", "somewhere"), "learned must be a JSON object"),
    "a share above 1": (_set("share", 1.01), "share must be a finite number from 0 to 1"),
    "a run of two lines": (_set("learned.run", "x\nCOPY y TO 'z'; --"), "learned.run must be a text of the form"),
    "a run of another alphabet": (_set("learned.run", "x\u2028y"), "learned.run must be a text of the form"),
    "a long run": (_set("learned.run", "x" * 256), "learned.run must be a text of the form"),
    "counts of text": (_set("learned.rows", "many"), "learned.rows must be a whole number"),
    "a share of text": (_set("all_rows.share_kept", "half"), "all_rows.share_kept must be a finite number"),
    "a note that colors": (_set("notes.0", "\x1b[31mred"), "notes must be a list of texts, each .* printable"),
    "a note of two lines": (_set("notes.0", "one\ntwo"), "notes must be a list of texts, each .* without line breaks"),
    "a long note": (_set("notes.0", "x" * 4097), "notes must be a list of texts, each a text of at most 4,096"),
    "an objective of two lines": (_set("objective", "pairwise:0.5,\ndisf_fixed:0.5"), "objective must be a text of"),
    "half a character": (_set("id_column", "\ud800"), "id_column must be a Unicode text of at most 65,536"),
    "half a character of a group": (_set("thresholds.groups", {"\ud800": 1.0}), "thresholds.groups must be a JSON"),
    "half a character in an id": (_set("always.1", "\udfff"), "always must be a list of ids, each a Unicode"),
    "half a character of an anchor": (
        _set("anchors.quality.best_kind", "\ud800"),
        "anchors.* must be a JSON object in",
    ),
    "half a character far inside": (_set("learned.files", [{"a": ["\ud800"]}]), "learned must be a JSON object in"),
    "a long name": (
        _set("quality.0.column", "x" * 65537),
        r"quality\[0\].column must be a Unicode text of at most 65,536",
    ),
    "a group that colors": (_set("thresholds.groups", {"\x1b[31m": "x"}), r"groups.\\x1b\[31m must be a finite number"),
    "a share of cups": (_set("of", "cups"), "of must be one of 'rows', 'tokens'"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_field_is_named_in_one_sentence(what, tmp_path):
    alter, sentence = ALTERED[what]
    record = copy.deepcopy(made().to_dict())
    alter(record)
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=sentence) as raised:
        read_recipe(path)
    assert str(path) in str(raised.value) and str(raised.value).isprintable()


def test_names_and_ids_may_hold_any_character(tmp_path):
    odd = "a\nb\r\x00\x1b[31m'\"\u2028"
    recipe = made(
        thresholds=Thresholds(0.125, odd, {odd: 0.5}),
        quality=(FrozenQuality(odd, 1.0),),
        features=FeatureColumn(odd, 3),
        id_column=odd,
        always=(odd,),
        learned={"run": "20261120-183501-facility-3f2a90c1", "name": odd, "files": [odd], "columns": {"id": odd}},
    )
    write_recipe(recipe, tmp_path / "recipe.json")
    assert read_recipe(tmp_path / "recipe.json").to_dict() == recipe.to_dict()


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[1, 2]", "it must be a JSON object"),
        (b"null", "it must be a JSON object"),
        (b'{"format": "datamask 1.0", "lambda": NaN}', "holds NaN"),
        (b"[" * 100_000, "no JSON"),
        (b'{"format": ' + b"9" * 5000 + b"}", "no JSON|format must be"),
        (b"PAR1", "no JSON"),
    ],
)
def test_what_is_no_recipe_is_refused(content, sentence, tmp_path):
    path = tmp_path / "recipe.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_recipe(path)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_recipe(tmp_path / "none.json")
    with pytest.raises(InputError, match=r"ordinary file|cannot be read"):
        read_recipe(tmp_path)


def test_every_number_is_in_the_file_with_all_its_digits():
    third = FrozenQuality("b", 1.0, "z", math.pi, 1 / 3)
    record = json.loads(made(quality=(third,)).to_json())
    assert record["quality"][0]["mean"] == math.pi and record["quality"][0]["sd"] == 1 / 3


def test_the_command_writes_it_and_says_how_well_it_fits(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = done(tmp_path)
    assert main(["recipe", run.id, "--output", "recipe.json", "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    recipe = read_recipe("recipe.json")
    assert said["kept"] == recipe.learned["kept"] and said["otherwise"] == recipe.learned["otherwise"]
    assert main(["runs", "export", run.id, "--recipe", "again.json"]) == 0
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "recipe.json").read_bytes()
    assert main(["recipe", run.id, "--output", "shards/recipe.json"]) == 2
    assert "lies in the input folder" in capsys.readouterr().err
    facility = done(tmp_path, objective="facility", estimator="top-quality")
    assert main(["recipe", facility.id, "--output", "none.json"]) == 2
    error = capsys.readouterr().err
    assert "each row depends on others" in error and "Traceback" not in error
    assert not (tmp_path / "none.json").exists()


def test_the_terminal_shows_no_text_of_a_recipe_as_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = made(objective="pairwise").to_dict()
    record["rule"]["moment"] = None
    record["rule"]["moment_weight"] = 0.0
    for name, alter in {
        "run": _set("learned.run", "\x1b[31mred\n-- "),
        "note": _set("notes.0", "\x1b[31mred"),
        "group": _set("thresholds.groups", {"\x1b[31mred": "x"}),
        "column": _set("quality.2.column", "\x1b[31mred"),
    }.items():
        altered = copy.deepcopy(record)
        alter(altered)
        Path("\x1b[32mgreen.json").write_text(json.dumps(altered))
        assert main(["recipe", "\x1b[32mgreen.json", "--sql", "out.sql"]) == 2, name
        printed = capsys.readouterr()
        assert printed.err.strip().isprintable() and "\\x1b[3" in printed.err, name
        assert not printed.out and not Path("out.sql").exists()
