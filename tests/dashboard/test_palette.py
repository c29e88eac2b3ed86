"""Colours: readable on their ground, and the same roles on both."""

from dataclasses import fields

import pytest

from datamask.dashboard import palette


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_letters_and_lines_stand_out_from_their_ground(dark):
    tone = palette.shades(dark)
    assert contrast(tone.text, tone.ground) >= 7
    for name in ("accent", "best", "random"):
        assert contrast(getattr(tone, name), tone.ground) >= 3, name
    for name in ("quality", "diversity", "batch"):
        assert contrast(getattr(tone, name), tone.ground) >= 2.2, name


def test_both_grounds_have_every_role():
    for field in fields(palette.Shades):
        assert getattr(palette.LIGHT, field.name).startswith("#") and len(getattr(palette.DARK, field.name)) == 7


def test_categories_repeat_only_after_all_were_used():
    assert len(set(palette.categories(8))) == 8
    assert palette.categories(9)[8] == palette.categories(9)[0]


def test_the_middle_of_the_share_scale_sinks_into_the_page():
    for dark in (False, True):
        middle = dict(palette.share_scale(dark))[0.5]
        assert contrast(middle, palette.shades(dark).ground) < 1.6


def test_the_template_draws_on_any_ground():
    layout = palette.template(dark=True).layout
    assert layout.paper_bgcolor == "rgba(0,0,0,0)" and layout.font.color == palette.DARK.text
