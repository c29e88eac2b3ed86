"""Numbers, durations and foreign texts in words."""

import pytest

from datamask.dashboard.drawing import words


def spaced(text: str) -> str:
    return text.replace(words.GAP, " ")


@pytest.mark.parametrize(
    "share, expected",
    [
        (0.944, "94 %"),
        (0.0, "0 %"),
        (-0.001, "−0.1 %"),
        (-0.005, "−0.5 %"),
        (-0.0004, "−0.04 %"),
        (-1e-7, "0 %"),
        (-0.432, "−43 %"),
        (1.0, "100 %"),
        (None, "–"),
        (float("nan"), "–"),
    ],
)
def test_percent(share, expected):
    assert spaced(words.percent(share)) == expected


@pytest.mark.parametrize("gap, expected", [(0.001641, 0.17), (0.0016, 0.16), (1e-7, 0.01), (0.0, 0.01), (0.2, 20.0)])
def test_a_gap_is_rounded_up(gap, expected):
    assert words.gap_percent(gap) == expected


def test_percent_keeps_the_digits_asked_for():
    assert spaced(words.percent(0.12345, 2)) == "12.35 %"


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (0.04, "0.0 s"),
        (3.24, "3.2 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (125, "2 min 5 s"),
        (754, "12 min"),
        (3600, "1 h"),
        (4800, "1 h 20 min"),
        (None, "–"),
        (float("inf"), "–"),
    ],
)
def test_duration(seconds, expected):
    assert spaced(words.duration(seconds)) == expected


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (0.2, "1 s"),
        (7.6, "8 s"),
        (42, "40 s"),
        (54.9, "55 s"),
        (56, "1 min"),
        (177, "3 min"),
        (5390, "90 min"),
        (5500, "1.5 h"),
        (36000, "10 h"),
        (None, "–"),
    ],
)
def test_estimates_have_few_digits(seconds, expected):
    assert spaced(words.roughly(seconds)) == expected


@pytest.mark.parametrize(
    "number, expected",
    [(0, "0"), (999, "999"), (1000, "1 k"), (1.194e6, "1.19 M"), (999_499_999, "999 M"), (2.5e12, "2.5 T")],
)
def test_short_counts(number, expected):
    assert spaced(words.short(number)) == expected


@pytest.mark.parametrize(
    "size, expected", [(12, "12 B"), (999_600, "1.0 MB"), (34_600_000, "35 MB"), (3.2e9, "3.2 GB"), (5e12, "5.0 TB")]
)
def test_sizes(size, expected):
    assert spaced(words.size(size)) == expected


def test_raw_values_keep_their_sign_and_few_digits():
    assert words.value(0.722812345) == "0.7228"
    assert words.value(-0.25) == "−0.25"
    assert words.value(1234567.0) == "1,234,567"
    assert words.value(None) == "–"


def test_moments_in_the_past():
    assert words.ago(100.0, now=130.0) == "just now"
    assert words.ago(0.0, now=330.0) == "5 min ago"
    assert words.ago(0.0, now=2 * 86400.0) == "2 days ago"
    assert words.ago(None) == "–"


def test_sampled_corpora_say_of_how_many():
    assert words.of_total(10, 10) == "10 rows"
    assert words.of_total(50_000, 812_344) == "50,000 of 812,344 rows"


def test_foreign_text_can_neither_mark_up_nor_run_over():
    text = words.plain("<b>*bold*</b> [a](http://x) $x$ `c`\n# title", 200)
    assert "\n" not in text
    for mark in "<*[$`#":
        assert f"\\{mark}" in text
    assert len(words.plain("a" * 500, 40)) == 40 and words.plain("a" * 500, 40).endswith("…")


def test_names_are_shortened_in_the_middle():
    """Two runs of one beginning are told apart by their ends."""
    names = ["facility, λ 0.5, 30 %, counterfactual", "facility, λ 0.5, 30 %, relaxed"]
    short = [words.middle(name, 20) for name in names]
    assert len(set(short)) == 2 and all(len(name) <= 20 and "…" in name for name in short)
    assert [name[-7:] for name in short] == [name[-7:] for name in names] and words.middle("short", 20) == "short"
    assert words.named("*" * 30, 10).count("\\*") == 9


def test_an_option_at_the_beginning_is_the_sentence_s_first_word_and_a_file_keeps_its_name():
    assert words.sentence("--device cuda is not here") == "Device cuda is not here"
    assert words.sentence("shard is empty, see --id-column") == "shard is empty, see id column"
    assert words.sentence("--panel knows no column") == "Panel knows no column"


def test_a_command_stays_as_one_types_it_and_is_code():
    said = "--lamb is fixed; run `datamask select a_b --lamb 0.5` (once)"
    assert words.sentence(said) == r"Balance λ is fixed; run `datamask select a_b --lamb 0.5` \(once\)"
    assert words.coded("a `*b*` c`*d", 100) == r"a `*b*` c\`\*d"
    assert words.coded("see `datamask runs export`", 10) == r"see \`data…", "half a command is no code"


def test_an_option_is_called_as_its_form_calls_it():
    assert words.sentence("raise --n_rollout, or lower --lamb") == r"raise masks per step \(G\), or lower balance λ"
    assert words.sentence("--budget needs --length_column") == "Token budget needs length column"


@pytest.mark.parametrize(
    "path, told",
    [
        ("/srv/data/corpora/web/part-1.parquet", "…/web/part\\-1\\.parquet"),
        (f"/srv/runs/uploads/{64 * 'a'}/part.parquet", "…/part\\.parquet"),
        (f"the shard of {'0123456789abcdef' * 4}", "the shard of 01234567…"),
        ("/part.parquet", "/part\\.parquet"),
        ("web/part.parquet", "web/part\\.parquet"),
        ("s3://bucket/shards/web/part.parquet", "s3\\://bucket/shards/web/part\\.parquet"),
        ("a/b or c/d of /x/y", "a/b or c/d of /x/y"),
    ],
)
def test_of_a_path_of_the_server_a_page_tells_the_end(path, told):
    assert words.sentence(f"{path}: no column 'text'") == f"{told}\\: no column 'text'"


def test_a_difference_has_its_sign():
    assert [words.signed(x) for x in (3.14, -2.0, 0.0, -0.01)] == ["+3.1", "−2.0", "0.0", "0.0"]
