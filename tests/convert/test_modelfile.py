import json

import pytest

from pellucid.convert.modelfile import CHAT_KINDS, kind_of_chat, modelfile
from tests.convert.outgoing_models import SHAPES, made, outgoing

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for message in messages %}{% set role = 'model' if message['role'] == 'assistant' else "
    "message['role'] %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


@pytest.fixture(scope="module")
def model():
    return made(SHAPES["qwen3"])


def test_a_model_that_knows_no_chat_goes_on_from_what_it_is_given(model):
    said = modelfile(outgoing(model), "book.gguf").splitlines()
    assert said == [
        "FROM ./book.gguf",
        'TEMPLATE """{{ .Prompt }}"""',
        'PARAMETER stop "<|endoftext|>"',
        "PARAMETER num_ctx 640",
    ]


@pytest.mark.parametrize(("template", "kind"), [(CHATML, "ChatML"), (GEMMA, "Gemma")])
def test_a_template_of_a_known_kind_is_written_in_ollama_s_words(template, kind, model):
    out = outgoing(model, chat_template=template)
    assert kind_of_chat(out) == kind
    assert CHAT_KINDS[kind].ollama in modelfile(out, "x.gguf")


@pytest.mark.parametrize(
    "template", ["{{ messages[0].content }}", "{% bad", "{{ raise_exception('no') }}", CHATML + "!"]
)
def test_of_other_templates_nothing_is_said(template, model):
    said = modelfile(outgoing(model, chat_template=template), "x.gguf")
    assert "TEMPLATE" not in said


def test_names_with_quotes_do_not_break_the_file(model):
    out = outgoing(model)
    said = modelfile(out, "x.gguf")
    assert json.dumps(said)
    assert said.count('"""') == 2
