"""Chat templates and ends of texts are found wherever a folder tells them (C11)."""

import json

import pytest

from pellucid.convert.beside_weights import read_chat_template, read_end_ids
from pellucid.errors import ModelFileError


def write(folder, **files):
    for name, fields in files.items():
        (folder / f"{name}.json").write_text(json.dumps(fields), encoding="utf-8")


def test_a_folder_may_have_no_template(tmp_path):
    assert read_chat_template(tmp_path) is None
    write(tmp_path, tokenizer_config={"chat_template": None})
    assert read_chat_template(tmp_path) is None


def test_a_template_is_found_in_each_place_and_its_own_file_goes_first(tmp_path):
    named = [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "plain"}]
    write(tmp_path, tokenizer_config={"chat_template": named})
    assert read_chat_template(tmp_path) == "plain"
    write(tmp_path, tokenizer_config={"chat_template": "one"})
    assert read_chat_template(tmp_path) == "one"
    write(tmp_path, chat_template={"chat_template": "older"})
    assert read_chat_template(tmp_path) == "older"
    (tmp_path / "chat_template.jinja").write_bytes("{{ 'é' }}\r\n".encode())
    assert read_chat_template(tmp_path) == "{{ 'é' }}\r\n"


def test_a_template_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelFileError, match=r"UTF-8.*chat_template\.jinja"):
        read_chat_template(tmp_path)


def test_ends_are_all_that_any_file_names(tmp_path):
    write(tmp_path, config={"eos_token_id": 1}, generation_config={"eos_token_id": [2, 3]})
    write(tmp_path, tokenizer_config={"eos_token": {"content": "<|im_end|>"}})
    assert read_end_ids(tmp_path, {"<|im_end|>": 7}) == {1, 2, 3, 7}
    write(tmp_path, tokenizer_config={"eos_token": "<|end|>"}, config={"text_config": {"eos_token_id": [4]}})
    assert read_end_ids(tmp_path, {"<|end|>": 8}) == {2, 3, 4, 8}
    assert read_end_ids(tmp_path / "nowhere", {}) == frozenset()


def test_what_is_no_id_ends_nothing(tmp_path):
    write(tmp_path, config={"eos_token_id": None}, generation_config={"eos_token_id": [True, "2"]})
    write(tmp_path, tokenizer_config={"eos_token": "word"})
    assert read_end_ids(tmp_path, {}) == frozenset()
