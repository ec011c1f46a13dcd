"""A matrix as a PNG that any reader understands."""

import base64
import io
import re

import numpy as np
import pytest
from matplotlib.image import imread

from pellucid.report.picture import COLOUR, picture, png


def _read(matrix) -> np.ndarray:
    return imread(io.BytesIO(png(np.array(matrix, dtype=float))))


def test_the_opacity_is_the_root_of_the_number_and_the_colour_is_always_the_same():
    pixels = _read([[0.0, 0.25], [1.0, 0.01]])
    assert pixels.shape == (2, 2, 4)
    assert pixels[..., 3] == pytest.approx(np.array([[0.0, 0.5], [1.0, 0.1]]), abs=1 / 255)
    assert pixels[0, 1, :3] * 255 == pytest.approx(COLOUR)


def test_rows_and_columns_are_where_they_belong():
    pixels = _read([[1, 0, 0], [0, 0, 0]])
    assert pixels.shape[:2] == (2, 3)
    assert pixels[0, 0, 3] == 1
    assert pixels[..., 3].sum() == 1


def test_numbers_out_of_range_and_no_numbers_are_drawn_as_the_nearest():
    assert _read([[-1.0, 2.0, np.nan]])[0, :, 3].tolist() == [0, 1, 0]


def test_the_words_are_text_and_the_picture_is_inside():
    shown = picture(np.eye(2), '"><script>')
    assert "<script>" not in shown
    inside = base64.b64decode(re.search(r"base64,([^\"]*)", shown)[1])
    assert inside == png(np.eye(2))
