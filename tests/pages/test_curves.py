"""Curves: in the page's own colours and letters, few points, no spike lost, names apart."""

import math
import re
from xml.etree import ElementTree

import matplotlib
import pytest

from pellucid.pages.curves import MOST_POINTS, Level, Series, _moved_apart, _thinned, line_chart


def _pictures(chart: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(picture) for picture in re.findall(r"<svg.*?</svg>", chart, re.DOTALL)]


def _chart(y, **more) -> str:
    return line_chart([Series("train", list(range(len(y))), y)], x_label="step", y_label="bits", **more)


def _texts(chart: str) -> list[str]:
    return [text.text for text in _pictures(chart)[0].iter("text")]


def test_a_chart_is_drawn_for_a_page_and_for_a_phone_and_a_small_one_once():
    assert len(_pictures(_chart([3.0, 2.0]))) == 2
    assert len(_pictures(_chart([3.0, 2.0], small=True))) == 1


def test_every_colour_is_one_of_the_style_sheets():
    chart = _chart([3.0, 2.0], levels=[Level("xz", 2.5)])
    assert "var(--series-1)" in chart
    assert not re.search(r"#[0-9a-fA-F]{6}\b", chart.replace("url(#", ""))


def test_a_chart_brings_no_address_no_letters_and_no_rules_of_its_own():
    assert not re.search(r"http|DejaVu|<style|<script|xlink|<metadata", _chart([3.0, 2.0]))


def test_pieces_that_are_named_are_named_once_on_a_page():
    chart = _chart([3.0, 2.0]) + _chart([3.0, 2.0], small=True) + _chart([3.0, 2.0], small=True, describe="other")
    names = re.findall(r' id="([^"]*)"', chart)
    assert names
    assert len(names) == len(set(names))
    assert set(re.findall(r'href="#([^"]*)"', chart)) <= set(names)


def test_a_level_is_named_with_its_value():
    assert "xz 2.50" in _texts(_chart([3.0, 2.0], levels=[Level("xz", 2.5)]))


def test_names_in_other_scripts_stand_in_the_legend_and_not_in_the_picture():
    lines = [Series("<b>نص", [1, 2], [1, 2]), Series("中文", [1, 2], [2, 1])]
    chart = line_chart(lines, x_label="step", y_label="bits")
    assert '<bdi dir="auto">&lt;b&gt;نص</bdi>' in chart
    assert chart.isascii() is False
    assert all(text.isascii() or "\N{MINUS SIGN}" in text for text in _texts(chart))


@pytest.mark.parametrize("y", [[], [1.0], [None, None], [math.nan, math.inf], [2.0, None, 3.0], [5.0] * 3, [0.0, -1.0]])
@pytest.mark.parametrize("log_y", [False, True])
def test_gaps_single_points_and_nothing_at_all_are_drawn(y, log_y):
    assert len(_pictures(_chart(y, log_y=log_y, levels=[Level("xz", 2.5)]))) == 2


def test_a_dollar_sign_is_not_mathematics():
    assert "cost $a_b$ bits" in _texts(line_chart([Series("a", [1], [1])], x_label="$x", y_label="cost $a_b$ bits"))


def test_a_long_line_is_thinned_and_keeps_its_spike_its_ends_and_its_lows():
    y = [1.0] * 100_000
    y[54_321], y[70_000] = 9.0, 0.5
    thin = _thinned(Series("a", list(range(len(y))), y))
    assert len(thin.x) <= MOST_POINTS + 2
    assert {54_321, 70_000, 0, 99_999} <= set(thin.x)


def test_a_thinned_band_keeps_its_bounds_at_the_points_that_stay():
    x = list(range(5000))
    thin = _thinned(Series("a", x, [float(i) for i in x], low=[i - 1.0 for i in x], high=[i + 1.0 for i in x]))
    assert [high - low for low, high in zip(thin.low, thin.high, strict=True)] == [2.0] * len(thin.x)


def test_the_picture_of_a_band_is_drawn():
    band = Series("a", [1, 2], [1.0, 2.0], low=[0.5, 1.5], high=[1.5, 2.5])
    assert "fill-opacity: 0.15" in line_chart([band], x_label="step", y_label="bits")


def test_names_that_would_cover_each_other_are_moved_apart_and_others_stay():
    places = _moved_apart([0.1, 0.5, 0.51, 0.52, 0.9], 0.05)
    assert places[0] == 0.1
    assert places[-1] == 0.9
    assert places[1:4] == pytest.approx([0.46, 0.51, 0.56])


def test_drawing_leaves_matplotlibs_settings_as_they_were():
    before = dict(matplotlib.rcParams)
    _chart([3.0, 2.0])
    assert dict(matplotlib.rcParams) == before


def test_the_same_numbers_give_the_same_picture():
    assert _chart([3.0, 2.0]) == _chart([3.0, 2.0])


def test_where_all_steps_are_whole_no_part_of_one_is_named():
    assert "1.5<" not in line_chart([Series("a", [1, 2], [3.0, 2.0])], x_label="step", y_label="bits")
    assert "1.5<" in line_chart([Series("a", [1, 2.1], [3.0, 2.0])], x_label="seconds", y_label="bits")
