import torch

from pellucid import presets
from pellucid.generate import generate_naively, likeliest
from pellucid.nn import TransformerLM


def test_it_writes_the_likeliest_id_after_everything_so_far():
    model = TransformerLM(
        presets.default(vocab_size=20, d_model=32, num_heads=4, num_layers=1, context_length=30)
    ).eval()
    token_ids = [1, 2, 3]
    for _ in range(10):
        token_ids.append(int(model(torch.tensor([token_ids]))[0, -1].argmax()))
    assert generate_naively(model, [1, 2, 3], likeliest, 10) == token_ids[3:]


def test_past_the_context_it_sees_at_most_as_much_as_the_model_can_read():
    model = TransformerLM(presets.gpt2(vocab_size=20, d_model=32, num_heads=4, num_layers=1, context_length=6)).eval()
    assert len(generate_naively(model, [1, 2, 3], likeliest, 30)) == 30


def test_nothing_asked_is_nothing_written():
    model = TransformerLM(presets.default(vocab_size=20, d_model=32, num_heads=4, num_layers=1, context_length=6))
    assert generate_naively(model, [1], likeliest, 0) == []
