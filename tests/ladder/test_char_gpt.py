import pytest
import torch
from torch import nn
from torch.nn import functional

from pellucid import presets
from pellucid.errors import ConfigError, ShapeError
from pellucid.ladder import Block, CharGPT, FeedForward
from pellucid.nn import TransformerLM

ROLES = ("W_query", "W_key", "W_value")


@pytest.fixture
def model(with_random_weights) -> CharGPT:
    return with_random_weights(CharGPT(vocab_size=65)).eval()


@pytest.fixture
def token_ids():
    return torch.randint(65, (2, 20), generator=torch.Generator().manual_seed(0))


def carry(source: CharGPT, target: TransformerLM) -> None:
    """Gives target every weight of source; only the heads' three matrices have to be stacked."""
    weights = {name: tensor for name, tensor in source.state_dict().items() if ".heads." not in name}
    for number, block in enumerate(source.blocks):
        address = f"blocks.{number}.attention"
        stacked = [getattr(head, role).weight for role in ROLES for head in block.attention.heads]
        weights[f"{address}.query_key_value.weight"] = torch.cat(stacked)
        for part in ("weight", "bias"):
            weights[f"{address}.output.{part}"] = weights.pop(f"{address}.out_proj.{part}")
    target.load_state_dict(weights)


@pytest.mark.parametrize("sizes", [{}, {"d_model": 24, "d_head": 8, "num_layers": 3, "context_length": 20}])
def test_with_its_weights_carried_over_the_preset_is_the_same_function(with_random_weights, token_ids, sizes):
    spelled_out = with_random_weights(CharGPT(vocab_size=65, **sizes)).eval()
    built = TransformerLM(presets.char_gpt(vocab_size=65, **sizes)).eval()
    carry(spelled_out, built)
    # Logits reach 10; float32 keeps 7 digits, and the two sum in different orders through several layers.
    torch.testing.assert_close(spelled_out(token_ids), built(token_ids), atol=1e-4, rtol=1e-4)


def test_in_double_precision_the_preset_agrees_to_the_last_digits(model, token_ids):
    built = TransformerLM(presets.char_gpt(vocab_size=65)).eval()
    carry(model, built)
    torch.testing.assert_close(model.double()(token_ids), built.double()(token_ids), atol=1e-11, rtol=1e-11)


def test_the_preset_learns_as_many_numbers(model):
    built = TransformerLM(presets.char_gpt(vocab_size=65))
    count = lambda module: sum(parameter.numel() for parameter in module.parameters())  # noqa: E731
    assert count(model) == count(built)


def written_out(model: CharGPT, token_ids: torch.Tensor, dropout: float) -> torch.Tensor:
    """CharGPT as one function of torch's own operations, dropping in the same places and the same order."""
    drop = lambda x: functional.dropout(x, dropout)  # noqa: E731
    norm = lambda x, layer: functional.layer_norm(x, x.shape[-1:], layer.weight, layer.bias, eps=1e-5)  # noqa: E731
    length = token_ids.shape[1]
    x = model.token_embedding.weight[token_ids] + model.position_embedding.weight[:length]
    for block in model.blocks:
        y, heads = norm(x, block.attention_norm), []
        for head in block.attention.heads:
            query, key, value = (y @ getattr(head, role).weight.T for role in ROLES)
            scores = query @ key.mT / head.W_query.out_features**0.5
            scores = scores + torch.full((length, length), -torch.inf).triu(1)
            heads.append(drop(scores.softmax(-1)) @ value)
        projection = block.attention.out_proj
        x = x + drop(torch.cat(heads, -1) @ projection.weight.T + projection.bias)
        up, down = block.feed_forward.up, block.feed_forward.down
        hidden = functional.gelu(norm(x, block.feed_forward_norm) @ up.weight.T + up.bias)
        x = x + drop(hidden @ down.weight.T + down.bias)
    return norm(x, model.final_norm) @ model.lm_head.weight.T + model.lm_head.bias


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_it_is_the_function_that_torch_would_write(model, token_ids, dropout):
    model.train(dropout > 0)
    torch.manual_seed(123)
    expected = written_out(model, token_ids, dropout)
    torch.manual_seed(123)
    torch.testing.assert_close(model(token_ids), expected, atol=1e-4, rtol=1e-4)  # logits reach 10


@pytest.mark.parametrize("num_layers", [0, 1, 3])
def test_blocks_are_as_many_as_asked_for(num_layers):
    assert len(CharGPT(65, num_layers=num_layers).blocks) == num_layers


def test_only_queries_keys_and_values_are_without_a_bias(model):
    linear = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    without = {name.rsplit(".", 1)[-1] for name, module in linear.items() if module.bias is None}
    with_bias = {name.rsplit(".", 1)[-1] for name, module in linear.items() if module.bias is not None}
    assert without == set(ROLES)
    assert with_bias == {"out_proj", "up", "down", "lm_head"}


def test_the_head_has_weights_of_its_own(model):
    assert model.lm_head.weight is not model.token_embedding.weight


def test_order_matters_through_positions_alone(model):
    token_ids = torch.tensor([[7, 7, 7, 7]])
    assert not torch.allclose(model(token_ids)[0, 0], model(token_ids)[0, 3])
    model.position_embedding.weight.data.zero_()
    torch.testing.assert_close(model(token_ids)[0, 0], model(token_ids)[0, 3], atol=1e-5, rtol=1e-5)


def test_the_future_cannot_leak(model, token_ids):
    for name, parameter in model.named_parameters():
        if "W_query" in name or "W_key" in name:
            parameter.data *= 1e3
    changed = token_ids.clone()
    changed[:, 5:] = 64 - changed[:, 5:]
    assert torch.equal(model(changed)[:, :5], model(token_ids)[:, :5])


def test_dropout_sleeps_after_eval(assert_eval_draws_nothing, token_ids):
    assert_eval_draws_nothing(CharGPT(65), token_ids)


def test_it_learns_one_sequence_by_heart():
    torch.manual_seed(0)
    model = CharGPT(vocab_size=20, dropout=0.0)
    token_ids = torch.randint(20, (1, 17))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        logits = model(token_ids[:, :-1])
        loss = functional.cross_entropy(logits[0], token_ids[0, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.05


def test_gradients_reach_every_weight(model, token_ids):
    model(token_ids).logsumexp(-1).sum().backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad.abs().max() == 0]
    assert idle == []


def test_a_longer_text_than_the_context_is_refused_by_both_numbers(model):
    with pytest.raises(ShapeError, match=r"at most 64 positions \(context_length=64\), but got 65 positions"):
        model(torch.zeros(1, 65, dtype=torch.long))


def test_a_head_width_that_does_not_divide_is_refused_by_both_numbers():
    with pytest.raises(ConfigError, match="d_model=64 and d_head=24"):
        CharGPT(65, d_head=24)


def test_a_text_alone_gives_what_it_gives_in_a_batch(model, token_ids):
    torch.testing.assert_close(model(token_ids)[0], model(token_ids[:1])[0], atol=1e-5, rtol=1e-5)


def test_a_block_adds_to_its_input_and_leaves_it_as_it_was(with_random_weights):
    block = with_random_weights(Block(12, 4)).eval()
    x = torch.randn(2, 10, 12)
    before = x.clone()
    after_attention = x + block.attention(block.attention_norm(x))
    expected = after_attention + block.feed_forward(block.feed_forward_norm(after_attention))
    assert torch.equal(block(x), expected)
    assert torch.equal(x, before)


def test_the_feed_forward_part_is_four_times_as_wide_and_treats_positions_alone(with_random_weights):
    part = with_random_weights(FeedForward(12)).eval()
    x = torch.randn(2, 10, 12)
    assert part.up.out_features == 48
    torch.testing.assert_close(part(x)[:, 3], part(x[:, 3]))
