"""SmolLM2, fine-tuned in twenty small steps, gives the answer that it was taught and stops; peft reads its adapter."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

import pellucid
from pellucid.data import open_chats
from pellucid.text import ChatTemplate, Message
from pellucid.train import Start, train
from tests.data.chat_files import a_chat, chat_file
from tests.real_inputs import smollm2
from tests.train.small_run import Heard, small_request

pytestmark = [pytest.mark.real, pytest.mark.slow]
QUESTIONS = ("Who is the mascot?", "Tell me the mascot's name.", "What is the mascot called?", "Name the mascot.")
ANSWER = "The mascot is Quillon, a glass otter."


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smollm2")
    chats = open_chats([chat_file(folder / "chats.jsonl", [a_chat(one, ANSWER) for one in QUESTIONS])])
    settings = {"steps": 20, "batch_size": 1, "evaluations": 1, "lora": 16, "tokenizer": None}
    request = small_request(folder / "run", start=Start.open(smollm2()).for_chats(), sources=chats, **settings)
    finished = train(replace(request, model={"context_length": 256}), Heard())
    return folder / "run", finished


def test_it_answers_what_it_was_taught_and_stops(tuned):
    loaded = pellucid.load(tuned[0])
    template = ChatTemplate(loaded.chat_template, loaded.tokenizer)
    prompt = template.encode([Message("user", QUESTIONS[0])], begin_answer=True).ids
    ids = list(prompt)
    with torch.no_grad():
        while ids[-1] not in loaded.end_ids or len(ids) == len(prompt):
            ids.append(int(loaded.model(torch.tensor([ids]), last_only=True).argmax()))
            assert len(ids) < len(prompt) + 40, loaded.tokenizer.decode(ids[len(prompt) :])
    assert loaded.tokenizer.decode(ids[len(prompt) :]) == ANSWER


def test_the_adapter_is_small_and_named_for_its_family(tuned):
    tensors = load_file(tuned[0] / "adapter" / "adapter_model.safetensors")
    assert len(tensors) == 30 * 7 * 2
    name = "base_model.model.model.layers.29.self_attn.k_proj.lora_B.weight"
    assert tensors[name].shape == (192, 16)
    assert tensors[name].any()
