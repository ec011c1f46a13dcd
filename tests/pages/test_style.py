"""The style sheet: every variable that is used is set, in the light and in the dark."""

import re

from pellucid.pages.style import SERIES, STYLE


def test_every_variable_has_a_value():
    assert set(re.findall(r"var\((--[\w-]+)\)", STYLE)) <= set(re.findall(r"(--[\w-]+):", STYLE))


def test_every_series_has_its_colour_in_both_lights():
    for number in range(1, SERIES + 1):
        assert STYLE.count(f"--series-{number}:") == 2


def test_paper_is_for_light_colours_only():
    assert "@media screen and (prefers-color-scheme: dark)" in STYLE
