"""Colours: readable on their ground, and the same roles on both."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from streamlit.elements.lib import streamlit_plotly_theme

from datamask.dashboard.drawing import palette
from datamask.dashboard.shell.theme import READABLE

ROOT = Path(__file__).resolve().parents[3]


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def over(top: str, below: str, cover: float) -> str:
    """The colour of `top` at that opacity over `below`."""
    pairs = ((int(top[i : i + 2], 16), int(below[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(cover * a + (1 - cover) * b):02X}" for a, b in pairs)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_letters_of_the_theme_are_readable_wherever_streamlit_puts_them(name):
    """WCAG AA, 4.5 to 1: captions are drawn at 60 %, code in them too, and buttons and tags have white letters."""
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"][name]
    ground, text = theme["backgroundColor"], theme["textColor"]
    tone = palette.shades(name == "dark")
    assert (tone.text, tone.ground, tone.raised) == (text, ground, theme["secondaryBackgroundColor"])
    for place in (ground, theme["secondaryBackgroundColor"]):
        assert contrast(over(text, place, 0.6), place) >= 4.5, place
    assert contrast(over(text, ground, 0.6), over(theme["codeBackgroundColor"], ground, 0.6)) >= 4.5
    assert contrast("#FFFFFF", theme["primaryColor"]) >= 4.5
    assert contrast(theme["linkColor"], ground) >= 4.5
    pressed = dict(zip(("light", "dark"), re.findall("#[0-9A-F]{6}", READABLE), strict=True))[name]
    for cover in (0.0, 0.1, 0.2):  # the first colour under what is pressed: none (a slider), at rest, under the pointer
        assert contrast(pressed, over(theme["primaryColor"], ground, cover)) >= 4.5


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


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_has_the_colours_of_the_figures_where_streamlit_looks_for_them(dark):
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    theme, tone = theme["dark" if dark else "light"], palette.shades(dark)
    placed = {
        getattr(streamlit_plotly_theme, f"CATEGORY_{k}"): c for k, c in enumerate(theme["chartCategoricalColors"])
    }
    for role in ("accent", "quality", "diversity", "best", "random", "muted"):
        assert placed[getattr(palette.THEMED, role)] == getattr(tone, role), role
    assert len(placed) == 10 and {palette.themed(place) for place in range(9)} < set(placed)
    ends = {getattr(streamlit_plotly_theme, f"DIVERGING_{k}"): c for k, c in enumerate(theme["chartDivergingColors"])}
    assert [ends[color] for color in palette.THEMED_SHARES] == [color for _, color in palette.share_scale(dark)]
    assert palette.THEMED.ground == streamlit_plotly_theme.BG_COLOR
