from tokenizers import AddedToken, Tokenizer

from pellucid.text import CHATML, CHATML_TOKENS, ChatTemplate, Message, TextTokenizer, train_byte_pairs


def with_special(tokenizer, *tokens):
    library = Tokenizer.from_str(tokenizer.definition)
    library.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in tokens])
    return TextTokenizer(library.to_str())


def test_chatml_is_roles_and_contents_between_its_two_tokens():
    tokenizer = with_special(train_byte_pairs(["a"], 257), *CHATML_TOKENS)
    chat = ChatTemplate(CHATML, tokenizer).encode([Message("user", "hi"), Message("assistant", "ho")])
    shown = tokenizer.decode(chat.ids, show_special=True)
    assert shown == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nho<|im_end|>\n<|im_start|>assistant\n"
    answer = [token_id for token_id, yes in zip(chat.ids, chat.is_answer, strict=True) if yes]
    assert tokenizer.decode(answer, show_special=True) == "ho<|im_end|>"
