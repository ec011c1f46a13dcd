"""A matrix as a small picture: one square a number, the darker the larger.

The colour is always the same and the number is its opacity, so that it looks right on white and on black.

In: numbers from 0 to 1.  Out: an `<img>` whose file is inside it.  Used by: attention.py.  Read next: attention.py.
"""

import base64
import struct
import zlib

import numpy as np

from pellucid.pages import Html, escaped

COLOUR = (31, 111, 181)  # --series-1 of the style sheet, in the light
GAMMA = 0.5  # the root: else a weight of 0.1, a tenth of all attention, could hardly be seen


def picture(matrix: np.ndarray, describe: str) -> Html:
    """A PNG of the matrix.

    Args:
        matrix: Rows of numbers from 0 to 1.
        describe: What it shows, in words.

    Example:
        >>> picture(np.eye(2), "a < b")[:48]
        '<img alt="a &lt; b" title="a &lt; b" src="data:i'
    """
    words = escaped(describe)
    data = base64.b64encode(png(matrix)).decode("ascii")
    return Html(f'<img alt="{words}" title="{words}" src="data:image/png;base64,{data}">')


def png(matrix: np.ndarray) -> bytes:
    """The file: 8 bits each of red, green, blue and opacity, filtered by nothing."""
    height, width = matrix.shape
    pixels = np.empty((height, width, 4), dtype=np.uint8)
    pixels[..., :3] = COLOUR
    pixels[..., 3] = np.rint(255 * np.clip(np.nan_to_num(matrix), 0, 1) ** GAMMA)
    rows = np.zeros((height, 1 + width * 4), dtype=np.uint8)  # a row begins with the number of its filter, 0
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)  # 8 bits, colour with opacity
    parts = (_part(b"IHDR", header), _part(b"IDAT", zlib.compress(rows.tobytes(), 9)), _part(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _part(name: bytes, content: bytes) -> bytes:
    checked = name + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))
