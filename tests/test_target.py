"""The target of an ablation: what names one, and texts of people's own."""

from __future__ import annotations

import os

import pytest

from datamask.cli.targets import examples_named, lambdas_of, target_of, training_text
from datamask.config import target as target_module
from datamask.config.target import Target, check_texts, read_texts, texts_of
from datamask.errors import InputError, OptionError


def test_own_texts_are_known_by_their_content():
    own = [Target.own(texts) for texts in (["a b"], ["a b"], ["a c"])]
    assert own[0] == own[1] != own[2]


def test_targets(tmp_path):
    assert Target("quality").circular and not Target().circular
    with pytest.raises(OptionError, match="--target"):
        Target("nonsense")
    with pytest.raises(OptionError, match="COLUMN=VALUE"):
        Target("column")
    assert target_of("source=a=b") == (Target("column", "source", "a=b"), [])
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(f"line {i}" for i in range(70)))
    target, texts = target_of(str(path))
    assert target.name == "mine.txt" and texts[69] == "line 69" and "mine.txt" in target.label
    with pytest.raises(OptionError, match="no such file"):
        target_of("elsewhere.txt")


def test_targets_of_examples(tmp_path):
    for name in ("ids.txt", "features:odd.txt"):
        (tmp_path / name).write_text("\n".join(f"line {i}" for i in range(70)))
    target, texts = target_of(f"ids:{tmp_path}/ids.txt")
    assert target.kind == "ids" and target.steers and not target.circular and texts == [] and target.digest
    assert target.label == "the samples named in ids.txt"
    assert examples_named(f"ids:{tmp_path}/ids.txt") == ("ids", f"{tmp_path}/ids.txt")
    # a file of texts may be called so, and a column too: they were targets before there were examples
    assert examples_named(f"{tmp_path}/features:odd.txt") is None
    assert target_of("ids:a=b") == (Target("column", "ids:a", "b"), [])
    with pytest.raises(InputError, match="no such file"):
        target_of("examples:nowhere.txt")
    with pytest.raises(OptionError, match="examples:FILE, got 'example:x'"):
        target_of("example:x")


def test_the_training_text_is_counted_as_its_proxy_model_counts_it():
    assert training_text("bigram", None, None) == {} and training_text("transformer", None, 7) == {"train_bytes": 7}
    with pytest.raises(OptionError, match="--train_bytes belongs to --judge transformer, and --judge is bigram"):
        training_text("bigram", None, 9_000)
    with pytest.raises(OptionError, match="--words belongs to --judge bigram"):
        training_text("transformer", 9_000, None)


def test_texts_are_lines_or_json_lines_without_repeats(tmp_path):
    assert texts_of("one\n\n two \none\r\n{not json") == ["one", "two", "{not json"]
    assert texts_of('{"text": "a"}\n{"text": "b"}\n', "x.jsonl") == ["a", "b"]
    with pytest.raises(InputError, match=r"x\.jsonl line 2"):
        texts_of('{"text": "a"}\n{"body": "b"}\n', "x.jsonl")
    with pytest.raises(InputError, match=r"x\.jsonl line 1"):
        texts_of('{"text": ' + "[" * 100_000, "x.jsonl")
    with pytest.raises(InputError, match="at least 60"):
        check_texts(["a"] * 5, "mine")
    with pytest.raises(InputError, match="cannot be read"):
        read_texts(tmp_path / "nothing")


def test_a_device_without_end_is_refused_as_a_file_of_texts_and_a_pipe_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(target_module, "MOST_BYTES", 10_000)
    with pytest.raises(InputError, match="at most 10,000 bytes"):
        read_texts("/dev/zero")
    reader, writer = os.pipe()
    os.write(writer, "\n".join(map(str, range(60))).encode())
    os.close(writer)
    assert len(read_texts(f"/dev/fd/{reader}")) == 60
    os.close(reader)


def test_lambdas_as_range_or_list():
    assert lambdas_of("0:1:3") == (0.0, 0.5, 1.0) and lambdas_of("0,0.3") == (0.0, 0.3)
    for wrong in ("a", "0:1", "0,nan"):
        with pytest.raises(OptionError, match="--lambdas"):
            lambdas_of(wrong)
