"""A Hugging Face folder is a model path: it writes and is scored as transformers does it (M4, C3, D9, D20, G10)."""

import json
import math

import pytest
import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

import pellucid
from pellucid.cli.main import run
from pellucid.errors import ModelFileError, TokenizerError
from pellucid.generate import GenerationConfig, TextStream
from pellucid.text import TextTokenizer, train_byte_pairs
from tests.convert.random_models import randomised

TEXT = "once upon a time there was a model that wrote: a time upon a time, and once more.\n"
GREEDY = {"temperature": 0.0, "max_tokens": 40, "raw": True}


def byte_level():
    return tokenizers.Tokenizer.from_str(train_byte_pairs([TEXT], 280).definition)


def pieces():
    """A tokenizer of SentencePiece's kind: spaces are ▁, one is put before a text, and <s> before that."""
    made = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    made.train_from_iterator([TEXT] * 3, trainer)
    described = json.loads(made.to_str())
    vocabulary, first = described["model"]["vocab"], len(described["model"]["vocab"])
    vocabulary |= {f"<0x{byte:02X}>": first + byte for byte in range(256)}
    made = tokenizers.Tokenizer.from_str(json.dumps(described))
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair=None, special_tokens=[("<s>", 1)])
    return made


def make_folder(path, tokenizer, num_unused_ids=0, end="<|endoftext|>"):
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=tokenizer.get_vocab_size() + num_unused_ids,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=64,
        max_position_embeddings=256,
        eos_token_id=tokenizer.token_to_id(end),
        pad_token_id=tokenizer.token_to_id(end),
        bos_token_id=None,
    )
    theirs = randomised(transformers.Qwen3ForCausalLM(config))
    theirs.save_pretrained(path)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=end).save_pretrained(path)
    return theirs


@pytest.fixture(params=["byte level", "pieces"])
def kind(request):
    return {"byte level": (byte_level(), "<|endoftext|>"), "pieces": (pieces(), "</s>")}[request.param]


@pytest.mark.parametrize("prompt", ["once upon", "once upon a time, ", "a", "übe"])
def test_it_writes_what_transformers_writes(tmp_path, kind, prompt):
    tokenizer, end = kind
    theirs = make_folder(tmp_path, tokenizer, end=end)
    their_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ids = their_tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
    written = theirs.generate(**ids, max_new_tokens=40, do_sample=False)[0].tolist()
    loaded = pellucid.load(tmp_path)
    (completion,) = loaded.complete([prompt], **GREEDY)
    assert completion.prompt_ids == ids["input_ids"][0].tolist()
    assert completion.token_ids == [
        one for one in written[len(completion.prompt_ids) :] if one != theirs.config.eos_token_id
    ]
    expected = their_tokenizer.decode(written, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert prompt + completion.text == expected
    assert "".join(loaded.stream(prompt, **GREEDY)) == completion.text


def test_a_text_begins_with_bos_once_even_when_its_beginning_is_dropped(tmp_path):
    make_folder(tmp_path, pieces(), end="</s>")
    loaded = pellucid.load(tmp_path)
    long = "once upon a time " * 300
    for prompt in ("", "once", "<s>once", long):
        (completion,) = loaded.complete([prompt], max_tokens=0, truncate_prompt=True)
        assert completion.prompt_ids[0] == 1
        assert completion.prompt_ids.count(1) == 1
    assert len(completion.prompt_ids) == 256


def test_its_perplexity_is_that_of_transformers(tmp_path, kind, capsys):
    tokenizer, end = kind
    theirs = make_folder(tmp_path / "model", tokenizer, end=end)
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    assert run(["evaluate", str(tmp_path / "model"), str(tmp_path / "a.txt"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    first = [] if tokenizer.encode("a").ids[0] == 1 else [tokenizer.token_to_id(end)]
    ids = torch.tensor([[*first, *tokenizer.encode(TEXT).ids]])
    with torch.no_grad():
        nats = float(theirs(ids, labels=ids).loss) * (ids.shape[1] - 1)
    assert found["together"]["bits_per_character"] == pytest.approx(nats / math.log(2) / len(TEXT), rel=1e-4)


def test_the_command_writes(tmp_path, capsys):
    make_folder(tmp_path, byte_level(), num_unused_ids=23)
    assert run(["generate", str(tmp_path), "once", "--max-tokens", "5", "--seed", "1"]) == 0
    assert capsys.readouterr().out.startswith("once")


def test_padding_rows_are_never_written(tmp_path):
    make_folder(tmp_path, byte_level(), num_unused_ids=23)
    loaded = pellucid.load(tmp_path)
    assert loaded.model.config.num_unused_ids == 23
    config = GenerationConfig(temperature=2.0, max_tokens=300, seed=1, raw=True)
    (completion,) = loaded.complete(["once"], config=config)
    assert max(completion.token_ids) < loaded.tokenizer.vocab_size


def test_a_special_token_that_the_model_lacks_is_left_out(tmp_path):
    tokenizer = byte_level()
    make_folder(tmp_path, tokenizer)
    tokenizer.add_special_tokens(["<image>"])  # as Gemma 3's text models have it
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    loaded = pellucid.load(tmp_path)
    assert loaded.tokenizer.vocab_size == loaded.model.config.vocab_size
    assert "<image>" not in loaded.tokenizer.special_tokens
    tokenizer.add_tokens(["word"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(TokenizerError, match="as many as the model has"):
        pellucid.load(tmp_path)


def test_a_missing_tokenizer_and_a_foreign_family_are_told(tmp_path):
    make_folder(tmp_path, byte_level())
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(TokenizerError, match=r"tokenizer\.json"):
        pellucid.load(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}', encoding="utf-8")
    with pytest.raises(ModelFileError, match="mamba"):
        pellucid.load(tmp_path)


def test_it_ends_at_every_token_that_any_file_calls_an_end(tmp_path):
    make_folder(tmp_path, byte_level())
    loaded = pellucid.load(tmp_path)
    (completion,) = loaded.complete(["once"], **GREEDY)
    later = completion.token_ids
    first, second = list(dict.fromkeys(later))[1:3]  # two ids that it writes, neither of them first
    end = loaded.tokenizer.end_of_text_id
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [second, end]}), encoding="utf-8")
    loaded = pellucid.load(tmp_path)
    (completion,) = loaded.complete(["once"], **GREEDY)
    assert (completion.token_ids, completion.finish_reason) == (later[: later.index(second)], "stop")
    described = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(described | {"eos_token_id": first}), encoding="utf-8")
    loaded = pellucid.load(tmp_path)
    (completion,) = loaded.complete(["once"], **GREEDY)
    assert (completion.token_ids, completion.finish_reason) == (later[: later.index(first)], "stop")
    assert loaded.end_ids == {first, second, end}


def test_the_first_space_of_what_goes_on_is_kept_and_that_of_a_beginning_is_not():
    tokenizer = TextTokenizer(pieces().to_str())
    first, second = tokenizer.encode("once upon").tolist()
    beginning, going_on = TextStream(tokenizer), TextStream(tokenizer, goes_on=True)
    assert beginning.push(first) + beginning.push(second) == "once upon"
    assert going_on.push(second) + going_on.push(first) == " upon once"
