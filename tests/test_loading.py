import json
import pickle
import shutil
import subprocess
import sys

import pytest
import torch

import pellucid
from pellucid import presets
from pellucid.checkpoint import RunFolder
from pellucid.errors import ConfigError, GenerationError, ModelFileError, TokenizerError
from pellucid.loading import Loaded, load
from pellucid.nn import TransformerLM
from pellucid.text import character_tokenizer, train_byte_pairs
from tests.convert.written_gguf import write_llama
from tests.saved_run import save_run

TEXT = "to be, or not to be: that is the question.\n"


def make_run(path, text=TEXT, **sizes):
    tokenizer = character_tokenizer([text])
    return save_run(path, tokenizer, {"seed": 1, "tokenizer": {"fingerprint": tokenizer.fingerprint}}, **sizes)


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path / "run")
    return tmp_path / "run"


def test_a_run_folder_gives_the_model_its_tokenizer_and_the_facts(tmp_path):
    model = make_run(tmp_path / "run")
    loaded = pellucid.load(tmp_path / "run")
    token_ids = torch.tensor([loaded.tokenizer.encode("to be").tolist()])
    assert torch.equal(loaded.model(token_ids), model(token_ids))
    assert loaded.facts["seed"] == 1
    assert not loaded.model.training


def test_it_writes(run):
    loaded = load(str(run))
    text = loaded.generate("to be", max_tokens=10, seed=1)
    assert text == loaded.generate("to be", max_tokens=10, seed=1)
    assert text == "".join(loaded.stream("to be", max_tokens=10, seed=1))
    made = loaded.complete(["to be", "or"], max_tokens=10, seed=1)
    assert made[0].text == text
    assert len(made) == 2
    assert isinstance(loaded.generate(), str)


def test_a_setting_out_of_range_is_refused(run):
    with pytest.raises(GenerationError, match="top_k"):
        load(run).generate("to", top_k=0)


def test_a_folder_without_run_json_but_with_the_model_will_do(run):
    (run / "run.json").unlink()
    loaded = load(run)
    assert loaded.facts == {}
    assert loaded.generate("to", max_tokens=3) is not None


def test_a_run_tells_its_chat_template_and_its_ends(run):
    assert load(run).chat_template is None
    (run / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(facts | {"end_ids": [2, 1_000_000, -1, "3", True]}))
    loaded = load(run)
    assert (loaded.chat_template, loaded.end_ids, loaded.source) == ("{{ messages }}", {2}, run)


def test_a_gguf_file_tells_its_chat_template(tmp_path):
    path = write_llama(tmp_path / "chat.gguf", entries={"tokenizer.chat_template": "{{ messages }}"})
    loaded = load(path)
    assert (loaded.chat_template, loaded.source) == ("{{ messages }}", path)
    assert load(write_llama(tmp_path / "base.gguf")).chat_template is None


def test_the_lazy_name_is_the_function_even_after_its_file_was_imported():
    code = """
import sys, pellucid
assert "torch" not in sys.modules
assert callable(pellucid.load)
import pellucid.loading
assert pellucid.load is pellucid.loading.load
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_name_is_still_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        pellucid.lod  # noqa: B018


def test_a_tokenizer_of_another_size_is_refused_by_both_sizes(run, tmp_path):
    character_tokenizer(["abc"]).save(run / "tokenizer.json")
    size = load_size(run)
    with pytest.raises(TokenizerError, match=rf"with {size} ids, but got one with 4 ids"):
        load(run)


def load_size(run):
    return json.loads((run / "config.json").read_text())["model"]["vocab_size"]


def test_a_tokenizer_of_the_same_size_but_another_run_is_refused(run):
    other = character_tokenizer([TEXT.upper().replace(" ", "_")[: len(TEXT)]])
    assert other.vocab_size == load_size(run)
    other.save(run / "tokenizer.json")
    with pytest.raises(TokenizerError, match="another of the same size"):
        load(run)


def test_unused_ids_need_no_tokens(tmp_path):
    tokenizer = character_tokenizer([TEXT])
    config = presets.default(
        vocab_size=tokenizer.vocab_size + 7, num_unused_ids=7, d_model=32, num_heads=4, num_layers=1, context_length=16
    )
    folder = RunFolder.create(tmp_path / "padded", {})
    tokenizer.save(folder.tokenizer_path)
    folder.save_model(TransformerLM(config).state_dict(), config)
    made = load(folder.path).complete(["to"], max_tokens=200, temperature=50.0, seed=0)[0]
    assert max(made.token_ids) < tokenizer.vocab_size


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("nothing", lambda path: None, "where there is nothing"),
        ("a.gguf", lambda path: None, "where there is nothing"),
        ("folder.gguf", lambda path: path.mkdir(), "without run.json or config.json"),
        ("empty", lambda path: path.mkdir(), "without run.json or config.json"),
        ("book.txt", lambda path: path.touch(), "a file"),
    ],
)
def test_what_cannot_be_opened_is_told_with_what_can(tmp_path, name, make, words):
    make(tmp_path / name)
    with pytest.raises(ModelFileError, match=f"{words}.*`pellucid train` wrote"):
        load(tmp_path / name)


def test_a_gguf_file_is_a_model_with_its_tokenizer(tmp_path):
    loaded = load(write_llama(tmp_path / "model.GGUF"))
    assert loaded.generate("ab", max_tokens=5, temperature=0)
    assert not loaded.model.training
    (tmp_path / "b.gguf").touch()
    with pytest.raises(ModelFileError, match="empty"):
        load(tmp_path / "b.gguf")


def test_a_run_in_a_folder_that_is_called_gguf_is_a_run(tmp_path):
    make_run(tmp_path / "my.gguf")
    assert load(tmp_path / "my.gguf").generate("to", max_tokens=3) is not None


def test_a_run_that_has_not_saved_a_model_says_so(tmp_path):
    RunFolder.create(tmp_path / "run", {})
    with pytest.raises(ModelFileError, match="not saved one yet"):
        load(tmp_path / "run")


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json"])
def test_a_missing_file_is_named(run, name):
    (run / name).unlink()
    with pytest.raises((ModelFileError, TokenizerError), match=name.replace(".", r"\.")):
        load(run)


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "run.json"])
def test_no_file_of_the_folder_can_run_code(run, tmp_path, name):
    (run / name).write_bytes(pickle.dumps(Bomb(str(tmp_path / "marker"))))
    with pytest.raises(ValueError, match="Expected"):
        load(run)
    assert not (tmp_path / "marker").exists()


def test_a_run_may_move(run, tmp_path):
    before = load(run).generate("to", max_tokens=10, seed=2)
    shutil.move(run, tmp_path / "größe und mehr")
    assert load(tmp_path / "größe und mehr").generate("to", max_tokens=10, seed=2) == before


def test_the_text_it_was_trained_on_may_change(tmp_path):
    (tmp_path / "book.txt").write_text(TEXT)
    make_run(tmp_path / "run", TEXT)
    (tmp_path / "book.txt").write_text("another book with other letters")
    assert load(tmp_path / "run").generate("to be", max_tokens=5, seed=0) is not None


@pytest.mark.parametrize(
    ("text", "prompt", "names"),
    [
        ("علی کتاب خواند", "علي", ("U+064A", "ARABIC LETTER FARSI YEH")),
        ("caf\u00e9 au lait", "cafe\u0301", ("U+0301", "LATIN SMALL LETTER E WITH ACUTE")),
        ("cafe\u0301 au lait", "caf\u00e9", ("U+00E9", "COMBINING ACUTE ACCENT")),
    ],
)
def test_of_an_unknown_letter_in_a_prompt_the_texts_own_look_alike_is_named(tmp_path, text, prompt, names):
    make_run(tmp_path / "run", text)
    for write in (load(tmp_path / "run").generate, lambda prompt: list(load(tmp_path / "run").stream(prompt))):
        with pytest.raises(TokenizerError) as caught:
            write(prompt)
        assert all(name in str(caught.value) for name in names)


def test_an_unknown_letter_without_a_look_alike_is_named_alone(run):
    with pytest.raises(TokenizerError, match=r"unknown 'Z' .*leave them out"):
        load(run).generate("toZ")


def test_what_a_model_of_bytes_writes_is_text_unless_raw(tmp_path):
    tokenizer = train_byte_pairs(["a"], 257)
    torch.manual_seed(0)
    shape = {"d_model": 32, "num_heads": 4, "num_layers": 1, "context_length": 16}
    loaded = Loaded(TransformerLM(presets.default(vocab_size=257, **shape)).eval(), tokenizer)
    settings = {"max_tokens": 50, "temperature": 2.0, "seed": 1}
    assert "\ufffd" not in loaded.generate("中", **settings)
    assert "\ufffd" in loaded.generate("中", **settings, raw=True)


def test_letters_that_the_text_has_otherwise_are_told_whatever_the_tokens(tmp_path):
    text = "یک کتاب و یک روز دیگر، یک کتاب دیگر.\n" * 20
    model = make_run(tmp_path / "run")
    facts = {"data": {"alphabet": "".join(sorted(set(text)))}}
    loaded = Loaded(model, train_byte_pairs([text], 300), facts)
    (sentence,) = loaded.told("يک روز")
    assert "ي" in sentence
    assert "ی" in sentence
    assert loaded.told("یک روز") == ()
    assert Loaded(model, train_byte_pairs([text], 300)).told("يک روز") == ()


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda loaded: loaded.generate("to", max_token=5), "got max_token: perhaps you meant max_tokens"),
        (lambda loaded: loaded.generate("to", num_samples=3), "got num_samples=3: ask complete"),
        (lambda loaded: load(""), "Expected the path of a model folder, but got ''"),
    ],
)
def test_what_python_asks_wrongly_is_refused_in_a_sentence(run, ask, sentence):
    with pytest.raises((GenerationError, ModelFileError), match=sentence):
        ask(load(run))


def test_prompts_that_are_no_text_are_refused_where_nobody_checks_types(run):
    """In tests the annotations are checked first; here they are not."""
    code = f"import pellucid; m = pellucid.load({str(run)!r}); m.generate(5)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.stderr.splitlines()[-1].endswith(
        "Expected prompts that are text or ids, but got one of type int: give a str or a list of whole numbers each."
    )


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_a_model_is_held_in_the_precision_that_is_asked_for(run, precision):
    loaded = pellucid.load(run, precision=precision)
    kinds = {one.dtype for one in [*loaded.model.parameters(), *loaded.model.buffers()]}
    assert getattr(torch, precision) in kinds
    assert len(loaded.generate("to ", max_tokens=5, temperature=0)) > 0


def test_a_precision_there_is_not_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(ConfigError, match="int8"):
        pellucid.load(tmp_path / "nothing", precision="float8")
