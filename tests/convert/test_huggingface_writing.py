import json

import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file

from pellucid.convert import read_hugging_face, read_hugging_face_config
from pellucid.convert.huggingface_writing import write_hugging_face
from pellucid.convert.meaning import differences
from pellucid.errors import ModelFileError
from pellucid.text import load_tokenizer
from tests.convert.outgoing_models import SHAPES, byte_pairs, letters, made, outgoing
from tests.convert.random_models import FAMILIES, make_gpt2, make_model, saved

IDS = torch.randint(97, (2, 601), generator=torch.Generator().manual_seed(2))


def written(folder, model, number_type="float32", **more):
    folder.mkdir()
    write_hugging_face(folder, model, number_type, **more)
    return folder


def by_transformers(folder, **more):
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager", **more
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), report
    return model.eval()


@torch.no_grad()
@pytest.mark.parametrize("shape", SHAPES)
def test_transformers_has_the_logits_we_have(shape, tmp_path):
    model = made(SHAPES[shape])
    folder = written(tmp_path / "hf", outgoing(model))
    theirs, ours = by_transformers(folder)(IDS).logits, model(IDS)
    assert (theirs - ours).abs().max() < 1e-4 * max(
        1, ours.std() / 3
    )  # std 0.1 through Gemma's scales makes large ones
    assert not differences(read_hugging_face_config(folder), SHAPES[shape])


@pytest.mark.parametrize("number_type", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", [*FAMILIES, "gpt2"])
def test_a_folder_of_transformers_comes_out_as_it_came_in(name, tied, number_type, tmp_path):
    theirs = make_gpt2(tie_word_embeddings=tied) if name == "gpt2" else make_model(name, tie_word_embeddings=tied)
    source = saved(theirs.to(getattr(torch, number_type)), tmp_path / "source")
    model = read_hugging_face(source)
    letters_of_97 = letters_tokenizer()
    folder = written(tmp_path / "out", outgoing(model, letters_of_97), number_type)
    before, after = (load_file(path / "model.safetensors") for path in (source, folder))
    assert before.keys() == after.keys()
    assert all(before[key].dtype == after[key].dtype and torch.equal(before[key], after[key]) for key in before)
    assert not differences(read_hugging_face_config(folder), model.config)


def letters_tokenizer():
    from pellucid.text import character_tokenizer

    return character_tokenizer(["".join(map(chr, range(33, 129)))])


def test_shards_have_an_index_and_are_read_by_both(tmp_path):
    model = made(SHAPES["qwen3"])
    folder = written(tmp_path / "hf", outgoing(model), shard_bytes=200_000)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    shards = sorted(path.name for path in folder.glob("*.safetensors"))
    assert shards == sorted(set(index["weight_map"].values()))
    assert len(shards) > 2
    assert all((folder / shard).stat().st_size < 210_000 for shard in shards)
    assert index["metadata"]["total_size"] == sum(4 * one.numel() for one in outgoing(model).tensors.values())
    ours = read_hugging_face(folder).state_dict()
    assert all(torch.equal(ours[name], tensor) for name, tensor in model.state_dict().items())
    by_transformers(folder)


def test_a_file_is_marked_as_transformers_wants_it(tmp_path):
    folder = written(tmp_path / "hf", outgoing(made(SHAPES["qwen3 tied"])))
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "pt"}
        assert "lm_head.weight" not in file.keys()  # noqa: SIM118 - the file is no dictionary


@pytest.mark.parametrize("tokenizer", [byte_pairs(), letters()], ids=["byte pairs", "characters"])
def test_auto_tokenizer_gives_our_ids_and_our_text(tokenizer, tmp_path):
    config = SHAPES["qwen3"]
    model = made(type(config)(**{**vars(config), "vocab_size": tokenizer.vocab_size}))
    theirs = transformers.AutoTokenizer.from_pretrained(written(tmp_path / "hf", outgoing(model, tokenizer)))
    text = "a time upon a time, and once more, naïve café.\n\n  twice "
    ids = (
        tokenizer.encode(text).tolist()
        if tokenizer.kind == "bpe"
        else tokenizer.encode(text.replace("\n", "")).tolist()
    )
    text = tokenizer.decode(ids)
    assert theirs.encode(text) == ids
    assert theirs.decode(ids) == text
    assert theirs.eos_token_id == theirs.bos_token_id == theirs.pad_token_id == tokenizer.end_of_text_id
    assert theirs.model_max_length == 640
    assert load_tokenizer(tmp_path / "hf").fingerprint == tokenizer.fingerprint


def test_all_ends_and_the_chat_template_are_where_others_look(tmp_path):
    template = "{% for m in messages %}<|endoftext|>{{ m['content'] }}{% endfor %}"
    model = outgoing(made(SHAPES["qwen3"]), end_ids=frozenset({7}), chat_template=template)
    folder = written(tmp_path / "hf", model)
    assert transformers.GenerationConfig.from_pretrained(folder).eos_token_id == [0, 7]
    assert by_transformers(folder).generation_config.eos_token_id == [0, 7]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    said = tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False)
    assert said == "<|endoftext|>hi"


def test_rows_that_are_no_token_are_never_written_by_transformers(tmp_path):
    config = SHAPES["qwen3"]
    model = made(type(config)(**{**vars(config), "vocab_size": 290, "num_unused_ids": 10}))
    with torch.no_grad():
        model.lm_head.weight[285] = 30 * model.lm_head.weight[0]  # it would win
    theirs = by_transformers(written(tmp_path / "hf", outgoing(model)))
    wrote = theirs.generate(IDS[:, :5], max_new_tokens=20, do_sample=False)
    assert wrote.max() < 280


def test_a_model_of_no_family_is_refused_before_anything_is_written(tmp_path):
    from pellucid import presets

    model = made(presets.default(vocab_size=280, d_model=32, num_layers=1, num_heads=2, feed_forward="relu2"))
    with pytest.raises(ModelFileError, match="relu2"):
        written(tmp_path / "hf", outgoing(model))
    assert not list((tmp_path / "hf").iterdir())
