import unicodedata

from pellucid.convert.awkward import AWKWARD, encodable
from tests.convert.outgoing_models import TEXT, byte_pairs, letters


def test_every_kind_that_tokenizers_stumble_on_is_there():
    all_of_them = "\n".join(AWKWARD)
    for kind in (" " * 64, "\t", "\r\n", "\u00a0", "\0", "\u2028", "\u200d", "\u0301", "\u4f60", "'ll", "12345"):
        assert kind in all_of_them
    assert any(unicodedata.normalize("NFC", text) != text for text in AWKWARD)


def test_byte_pairs_have_ids_for_all_of_them_and_give_them_back():
    tokenizer = byte_pairs()
    assert encodable(tokenizer) == list(AWKWARD)
    assert [tokenizer.decode(tokenizer.encode(text)) for text in AWKWARD] == list(AWKWARD)


def test_of_unknown_letters_texts_are_freed():
    assert encodable(letters(), [TEXT + "\u4f60"]) == [TEXT]
