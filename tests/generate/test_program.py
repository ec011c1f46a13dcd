import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid import presets
from pellucid.generate import Program, Reading, decode, likeliest
from pellucid.generate import program as program_file
from pellucid.generate.native import native_library
from pellucid.generate.program import MOST_TOKENS
from pellucid.model_config import ModelConfig, RopeScaling
from pellucid.nn import TransformerLM
from pellucid.quantize import quantize_model

pytestmark = pytest.mark.skipif(native_library() is None, reason="no C++ compiler here")

SIZES = {"vocab_size": 50, "context_length": 64, "d_model": 48, "num_layers": 3, "num_heads": 6, "d_ff": 80}
CONFIGS = {
    "default": presets.default(**SIZES, num_kv_heads=2),
    "llama": presets.llama(**SIZES, num_kv_heads=3, rope_scaling=RopeScaling(kind="llama3", factor=8.0)),
    "mistral": presets.mistral(**{**SIZES, "num_heads": 4}, num_kv_heads=1, window=9),
    "qwen2": presets.qwen2(**SIZES, tie_embeddings=True),
    "olmo2": presets.olmo2(**SIZES, num_kv_heads=2),
    "gemma3": presets.gemma3(**SIZES, num_kv_heads=2, d_head=20, window=7, logit_soft_cap=5.0),
    "gpt2": presets.gpt2(**SIZES),
    "char_gpt": presets.char_gpt(**{**SIZES, "d_head": 8}),
    "post": ModelConfig(**SIZES, norm="layer", norm_placement="post", feed_forward="relu2", positions="none"),
    "bare": ModelConfig(**SIZES, norm="none", feed_forward="silu", num_unused_ids=7),
    "exact gelu": ModelConfig(**SIZES, feed_forward="gelu", d_head=36, attention_scale=0.3, window=5),
}


def model_of(config, seed=0):
    torch.manual_seed(seed)
    model = TransformerLM(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.15)
    return model


@pytest.fixture(params=CONFIGS)
def model(request):
    return model_of(CONFIGS[request.param])


def read_in(model, parts, **how):
    reading = Reading(model, 1, 64, **how)
    assert (reading.program is None) == how.get("through_model", False)
    return torch.cat([reading.read([part])[0] for part in parts])


def parts_of(ids, *lengths):
    return [part.tolist() for part in torch.tensor(ids).split(lengths)]


IDS = torch.randint(43, (40,), generator=torch.Generator().manual_seed(1)).tolist()


def test_it_gives_the_logits_of_a_forward_pass_however_tokens_come(model):
    with torch.no_grad():
        expected = model(torch.tensor([IDS]))[0]
    read = read_in(model, parts_of(IDS, 5, 1, 1, 16, 2, 15))
    torch.testing.assert_close(read, expected, atol=2e-5, rtol=2e-5)


def test_a_long_prompt_is_read_by_the_model_and_gone_on_with(model):
    read = read_in(model, parts_of(IDS, 30, 3, 7))
    with torch.no_grad():
        expected = model(torch.tensor([IDS]))[0, 29:]
    torch.testing.assert_close(read, expected, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("name", ["default", "gemma3", "gpt2"])
def test_in_bfloat16_it_is_nearer_to_exact_than_the_forward_pass_is(name):
    model = model_of(CONFIGS[name]).to(torch.bfloat16)
    exact = TransformerLM(model.config).eval()
    exact.load_state_dict(model.state_dict())
    with torch.no_grad():
        expected = exact(torch.tensor([IDS]))[0]
        rounded = model(torch.tensor([IDS]))[0].float()
    used = expected > -torch.inf
    read = read_in(model, parts_of(IDS, 16, 16, 8))
    ours, theirs = ((one - expected)[used].square().mean() for one in (read, rounded))
    assert ours < theirs


@pytest.mark.parametrize("name", ["default", "gemma3", "gpt2", "char_gpt"])
def test_in_eight_bits_it_gives_what_the_rounded_weights_give(name):
    model = quantize_model(model_of(CONFIGS[name]))
    with torch.no_grad():
        expected = model(torch.tensor([IDS]))[0]
    torch.testing.assert_close(read_in(model, parts_of(IDS, 16, 16, 8)), expected, atol=1e-4, rtol=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_sequence_in_company_gets_the_very_logits_it_gets_alone(data):
    model = model_of(CONFIGS[data.draw(st.sampled_from(["default", "gemma3", "gpt2"]))])
    if data.draw(st.booleans()):
        quantize_model(model)
    lengths = data.draw(st.lists(st.integers(1, 30), min_size=2, max_size=5))
    prompts = [IDS[:length] for length in lengths]
    together = Reading(model, len(prompts), 8)
    first = together.read(prompts)
    then = together.read([[number] * data.draw(st.integers(0, 4)) for number in range(len(prompts))])
    for row, prompt in enumerate(prompts):
        alone = Reading(model, 1, 64)
        torch.testing.assert_close(alone.read([prompt])[0], first[row], atol=0, rtol=0)
        new = together.sequences[row][len(prompt) :]
        one_by_one = [alone.read([[token_id]])[0] for token_id in new]
        torch.testing.assert_close(torch.cat([*one_by_one, first[row][:0]]), then[row], atol=0, rtol=0)


def test_the_number_of_threads_changes_no_bit():
    model, before = model_of(CONFIGS["default"]), torch.get_num_threads()
    try:
        read = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            read.append(read_in(model, parts_of(IDS, 16, 1, 16, 7)))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(read[0], read[1])
    assert torch.equal(read[0], read[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_guesses_change_no_id_greedy_or_drawn(dtype):
    model = model_of(presets.default(**{**SIZES, "vocab_size": 6, "num_heads": 4})).to(dtype)

    def write(most_guessed, choose):
        prompts = [[1, 2, 3, 1, 2, 3, 1, 2], [5] * 20, [4]]
        steps = decode(model, prompts, choose(), max_tokens=150, most_guessed=most_guessed)
        written = [[], [], []]
        for number, token_id in steps:
            written[number].append(token_id)
        return written

    def drawn():
        streams = [torch.Generator().manual_seed(number) for number in range(3)]
        return lambda number, logits: int(torch.multinomial((3 * logits).softmax(0), 1, generator=streams[number]))

    for choose in (lambda: lambda _, logits: likeliest(logits), drawn):
        assert write(8, choose) == write(0, choose)


def test_guessing_takes_fewer_steps(monkeypatch):
    model, counts = model_of(presets.default(**{**SIZES, "vocab_size": 4, "num_heads": 4})), []
    step = Program.step
    monkeypatch.setattr(Program, "step", lambda self, ids, *rest: counts.append(len(ids)) or step(self, ids, *rest))
    list(decode(model, [[1, 2, 3] * 5], lambda _, logits: likeliest(logits), max_tokens=45))
    assert len(counts) < 35
    assert max(counts) > 1


def test_weights_are_read_where_they_are_so_that_training_is_seen():
    model = model_of(CONFIGS["default"])
    reading = Reading(model, 1, 20)
    before = reading.read([IDS[:5]])[0]
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    reading.cut(0, 0)
    torch.testing.assert_close(reading.read([IDS[:5]])[0], 2 * before)


def test_a_model_that_is_somehow_special_is_read_by_its_forward_pass(monkeypatch):
    model = model_of(CONFIGS["default"])
    assert Program.can_run(model)
    handle = model.blocks[1].feed_forward.register_forward_hook(lambda *_: None)
    assert not Program.can_run(model)
    handle.remove()
    assert Program.can_run(model)
    model.blocks[0].attention.output = torch.nn.Linear(48, 48)
    assert not Program.can_run(model)
    assert not Program.can_run(model_of(CONFIGS["default"]).double())
    monkeypatch.setattr(program_file, "native_library", lambda: None)
    assert not Program.can_run(model_of(CONFIGS["llama"]))


def test_nan_stays_nan_and_does_not_hang():
    model = model_of(CONFIGS["default"])
    model.blocks[0].feed_forward.down.weight.data.fill_(torch.nan)
    assert Reading(model, 1, 4).read([[1, 2]])[0].isnan().all()


def test_a_step_of_many_rows_is_cut():
    reading = Reading(model_of(CONFIGS["default"]), MOST_TOKENS + 3, 4)
    assert len(reading.read([[1, 2]] * (MOST_TOKENS + 3))) == MOST_TOKENS + 3
