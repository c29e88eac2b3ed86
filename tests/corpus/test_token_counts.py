"""The estimate of tokens against the counts of real vocabularies.

`token_counts.jsonl.gz` holds the paragraphs of the Universal Declaration of Human Rights in six languages and pieces of
this project's code, each with what o200k_base makes of it. The estimate was fitted to other texts.
"""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from datamask.corpus.token_counts import estimate_tokens, script_of, token_counter
from datamask.errors import InputError


def test_the_estimate_of_each_language_is_near_what_o200k_base_makes():
    real, estimated = Counter(), Counter()
    with gzip.open(Path(__file__).with_name("token_counts.jsonl.gz"), "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            real[row["language"]] += row["tokens"]
            estimated[row["language"]] += estimate_tokens(row["text"])
    assert sorted(real) == ["Arabic", "Chinese", "English", "German", "Japanese", "Thai", "code"]
    for language, tokens in real.items():
        assert 0.75 <= estimated[language] / tokens <= 1.25, language


def test_the_script_of_a_text_is_that_of_most_letters():
    texts = {"Latin": "", "Chinese": "山水 ab 山", "Japanese": "行を選ぶ", "Thai": "กขค ab", "Cyrillic": "строки x"}
    assert {name: script_of(text) for name, text in texts.items()} == {name: name for name in texts}


@pytest.mark.parametrize("character", ["資", "か", "한", "ก", "ກ", "ក", "က"])
def test_text_without_spaces_counts_by_its_characters(character):
    assert 300 <= estimate_tokens(1000 * character) <= 2000


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), (" \n ", 1), ("word", 1), ("word " * 50, 50), ("internationalizations", 4), ("2026", 3), ("\ud800", 1)],
)
def test_other_text_counts_by_words(text, tokens):
    assert estimate_tokens(text) == tokens


def test_a_tokenizer_counts_as_its_library_does(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordPiece({"[UNK]": 0, "[CLS]": 1, "data": 2, "##mask": 3}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
    tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        # data ##mask; nothing; data, unknown, data: no special token, nothing cut
        assert token_counter(path)(["datamask", "", "data x data"]).tolist() == [2, 0, 3]


def test_what_is_no_tokenizer_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    for path in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(InputError, match=r"--tokenizer .* is not a tokenizer.json that can be read"):
            token_counter(path)
