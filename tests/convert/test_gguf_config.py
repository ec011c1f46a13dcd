import gguf
import pytest

from pellucid.convert.gguf_config import read_gguf_config
from pellucid.convert.gguf_file import GgufFile
from pellucid.errors import ModelFileError
from tests.convert.written_gguf import head_norms, random_tensors, shapes, sizes, write_gguf, write_llama


def config_of(path):
    return read_gguf_config(GgufFile(path))[0]


def test_sizes_are_read(tmp_path):
    config = config_of(write_llama(tmp_path / "a.gguf", entries={"llama.rope.freq_base": 1e5}))
    assert (config.d_model, config.num_layers, config.num_heads, config.num_kv_heads) == (64, 2, 4, 2)
    assert (config.d_head, config.d_ff, config.context_length, config.vocab_size) == (16, 96, 700, 90)
    assert (config.rope_theta, config.norm_epsilon, config.tie_embeddings) == (1e5, 1e-5, False)


def test_without_a_count_of_key_heads_every_head_has_its_own(tmp_path):
    entries = {"llama.attention.head_count_kv": None}
    assert config_of(write_llama(tmp_path / "a.gguf", entries=entries, kv_heads=4)).num_kv_heads == 4


def test_linear_scaling_and_its_old_spelling_are_read(tmp_path):
    for name, entries in {
        "new": {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0},
        "none": {"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 4.0},
    }.items():
        scaling = config_of(write_llama(tmp_path / f"{name}.gguf", entries=entries)).rope_scaling
        assert (scaling and scaling.factor) == (4.0 if name == "new" else None)


def test_one_number_for_every_layer_is_one_number(tmp_path):
    assert config_of(write_llama(tmp_path / "a.gguf", entries={"llama.feed_forward_length": [96, 96]})).d_ff == 96
    with pytest.raises(ModelFileError, match="feed_forward_length for all layers"):
        config_of(write_llama(tmp_path / "b.gguf", entries={"llama.feed_forward_length": [96, 64]}))


def gemma(path, **more):
    layers = more.get("block_count", 2)
    extra = [*head_norms(16), ("post_attention_norm.weight", (64,)), ("post_ffw_norm.weight", (64,))]
    entries = sizes("gemma3", attention__sliding_window=32, attention__key_length=16, rope__freq_base=1e6, **more)
    return write_gguf(path, "gemma3", entries, random_tensors(shapes(layers=layers, extra=extra)))


def test_gemma_s_own_choices_are_those_of_llama_cpp(tmp_path):
    config = config_of(gemma(tmp_path / "a.gguf"))
    assert config.layer_pattern == ("local",) * 5 + ("global",)
    assert (config.window, config.rope_theta, config.rope_theta_local) == (32, 1e6, 1e4)
    assert (config.embedding_scale, config.attention_scale) == (8.0, None)
    largest = config_of(gemma(tmp_path / "b.gguf", block_count=62, attention__head_count=4))
    assert largest.attention_scale == pytest.approx((64 / 4) ** -0.5)
    told = config_of(gemma(tmp_path / "c.gguf", attention__sliding_window_pattern=[True, False]))
    assert told.layer_pattern == ("local", "global")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"llama.block_count": None}, r"no llama\.block_count"),
        ({"llama.expert_count": 8}, r"llama\.expert_count = 0"),
        ({"llama.attention.causal": False}, r"llama\.attention\.causal"),
        ({"llama.rope.scaling.type": "yarn"}, "'yarn'"),
        ({"llama.something.new": 1.0}, r"llama\.something\.new"),
        ({"llama.rope.dimension_count": 8}, r"rope\.dimension_count = 16"),
        ({"llama.attention.value_length": 8}, r"attention\.value_length = 16"),
        ({"llama.attention.head_count_kv": 3}, "num_kv_heads"),
        ({"llama.embedding_length": "wide"}, "d_model"),
        ({"split.count": 2}, "a part of 2"),
    ],
)
def test_what_changes_the_mathematics_is_refused_by_name(tmp_path, entries, says):
    with pytest.raises(ModelFileError, match=says):
        config_of(write_llama(tmp_path / "a.gguf", entries=entries))


def test_another_architecture_is_refused_by_name(tmp_path):
    path = write_gguf(tmp_path / "a.gguf", "mamba", {}, random_tensors(shapes()))
    with pytest.raises(ModelFileError, match="'mamba'"):
        config_of(path)


def test_a_file_without_an_embedding_or_architecture_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match=r"no token_embd\.weight"):
        config_of(write_llama(tmp_path / "a.gguf", left_out=("token_embd.weight",)))
    writer = gguf.GGUFWriter(tmp_path / "b.gguf", "llama")
    writer.kv_data[0].clear()
    writer.add_uint32("x", 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelFileError, match="None"):
        config_of(tmp_path / "b.gguf")
