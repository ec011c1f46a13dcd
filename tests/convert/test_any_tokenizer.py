"""A tokenizer is found in whatever holds one."""

import pytest

from pellucid.convert.any_tokenizer import load_any_tokenizer
from pellucid.errors import ModelFileError, TokenizerError
from pellucid.loading import load
from pellucid.text import character_tokenizer
from tests.convert.written_gguf import write_llama


def test_it_is_found_in_a_file_a_folder_and_a_gguf_file(tmp_path):
    alone = character_tokenizer(["abc"])
    alone.save(tmp_path)
    for path in (tmp_path, str(tmp_path / "tokenizer.json")):
        assert load_any_tokenizer(path).fingerprint == alone.fingerprint
    model = write_llama(tmp_path / "a model.GGUF")
    assert load_any_tokenizer(model).fingerprint == load(model).tokenizer.fingerprint


def test_where_there_is_none_it_says_so(tmp_path):
    with pytest.raises(TokenizerError, match="no such file"):
        load_any_tokenizer(tmp_path / "model.gguf")
    (tmp_path / "model.gguf").write_bytes(b"something")
    with pytest.raises(ModelFileError, match="another kind"):
        load_any_tokenizer(tmp_path / "model.gguf")
