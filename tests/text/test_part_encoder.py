import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from pellucid.errors import TokenizerError
from pellucid.text import TextTokenizer
from pellucid.text.part_encoder import Part, PartEncoder
from tests.text.chat_tokenizers import KINDS

END = Part("</s>", is_control=True)


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_encoded_as_the_whole_text_is(kind):
    tokenizer = KINDS[kind]()
    text = "say hello</s>  and </s>I say goodbye</s>"
    parts = [Part("say hel"), Part("lo"), END, Part("  and "), END, Part("I say goodbye"), END]
    ids, _ = PartEncoder(tokenizer, tokenizer.special_tokens).encode(parts)
    assert ids == tokenizer.encode(text, allow_special=True).tolist()


def test_tokens_that_are_not_special_are_text_if_they_control():
    tokenizer = KINDS["byte pairs"]()
    think = tokenizer.encode("<think>").tolist()
    control = {**tokenizer.special_tokens, "<think>": think[0]}
    ids, _ = PartEncoder(tokenizer, control).encode([Part("<think>"), Part("<think>", is_control=True)])
    assert (ids.count(think[0]), ids[-1]) == (1, think[0])
    assert tokenizer.decode(ids) == "<think><think>"


def test_ids_in_which_a_counted_part_has_a_share_are_told():
    tokenizer = KINDS["byte pairs"]()
    parts = [Part("say hel"), Part("lo", is_counted=True), END, Part("é", is_counted=True), END]
    ids, counted = PartEncoder(tokenizer, tokenizer.special_tokens).encode(parts)
    told = [token_id for token_id, yes in zip(ids, counted, strict=True) if yes]
    assert tokenizer.decode(told) == " helloé"  # one token is of both parts
    assert [yes for token_id, yes in zip(ids, counted, strict=True) if token_id == tokenizer.end_of_text_id] == [0, 0]


def test_a_text_that_has_the_secret_word_stays_text():
    tokenizer = KINDS["byte pairs"]()
    encoder = PartEncoder(tokenizer, tokenizer.special_tokens)
    encoder.encode([END])
    word = encoder._words["</s>"]
    ids, _ = encoder.encode([Part(word), END])
    assert tokenizer.decode(ids) == word
    assert ids.count(tokenizer.end_of_text_id) == 1


def test_a_tokenizer_that_makes_control_tokens_of_text_all_the_same_is_refused():
    made = Tokenizer(models.WordLevel({"a": 0, "</s>": 1, "<unk>": 2}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens([AddedToken("</s>", normalized=False), AddedToken("<unk>", normalized=False)])
    tokenizer = TextTokenizer(made.to_str())
    encoder = PartEncoder(tokenizer, tokenizer.special_tokens)
    assert encoder.encode([Part("a b"), END])[0] == [0, 2, 1]
    with pytest.raises(TokenizerError, match="texts that stay texts, but got one that this tokenizer turns into"):
        encoder.encode([Part("a </s>")])


def test_text_that_has_no_token_is_unknown_and_no_control_token():
    made = Tokenizer(models.Unigram([("<unk>", 0.0), ("</s>", 0.0), ("a", -1.0)], unk_id=0))
    made.add_special_tokens([AddedToken("<unk>", normalized=False), AddedToken("</s>", normalized=False)])
    tokenizer = TextTokenizer(made.to_str())
    encoder = PartEncoder(tokenizer, tokenizer.special_tokens)
    assert encoder.encode([Part("aβa"), END])[0] == [2, 0, 2, 1]
    with pytest.raises(TokenizerError, match="texts that stay texts"):
        encoder.encode([Part("a</s>")])


def test_half_characters_are_refused():
    tokenizer = KINDS["byte pairs"]()
    with pytest.raises(TokenizerError, match="lone surrogate"):
        PartEncoder(tokenizer, tokenizer.special_tokens).encode([Part("\ud83d")])


def test_nothing_is_nothing():
    tokenizer = KINDS["byte pairs"]()
    encoder = PartEncoder(tokenizer, tokenizer.special_tokens)
    assert encoder.encode([]) == ([], [])
    assert encoder.encode([Part("")]) == ([], [])
