import pickle

import pytest
import torch
from torch import nn

from pellucid.checkpoint import load_weights, plain_names, read_tensors, write_tensors
from pellucid.errors import ModelFileError
from pellucid.model_config import ModelConfig
from pellucid.nn import TransformerLM


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def tiny(**choices):
    return TransformerLM(ModelConfig(vocab_size=11, d_model=8, num_heads=2, num_layers=1, **choices))


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.uint8, torch.bool]
)
def test_every_number_type_comes_back_bit_for_bit(tmp_path, dtype):
    tensors = {
        "a": (torch.randn(3, 5) * 9).to(dtype),
        "scalar": torch.tensor(7).to(dtype),
        "none": torch.empty(0, 3).to(dtype),
    }
    write_tensors(tmp_path / "t.safetensors", tensors)
    back = read_tensors(tmp_path / "t.safetensors")
    assert back.keys() == tensors.keys()
    for name in tensors:
        assert back[name].dtype == dtype
        assert torch.equal(back[name], tensors[name])


def test_views_are_written_without_the_memory_around_them(tmp_path):
    whole = torch.randn(1000, 1000)
    write_tensors(tmp_path / "t.safetensors", {"row": whole[3], "column": whole[:, 3], "again": whole[3]})
    assert (tmp_path / "t.safetensors").stat().st_size < 20_000
    assert torch.equal(read_tensors(tmp_path / "t.safetensors")["column"], whole[:, 3])


def test_equal_tensors_give_equal_bytes_whatever_their_order(tmp_path):
    a, b = torch.randn(3), torch.randn(4)
    write_tensors(tmp_path / "1", {"a": a, "b": b})
    write_tensors(tmp_path / "2", {"b": b, "a": a})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_the_file_may_be_read_by_whoever_may_read_other_files(tmp_path):
    (tmp_path / "other").touch()
    write_tensors(tmp_path / "t.safetensors", {"a": torch.randn(3)})
    assert (tmp_path / "t.safetensors").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_pickle_is_refused_and_never_run(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps(Bomb(str(tmp_path / "marker"))))
    with pytest.raises(ModelFileError, match="whole safetensors file"):
        read_tensors(path)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("length", [0, 4, 100, -1])
def test_a_file_cut_short_is_refused(tmp_path, length):
    path = tmp_path / "t.safetensors"
    write_tensors(path, {"a": torch.randn(50)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ModelFileError, match="whole safetensors file"):
        read_tensors(path)


@pytest.mark.parametrize("wrap", ["_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module."])
def test_wrappers_leave_no_trace_in_names(wrap):
    names = list(tiny().state_dict())
    assert list(plain_names({wrap + name: torch.zeros(1) for name in names})) == names
    inner = {name.replace("blocks.0.", f"blocks.0.{wrap}"): torch.zeros(1) for name in names}
    assert list(plain_names(inner)) == names


def test_a_compiled_models_weights_load_into_a_plain_one_and_back():
    plain, other = tiny(), tiny()
    compiled = torch.compile(other)
    load_weights(compiled, plain.state_dict())
    assert torch.equal(other.lm_head.weight, plain.lm_head.weight)
    load_weights(plain, compiled.state_dict())


@pytest.mark.parametrize(
    "stored", [["token_embedding.weight"], ["lm_head.weight"], ["token_embedding.weight", "lm_head.weight"]]
)
def test_either_name_of_a_tied_pair_will_do(stored):
    model = tiny(tie_embeddings=True)
    weight = torch.randn(11, 8)
    rest = {name: value for name, value in model.state_dict().items() if value.shape != weight.shape}
    load_weights(model, {**rest, **dict.fromkeys(stored, weight)})
    assert torch.equal(model.lm_head.weight, weight)
    assert model.lm_head.weight is model.token_embedding.weight


def test_a_tied_pair_that_differs_in_the_file_is_refused():
    model = tiny(tie_embeddings=True)
    with pytest.raises(ModelFileError, match="tied in the model and differ in the file"):
        load_weights(model, {**model.state_dict(), "lm_head.weight": torch.randn(11, 8)})


def test_missing_unknown_and_misshapen_weights_are_named_and_nothing_is_loaded():
    model = tiny()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    tensors = {name: torch.randn_like(value) for name, value in before.items()}
    del tensors["final_norm.weight"]
    tensors["extra"] = torch.zeros(1)
    tensors["lm_head.weight"] = torch.zeros(12, 8)
    with pytest.raises(ModelFileError) as caught:
        load_weights(model, tensors, "'here'")
    for words in ("final_norm.weight is missing", "extra is unknown", "has shape (12, 8), not (11, 8)", "'here'"):
        assert words in str(caught.value)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_parameters_keep_their_identity_so_that_an_optimizer_still_holds_them():
    model = tiny()
    parameters = list(model.parameters())
    load_weights(model, tiny().state_dict())
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))


def test_any_module_can_be_loaded():
    one, two = nn.Linear(3, 2), nn.Linear(3, 2)
    load_weights(two, one.state_dict())
    assert torch.equal(one.weight, two.weight)


def test_equal_tensors_and_facts_are_equal_bytes_whatever_the_library_does_with_their_order(tmp_path):
    facts = {name: name for name in "zyxwvutsr"}
    for number in range(4):
        write_tensors(tmp_path / f"{number}.safetensors", {"b": torch.ones(3), "a": torch.zeros(2)}, facts)
    assert len({(tmp_path / f"{number}.safetensors").read_bytes() for number in range(4)}) == 1
    assert list(read_tensors(tmp_path / "0.safetensors")) == ["a", "b"]
