import pytest
import tokenizers

from pellucid.errors import TokenizerError
from pellucid.text import TextTokenizer, fitted, train_byte_pairs


def test_special_tokens_beyond_a_models_ids_are_left_out_and_others_refused():
    tokenizer = train_byte_pairs(["to be"], 260)
    made = tokenizers.Tokenizer.from_str(tokenizer.definition)
    made.add_special_tokens(["<image>"])
    longer = TextTokenizer(made.to_str())
    assert longer.vocab_size == tokenizer.vocab_size + 1
    assert fitted(longer, longer.vocab_size) is longer
    shorter = fitted(longer, tokenizer.vocab_size)
    assert shorter.vocab_size == tokenizer.vocab_size
    assert shorter.encode("to <image>").tolist() == longer.encode("to <image>").tolist()
    with pytest.raises(TokenizerError, match=r"at most 100 ids.*one with 258"):
        fitted(longer, 100)
