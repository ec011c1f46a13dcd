import json
import os
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers

from pellucid.errors import TokenizerError
from pellucid.text import (
    TextTokenizer,
    byte_pair_tokenizer,
    character_tokenizer,
    load_tokenizer,
    train_byte_pairs,
    train_byte_pairs_by_hand,
)
from pellucid.text import tokenizer as tokenizer_file
from pellucid.text.byte_alphabet import spell
from tests.text.awkward_texts import AWKWARD

MANY_SCRIPTS = (
    "नमस्ते दुनिया। می\u200cخواهم مُحَمَّد، ภาษาไทย ดี 中文，標點々。 e\u0301 \u0301a "
    "1984 don't_x = [f(y)];\r\n\t\x1c\x85\xa0👍🏽𝔘\x00"
)


def somebody_elses(*, end="</s>", model=None):
    """A tokenizer of the SentencePiece kind, as imported models bring."""
    vocab = {"<unk>": 0, "▁": 1, "t": 2, "h": 3, "e": 4, "▁t": 5, "▁th": 6, "▁the": 7, "<0xE7>": 8, "<0x99>": 9}
    merges = [("▁", "t"), ("▁t", "h"), ("▁th", "e")]
    built = tokenizers.Tokenizer(model or models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True))
    built.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    built.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    built.add_special_tokens(["<s>", end])
    built.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", built.token_to_id("<s>"))]
    )
    built.enable_truncation(4)
    built.enable_padding(length=4)
    return built


def test_ids_are_int64(byte_pairs):
    for tokenizer in (byte_pairs, character_tokenizer(["ab"])):
        for text in ("", "ab"):
            ids = tokenizer.encode(text)
            assert (ids.dtype, ids.ndim) == (np.int64, 1)


def test_several_texts_have_the_ids_of_each_alone(byte_pairs, manual):
    texts = [*AWKWARD, manual, ""]
    for tokenizer in (byte_pairs, character_tokenizer(texts)):
        batch = tokenizer.encode_batch(texts)
        assert [ids.tolist() for ids in batch] == [tokenizer.encode(text).tolist() for text in texts]
    assert byte_pairs.encode_batch([]) == []


def test_a_text_encoded_in_pieces_has_the_ids_of_the_whole(byte_pairs, manual, monkeypatch):
    library = tokenizers.Tokenizer.from_str(byte_pairs.definition)
    whole = library.encode(manual).ids
    monkeypatch.setattr(tokenizer_file, "_PIECE", 100)
    monkeypatch.setattr(tokenizer_file, "_TOGETHER", 1_000)
    assert byte_pairs.encode(manual).tolist() == whole


@pytest.fixture(scope="session")
def with_words_of_gpt2(manual):
    """As runs have it that were made when GPT-2's rule for words was the default."""
    vocab, merges = train_byte_pairs_by_hand([manual[:30_000], MANY_SCRIPTS], 400, ["<|endoftext|>"])
    return byte_pair_tokenizer(vocab, merges)


@pytest.fixture(scope="session")
def of_many_scripts(manual):
    return train_byte_pairs([manual[:30_000], MANY_SCRIPTS * 9], 700)


@pytest.mark.parametrize("made", ["of_many_scripts", "with_words_of_gpt2"])
@given(
    parts=st.lists(st.sampled_from([*MANY_SCRIPTS, *MANY_SCRIPTS.split(), "the ", "'ll", "\n\n", "  "])),
    piece=st.integers(1, 9),
)
def test_any_text_encoded_in_pieces_has_the_ids_of_the_whole(request, made, parts, piece):
    tokenizer, text = request.getfixturevalue(made), "".join(parts)
    whole = tokenizers.Tokenizer.from_str(tokenizer.definition).encode(text).ids
    with mock.patch.object(tokenizer_file, "_PIECE", piece):
        assert tokenizer.encode(text).tolist() == whole
    assert tokenizer.decode(whole) == text


def test_a_run_with_the_words_of_gpt2_keeps_them(with_words_of_gpt2, tmp_path):
    loaded = load_tokenizer(with_words_of_gpt2.save(tmp_path))
    assert loaded.fingerprint == with_words_of_gpt2.fingerprint
    for text in (*AWKWARD, "न1984 मस्ते"):
        assert loaded.encode(text).tolist() == with_words_of_gpt2.encode(text).tolist()


def test_a_special_token_with_a_space_is_not_cut_in_two(monkeypatch):
    monkeypatch.setattr(tokenizer_file, "_PIECE", 1)
    tokenizer = byte_pair_tokenizer({byte: bytes([byte]) for byte in range(256)}, [], ["<|endoftext|>", "<|a turn|>"])
    assert tokenizer.encode("a b<|a turn|>", allow_special=True).tolist() == [*b"a b", 257]


def test_decoding_takes_lists_arrays_and_iterators(byte_pairs):
    ids = byte_pairs.encode("to be")
    assert byte_pairs.decode(ids) == byte_pairs.decode(ids.tolist()) == byte_pairs.decode(iter(ids.tolist())) == "to be"
    assert byte_pairs.decode([]) == ""


@pytest.mark.parametrize("outside", [-1, 1024, 70_000, 2**40])
def test_ids_outside_the_vocabulary_are_refused(byte_pairs, outside):
    with pytest.raises(TokenizerError, match=rf"token ids from 0 to 1023, but got id {outside}"):
        byte_pairs.decode([1, outside])
    with pytest.raises(TokenizerError, match=f"id {outside}"):
        byte_pairs.token_bytes(outside)


def test_half_a_character_is_refused_and_listed(byte_pairs):
    with pytest.raises(TokenizerError, match=r"lone surrogate U\+DC80"):
        byte_pairs.encode_batch(["fine", "not \udc80"])
    assert byte_pairs.unknown_characters("a\udc80b\udc80é") == "\udc80"
    assert byte_pairs.unknown_characters("any text 中 \x00") == ""


def test_characters_of_bytes_that_a_vocabulary_lacks_are_unknown(byte_pairs):
    definition = json.loads(byte_pairs.definition)
    lacking = {spell(bytes([byte])) for byte in (0x1D, 0xF1)}  # as SmolLM2 lacks them
    vocabulary = definition["model"]["vocab"]
    definition["model"]["vocab"] = {token: one for token, one in vocabulary.items() if not lacking & set(token)}
    merges = definition["model"]["merges"]
    definition["model"]["merges"] = [pair for pair in merges if not lacking & set("".join(pair))]
    tokenizer = TextTokenizer(json.dumps(definition))
    text = "a\x1db\U0006b6c0c\x1d"
    assert tokenizer.unknown_characters(text) == "\x1d\U0006b6c0"
    assert tokenizer.decode(tokenizer.encode(text)) != text
    assert tokenizer.unknown_characters("any text 中 \x00") == ""


def test_the_end_of_text_is_id_0_of_our_tokenizers(byte_pairs):
    assert byte_pairs.end_of_text_id == character_tokenizer(["ab"]).end_of_text_id == 0
    assert byte_pairs.token_bytes(0) == b""
    assert byte_pairs.special_tokens == {"<|endoftext|>": 0}


def test_a_fingerprint_is_of_the_meaning_not_the_layout(byte_pairs):
    laid_out = json.dumps(json.loads(byte_pairs.definition), indent=7, ensure_ascii=True).replace("\n", "\r\n")
    assert TextTokenizer(laid_out).fingerprint == byte_pairs.fingerprint


def test_tokenizers_of_one_size_and_other_content_have_other_fingerprints():
    one, other = train_byte_pairs(["abab cdcd"], 259), train_byte_pairs(["abab efef"], 259)
    assert one.vocab_size == other.vocab_size
    assert one.fingerprint != other.fingerprint


def test_somebody_elses_tokenizer_adds_cuts_and_pads_nothing():
    tokenizer = TextTokenizer(somebody_elses().to_str())
    assert tokenizer.kind == "other"
    assert tokenizer.encode("the the the the the the").tolist() == [7] * 6
    assert tokenizer.encode("the").tolist() == [7]
    assert tokenizer.decode([7, 7]) == "the the"
    assert [tokenizer.token_bytes(token_id) for token_id in (7, 8, 9)] == [b" the", b"\xe7", b"\x99"]


def test_somebody_elses_special_tokens_stay_text_unless_asked_otherwise():
    tokenizer = TextTokenizer(somebody_elses().to_str())
    assert not set(tokenizer.special_tokens.values()) & set(tokenizer.encode("the</s><s>"))
    assert tokenizer.encode("the</s>", allow_special=True).tolist() == [7, tokenizer.end_of_text_id]


def test_ids_with_holes_are_all_inside_the_vocabulary():
    holes = models.WordLevel({"the": 0, "</s>": 9, "<unk>": 1}, unk_token="<unk>")
    tokenizer = TextTokenizer(somebody_elses(model=holes).to_str())
    assert tokenizer.vocab_size == 10
    assert tokenizer.token_bytes(5) == b""
    assert tokenizer.decode([0, 5]) == "the"


def test_a_tokenizer_without_an_end_of_text_is_refused(tmp_path):
    file = tmp_path / "tokenizer.json"
    file.write_text(somebody_elses(end="<|stop|>").to_str(), encoding="utf-8")
    with pytest.raises(TokenizerError, match="name one of its tokens as eos_token"):
        load_tokenizer(file)
    with pytest.raises(TokenizerError, match=r"without '<.halt.>'"):
        load_tokenizer(file, end_of_text="<|halt|>")


@pytest.mark.parametrize("eos_token", ["<|stop|>", {"content": "<|stop|>", "special": True}])
def test_the_end_of_text_may_be_named_in_the_configuration_beside(tmp_path, eos_token):
    (tmp_path / "tokenizer.json").write_text(somebody_elses(end="<|stop|>").to_str(), encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": eos_token}), encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.end_of_text == "<|stop|>"


def test_an_end_of_text_of_an_unusual_name_survives_saving(tmp_path):
    tokenizer = TextTokenizer(somebody_elses(end="<|stop|>").to_str(), end_of_text="<|stop|>")
    assert load_tokenizer(tokenizer.save(tmp_path)).end_of_text_id == tokenizer.end_of_text_id


def test_saving_writes_the_file_to_the_letter(byte_pairs, tmp_path):
    path = byte_pairs.save(tmp_path / "copy.json")
    again = load_tokenizer(path).save(tmp_path / "again.json")
    assert path.read_bytes() == again.read_bytes() == byte_pairs.definition.encode()


def test_an_interrupted_save_leaves_the_old_file(byte_pairs, tmp_path, monkeypatch):
    path = character_tokenizer(["ab"]).save(tmp_path)
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        byte_pairs.save(tmp_path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"not json", r"the JSON of a tokenizer in .*tokenizer.json, but got something else"),
        (b'{"model": {}}', "the JSON of a tokenizer"),
        (b"", "the JSON of a tokenizer"),
        (b"\xff\xfe{", "in UTF-8"),
    ],
)
def test_a_file_that_is_no_tokenizer_is_refused(tmp_path, content, sentence):
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(TokenizerError, match=sentence):
        load_tokenizer(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TokenizerError, match=r"tokenizer.json, but got no such file"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"")
    with pytest.raises(TokenizerError, match="a SentencePiece model or vocabulary files, but"):
        load_tokenizer(tmp_path)


def test_the_file_is_the_same_under_any_locale_and_torch_stays_out(tmp_path):
    program = (
        "import sys; from pellucid.text import character_tokenizer, load_tokenizer, visible\n"
        "text = '\\U0001f44d\\u200b\\u4e2d\\u6587'\n"
        "path = character_tokenizer([text]).save(sys.argv[1])\n"
        "loaded = load_tokenizer(path)\n"
        "assert loaded.decode(loaded.encode(text)) == text\n"
        "assert 'torch' not in sys.modules\n"
    )
    saved = []
    for number, settings in enumerate([{"PYTHONUTF8": "0", "LC_ALL": "C"}, {"PYTHONUTF8": "1"}]):
        folder = tmp_path / str(number)
        folder.mkdir()
        environment = os.environ | {"PYTHONCOERCECLOCALE": "0"} | settings
        subprocess.run([sys.executable, "-c", program, str(folder)], env=environment, check=True)
        saved.append((folder / "tokenizer.json").read_bytes())
    assert saved[0] == saved[1]


def test_it_introduces_itself(byte_pairs):
    assert repr(byte_pairs) == f"TextTokenizer(bpe, vocab_size=1024, fingerprint={byte_pairs.fingerprint[:12]}…)"


def with_bos(tokenizer, **template):
    made = tokenizers.Tokenizer.from_str(tokenizer.definition)
    made.post_processor = tokenizers.processors.TemplateProcessing(**template)
    return TextTokenizer(made.to_str())


def test_what_begins_every_text_is_told_and_never_encoded():
    tokenizer = train_byte_pairs(["to be"], 260)
    assert (tokenizer.beginning_ids, tokenizer.start_id) == ([], tokenizer.end_of_text_id)
    end = tokenizer.end_of_text
    marked = with_bos(tokenizer, single=f"{end} $A", pair=None, special_tokens=[(end, tokenizer.end_of_text_id)])
    assert (marked.beginning_ids, marked.start_id) == ([tokenizer.end_of_text_id], tokenizer.end_of_text_id)
    assert marked.encode("to be").tolist() == tokenizer.encode("to be").tolist()
    behind = with_bos(tokenizer, single=f"$A {end}", pair=None, special_tokens=[(end, tokenizer.end_of_text_id)])
    assert behind.beginning_ids == []
