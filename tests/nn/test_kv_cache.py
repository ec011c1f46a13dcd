import pytest
import torch

from pellucid.errors import ShapeError
from pellucid.model_config import ModelConfig
from pellucid.nn import KVCache
from pellucid.nn.kv_cache import next_places

CONFIG = ModelConfig(vocab_size=11, d_model=16, num_heads=4, num_kv_heads=2, d_head=6, num_layers=3)


def _keys_and_values(batch_size: int, num_new: int):
    return torch.randn(2, batch_size, 2, num_new, 6)


def test_it_has_room_for_every_layer_head_and_position():
    cache = KVCache(CONFIG, batch_size=5, capacity=8, dtype=torch.bfloat16)
    assert len(cache.layers) == 3
    assert all(x.shape == (5, 2, 8, 6) for layer in cache.layers for x in (layer.keys, layer.values))
    assert cache.layers[0].keys.dtype == torch.bfloat16


def test_what_was_written_is_read_back_in_order():
    cache, written = KVCache(CONFIG, 2, 8), []
    for num_new in (3, 1, 4):
        key, value = _keys_and_values(2, num_new)
        written.append((key, value))
        keys, values = cache.layers[0].write(key, value)
        cache.advance(num_new)
    assert torch.equal(keys, torch.cat([key for key, _ in written], dim=2))
    assert torch.equal(values, torch.cat([value for _, value in written], dim=2))


def test_rows_of_their_own_length_are_written_behind_their_own_end():
    cache = KVCache(CONFIG, 2, 8)
    first_key, first_value = _keys_and_values(2, 4)
    cache.layers[0].write(first_key, first_value)
    cache.advance([4, 1])  # three of the second row's were padding
    key, value = _keys_and_values(2, 2)
    keys, values = cache.layers[0].write(key, value)
    assert keys.shape[2] == 6
    assert torch.equal(keys[0], torch.cat([first_key[0], key[0]], dim=1))
    assert torch.equal(keys[1, :, :3], torch.cat([first_key[1, :, :1], key[1]], dim=1))
    assert torch.equal(values[1, :, :3], torch.cat([first_value[1, :, :1], value[1]], dim=1))


def test_a_layer_does_not_move_the_end():
    cache = KVCache(CONFIG, 2, 8)
    for layer in cache.layers:
        layer.write(*_keys_and_values(2, 3))
    assert cache.lengths == [0, 0]
    cache.advance(3)
    assert cache.lengths == cache.layers[2].lengths == [3, 3]


def test_layers_do_not_share_memory():
    cache = KVCache(CONFIG, 1, 4)
    cache.layers[0].write(*_keys_and_values(1, 4))
    assert cache.layers[1].keys.eq(0).all()


def test_reset_forgets_the_lengths():
    cache = KVCache(CONFIG, 2, 8)
    cache.advance([4, 1])
    cache.reset()
    assert cache.lengths == cache.layers[0].lengths == [0, 0]


@pytest.mark.parametrize("lengths", [[0, 0], [0, 3]])
def test_it_takes_another_type_and_gives_it_back(lengths):
    cache = KVCache(CONFIG, 2, 8, dtype=torch.float32)
    cache.advance(lengths)
    key, value = _keys_and_values(2, 1).bfloat16()
    keys, values = cache.layers[0].write(key, value)
    assert keys.dtype == values.dtype == torch.bfloat16
    assert torch.equal(keys[0, :, lengths[0]], key[0, :, 0])


def test_another_batch_size_is_refused_by_both_numbers():
    with pytest.raises(ShapeError, match="2 rows, as the cache has, but got 3"):
        KVCache(CONFIG, 2, 8).check_room(3, 1)


def test_a_full_cache_is_refused_by_all_its_numbers():
    cache = KVCache(CONFIG, 2, 8)
    cache.advance([7, 2])
    cache.check_room(2, 1)
    with pytest.raises(ShapeError, match=r"capacity 8\), but got 2 more positions after 7"):
        cache.check_room(2, 2)


def test_next_places_lie_behind_each_rows_end():
    assert next_places([0, 7], 2, torch.device("cpu")).tolist() == [[0, 1], [7, 8]]
