from dataclasses import replace
from functools import cache

import pytest
import torch

from pellucid import presets
from pellucid.errors import GenerationError, TokenizerError
from pellucid.generate import Reading, Writing
from pellucid.generate.conversation import Continuation, Conversation
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import CHATML, ChatTemplate, Message, TextTokenizer
from tests.text.chat_templates import GEMMA3, QWEN3
from tests.text.chat_tokenizers import byte_pairs

CONFIG = GenerationConfig(max_tokens=6, temperature=1.0, seed=3)


@cache
def tokenizer() -> TextTokenizer:
    return byte_pairs()


@cache
def template(text=CHATML):
    return ChatTemplate(text, tokenizer())


@cache
def model(context_length=256):
    torch.manual_seed(1)
    shape = {"d_model": 32, "num_heads": 4, "num_layers": 2, "context_length": context_length}
    return TransformerLM(presets.default(vocab_size=tokenizer().vocab_size, **shape)).eval()


def talk(written=CHATML, context_length=256, **config):
    return Conversation(model(context_length), tokenizer(), template(written), replace(CONFIG, **config))


def say(conversation, text):
    turn = conversation.ask(text)
    for _ in turn.writing:
        pass
    assert conversation.keep(turn)
    return turn


def saying(conversation, text):
    """The same with an answer of one's own."""
    turn = conversation.ask("hello")
    turn.answer.text, turn.answer.finish_reason = text, "stop"
    return conversation.keep(turn)


def test_an_answer_is_what_the_model_writes_after_the_whole_chat():
    conversation = talk()
    turns = [say(conversation, text) for text in ("hello", "goodbye", "hello again")]
    said = [Message("user", "hello")]
    for place, turn in enumerate(turns):
        config = replace(CONFIG, seed=CONFIG.seed + place)
        ids = template().encode(said).ids
        alone = Writing(model(), tokenizer(), [ids], config, conversation.end_ids)
        for _ in alone:
            pass
        assert (turn.answer.prompt_ids, turn.answer.text) == (ids, alone.completions[0].text)
        said += [Message("assistant", turn.answer.text), Message("user", ("goodbye", "hello again", "")[place])]


def test_what_was_read_is_not_read_again(monkeypatch):
    read, whole = [], Reading.read

    def counted(self, tokens):
        read.append(sum(map(len, tokens)))
        return whole(self, tokens)

    monkeypatch.setattr(Reading, "read", counted)
    conversation = talk(temperature=0.0)
    before = say(conversation, "hello")
    seen = [*before.answer.prompt_ids, *before.answer.token_ids[:-1]]
    read.clear()
    turn = conversation.ask("goodbye")
    next(iter(turn.writing), None)
    ids = turn.answer.prompt_ids
    same = next(place for place, pair in enumerate(zip(ids, [*seen, -1], strict=False)) if pair[0] != pair[1])
    assert same >= len(before.answer.prompt_ids)
    assert read[0] == len(ids) - same


def test_the_oldest_turns_are_forgotten_whole_and_the_system_message_never():
    conversation = talk(context_length=96)
    conversation.set_system("say hello")
    forgotten = [say(conversation, f"hello {number}").num_forgotten for number in range(8)]
    assert forgotten[:2] == [0, 0]
    assert set(forgotten[3:]) >= {1}
    shown = tokenizer().decode(conversation.ask("hello").answer.prompt_ids, show_special=True)
    assert shown.startswith("<|im_start|>system\nsay hello<|im_end|>\n<|im_start|>user\nhello ")
    assert "hello 0" not in shown
    assert "hello 7" in shown


def test_a_context_that_is_full_leaves_room_for_an_answer():
    conversation = talk(context_length=96, max_tokens=1000)
    for _ in range(6):
        turn = say(conversation, "hello")
        used = len(turn.answer.prompt_ids) + len(turn.answer.token_ids)
        assert used <= 96
        assert len(turn.answer.prompt_ids) <= 96 - 96 // 4
        assert conversation.is_full(turn) == (used == 96 and turn.answer.finish_reason == "length")


def test_a_message_that_is_too_long_by_itself_is_refused_with_both_numbers_and_nothing_is_forgotten():
    conversation = talk(context_length=96)
    say(conversation, "hello")
    before = list(conversation.messages)
    with pytest.raises(GenerationError, match=r"context of 96 tokens, but got one that makes a chat of \d{3}"):
        conversation.ask("é" * 99)
    assert conversation.messages == before


def test_an_answer_may_be_taken_back_and_the_chat_forgotten():
    conversation = talk()
    assert conversation.take_back() is None
    say(conversation, "hello")
    say(conversation, "goodbye")
    assert conversation.take_back() == "goodbye"
    assert [message.content for message in conversation.messages][:1] == ["hello"]
    assert len(conversation.messages) == 2
    conversation.reset()
    assert conversation.messages == []


def test_an_answer_that_was_interrupted_stays_as_far_as_it_was_written():
    conversation = talk()
    turn = conversation.ask("hello")
    assert not conversation.keep(turn)
    for _ in turn.writing:
        break
    assert conversation.keep(turn)
    assert conversation.messages[-1] == Message("assistant", turn.answer.text)
    assert turn.answer.finish_reason is None or len(turn.answer.token_ids) <= CONFIG.max_tokens
    say(conversation, "hello")


def test_a_template_without_a_place_for_a_system_message_is_told_of():
    conversation = talk("{% for m in messages if m.role != 'system' %}<|user|>{{ m.content }}{% endfor %}")
    with pytest.raises(GenerationError, match="leaves the system message out"):
        conversation.set_system("be kind")
    with pytest.raises(TokenizerError, match="its refusal: no system"):
        talk("{{ raise_exception('no system') if messages[0].role == 'system' }}").set_system("be kind")
    assert conversation.system is None


def test_an_answer_that_the_template_cannot_repeat_does_not_end_the_chat():
    conversation = talk(QWEN3)
    assert saying(conversation, "<think>\nhm\n</think>\n\nhello")
    assert conversation.messages[-1].content.endswith("hello")
    cut = talk("{% for m in messages %}{{ m.content.split('x')[0] }}<|user|>{% endfor %}")
    assert not saying(cut, "axb")
    assert cut.messages == []
    assert saying(cut, "axb</think>hello")
    assert cut.messages[-1].content == "hello"


def test_every_end_ends_an_answer():
    conversation = Conversation(model(), tokenizer(), template(GEMMA3), CONFIG, end_ids=[5])
    ends = {5, tokenizer().special_tokens["<end_of_turn>"], tokenizer().end_of_text_id}
    assert conversation.ask("hello").writing.end_ids == ends


def test_seeds_are_told_and_differ():
    one, two = talk(), talk()
    assert [say(one, "hello").answer.seed for _ in range(2)] == [3, 4]
    assert [say(two, "hello").answer.text for _ in range(2)] == [
        m.content for m in one.messages if m.role == "assistant"
    ]
    assert talk(seed=None).config.seed != talk(seed=None).config.seed


def test_a_model_without_a_template_goes_on_from_texts():
    continuing = Continuation(model(), tokenizer(), CONFIG)
    turn = say(continuing, "hello")
    assert turn.answer.prompt_ids == tokenizer().encode("hello").tolist()
    assert say(continuing, "hello").answer.seed == turn.answer.seed + 1
    assert continuing.take_back() == "hello"
    with pytest.raises(GenerationError, match="only continues text"):
        continuing.set_system("be kind")
    continuing.set_system(None)
    continuing.reset()
    assert not continuing.is_full(turn)
