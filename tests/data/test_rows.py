"""Rows of one file: a damaged file is told, the ring is closed."""

import numpy as np
import pytest

from pellucid.data import TokenFile, TokenWriter
from pellucid.data.rows import Rows
from pellucid.data.token_file import TOKENS_AT
from pellucid.errors import DataError
from pellucid.text import character_tokenizer

TOKENIZER = character_tokenizer(["abcdefghij"])


@pytest.fixture
def path(tmp_path):
    with TokenWriter(tmp_path / "x.tokens", TOKENIZER, text="") as writer:
        writer.begin_document(tenth=0)
        writer.add(TOKENIZER.encode("abcdefghij"), characters=10)
    return tmp_path / "x.tokens"


def test_a_row_that_runs_over_the_end_goes_on_after_the_first_token(path):
    rows, row = Rows(TokenFile.open(path), context_length=3, seed=0), np.empty(5, dtype=np.int64)
    rows.read(row, 9)
    end = TOKENIZER.end_of_text_id
    assert row.tolist() == [*TOKENIZER.encode("ij").tolist(), end, *TOKENIZER.encode("ab").tolist()]


def test_every_row_comes_once_in_each_epoch(path):
    rows = Rows(TokenFile.open(path), context_length=2, seed=3)
    for epoch in range(5):
        starts = rows.starts(np.arange(epoch * rows.per_epoch, (epoch + 1) * rows.per_epoch))
        assert len(np.unique(starts)) == rows.per_epoch == 5


def test_an_id_that_the_header_excludes_is_told(path):
    with path.open("r+b") as file:
        file.seek(TOKENS_AT + 6)
        file.write(b"\xff\x7f")
    rows = Rows(TokenFile.open(path), context_length=3, seed=0)
    with pytest.raises(DataError, match="the file is damaged"):
        rows.read(np.empty(5, dtype=np.int64), 1)
