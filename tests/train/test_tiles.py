"""Attention in tiles is attention."""

import pytest
import torch

from pellucid.nn import causal_mask, scaled_dot_product_attention
from pellucid.train import tiles
from pellucid.train.tiles import tiled_attention
from pellucid.train.variant import Variant, loss_function
from tests.train.small_run import small_model


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "TILE", 4)


def _draw(length, queries=None):
    torch.manual_seed(0)
    shapes = ((2, 3, queries or length, 8), (2, 3, length, 8), (2, 3, length, 5))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("window", [None, 1, 3, 6])
def test_tiles_give_what_the_whole_gives_and_its_gradients(length, window):
    mask = causal_mask(torch.arange(length), length, window)
    found, expected = [], []
    for attend, kept in ((tiled_attention, found), (scaled_dot_product_attention, expected)):
        inputs = _draw(length)
        y = attend(*inputs, mask, scale=0.7)
        y.square().sum().backward()
        kept += [y, *(x.grad for x in inputs)]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_a_mask_for_each_row_is_cut_with_its_row():
    documents = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 2, 2], [0, 1, 1, 1, 1, 1, 2, 2, 2]])
    mask = causal_mask(torch.arange(9), 9) & (documents[:, :, None] == documents[:, None, :])
    inputs = _draw(9)
    torch.testing.assert_close(
        tiled_attention(*inputs, mask[:, None]), scaled_dot_product_attention(*inputs, mask[:, None])
    )


def test_no_score_behind_a_tile_is_computed(monkeypatch):
    seen = []

    def count(query, key, *rest, **how):
        seen.append((query.shape[-2], key.shape[-2]))
        return scaled_dot_product_attention(query, key, *rest, **how)

    monkeypatch.setattr(tiles, "scaled_dot_product_attention", count)
    tiled_attention(*_draw(10), causal_mask(torch.arange(10), 10))
    assert seen == [(4, 4), (4, 8), (2, 10)]


def test_beside_a_cache_every_key_is_seen():
    inputs, mask = _draw(9, queries=3), causal_mask(torch.tensor([6, 7, 8]), 9)
    torch.testing.assert_close(tiled_attention(*inputs, mask), scaled_dot_product_attention(*inputs, mask))


def test_a_models_loss_is_the_same_in_tiles():
    model, ids = small_model(), torch.randint(24, (3, 13), generator=torch.Generator().manual_seed(0))
    whole, tiled = (
        loss_function(model, Variant(attention=attention))(ids[:, :-1], ids[:, 1:])[0]
        for attention in ("written-out", "tiled")
    )
    torch.testing.assert_close(tiled, whole)
    assert model.blocks[0].attention.written_out is tiled_attention


def test_the_plain_way_takes_tiles_away_again():
    model = small_model()
    loss_function(model, Variant(attention="tiled"))
    loss_function(model, Variant())
    assert model.blocks[0].attention.written_out is scaled_dot_product_attention
