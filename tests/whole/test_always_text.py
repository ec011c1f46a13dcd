"""Any text, of any script, through tokens and a model to the screen: no exception, nothing lost, nothing that acts."""

import contextlib
import io
import json
import re
import unicodedata

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pellucid import presets
from pellucid.cli import train_screen
from pellucid.cli.main import run as pellucid
from pellucid.cli.quoting import LEFT_TO_RIGHT, POP, RIGHT_TO_LEFT, cells
from pellucid.cli.train_screen import TrainScreen
from pellucid.data import open_sources
from pellucid.generate import complete
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import character_tokenizer, train_byte_pairs
from pellucid.train import Sampled, StepDone, TextRead, VariantTried, train
from pellucid.train.sample import Sampler
from tests.cli.finished_run import finished
from tests.train.small_run import cut_short, small_request

CHINESE = "牀前明月光,疑是地上霜。舉頭望明月,低頭思故鄉。白日依山盡,黃河入海流。欲窮千里目,更上一層樓。"
PERSIAN = "بنی‌آدم اعضای یک پیکرند، که در آفرینش ز یک گوهرند. چو عضوی به‌درد آورد روزگار، دگر عضوها را نماند قرار."
EMOJI = "👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 👍🏽 🇮🇷🇨🇳 ❤\ufe0f\u200d🔥 #\ufe0f\u20e3 🙂 🐻\u200d❄\ufe0f 🎉"

ODD = "\x00\x07\x1b\x7f\x85\x9b\u200c\u200d\u200e\u2028\u202e\u2066\u2069\ufe0f\ufeff\ufdd0\uffff\U000e0041\U0010ffff"
WHOLE = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(ODD + "aسक्é中👩\n[/b]"), max_size=40)
WITH_HALVES = st.text(st.characters(exclude_categories=[]) | st.sampled_from(ODD + "\ud800[bold]\\"), max_size=40)
ISOLATES = {LEFT_TO_RIGHT, RIGHT_TO_LEFT, POP}


def model_for(tokenizer, std=0.3, **sizes):
    torch.manual_seed(1)
    shape = {"d_model": 32, "num_heads": 4, "num_layers": 1, "context_length": 32, **sizes}
    model = TransformerLM(presets.default(vocab_size=tokenizer.vocab_size, **shape)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, std)
    return model


@pytest.fixture(scope="module")
def by_bytes():
    tokenizer = train_byte_pairs([CHINESE * 3, PERSIAN * 3, EMOJI * 3], 400)
    return tokenizer, model_for(tokenizer)


def acts(text, *, ours=""):
    """What in some output would act on a terminal, besides line ends, tabs and what is ours."""
    text = re.sub(ours, "", text) if ours else text
    return {c for c in text if (unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t") or c in "\u202e\u200e"}


class NarrowTerminal(io.StringIO):
    """The least able terminal there is: it draws every code point by itself, and breaks lines where they are full."""

    width = 40

    def isatty(self):
        return True

    def screen(self):
        """The rows that are not empty, and the row that the cursor is in."""
        rows, row, column = {}, 0, 0
        for escape, move, character in re.findall(r"\x1b\[([0-9;?]*)([A-Za-z])|([^\x1b])", self.getvalue()):
            if move == "A":
                row -= int(escape)
            elif move == "K":
                rows[row] = ""
            elif character == "\r":
                column = 0
            elif character == "\n":
                row, column = row + 1, 0
            elif character:
                wide = cells(character)
                if column + wide > self.width:
                    row, column = row + 1, 0
                rows[row] = rows.get(row, "") + character
                column += wide
        return {number: text for number, text in rows.items() if text.strip()}, row


@pytest.fixture
def narrow(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(NarrowTerminal.width))
    monkeypatch.setattr(train_screen, "ALIVE_SECONDS", 0.0)
    return NarrowTerminal


def step_done(step):
    return StepDone(
        step=step, steps=9, bits_per_character=3.5, train=3.2, gradient_norm=0.5, learning_rates={}, epoch=0.1,
        tokens_per_second=11_000.0, seconds_left=150.0,
    )  # fmt: skip


def events(text, name):
    yield TextRead(name=name, documents=2, characters=9, distinct_characters=9, fingerprint="f", notes=(text,))
    yield VariantTried(variant="v", admitted=False, reason=text)
    yield step_done(1)
    yield Sampled(step=1, prompt=name, text=text)
    yield step_done(2)
    yield Sampled(step=2, prompt="", text=text[::-1])
    yield step_done(3)


def show(shown, out):
    with contextlib.redirect_stdout(out), TrainScreen() as screen:
        for event in shown:
            screen.show(event)
    return out


# --- tokens, a model, what it writes


@given(WHOLE)
@settings(max_examples=40)
@pytest.mark.usefixtures("no_shape_checks")
def test_any_text_comes_back_from_its_tokens_and_a_model_goes_on_from_it_with_text(by_bytes, text):
    tokenizer, model = by_bytes
    assert tokenizer.decode(tokenizer.encode(text)) == text
    config = GenerationConfig(max_tokens=12, seed=1, temperature=1.5, truncate_prompt=True)
    made = complete(model, tokenizer, [text, ""], config)
    for completion in made:
        assert completion.text.encode("utf-8").decode("utf-8") == completion.text
        bytes_written = b"".join(map(tokenizer.token_bytes, completion.token_ids))
        assert completion.text == bytes_written.decode("utf-8", "ignore")
        assert bytes_written.startswith(completion.text.encode())


@given(WHOLE.filter(bool))
@settings(max_examples=20)
@pytest.mark.usefixtures("no_shape_checks")
def test_it_does_so_when_its_tokens_are_the_characters_of_the_text(text):
    tokenizer = character_tokenizer([text])
    assert tokenizer.decode(tokenizer.encode(text)) == text
    config = GenerationConfig(max_tokens=12, seed=1, temperature=1.5, truncate_prompt=True)
    (made,) = complete(model_for(tokenizer), tokenizer, [text], config)
    assert set(made.text) <= set(text)


@pytest.mark.parametrize("language", [CHINESE, PERSIAN, EMOJI], ids=["chinese", "persian", "emoji"])
@pytest.mark.usefixtures("no_shape_checks")
def test_no_sample_of_an_untrained_model_of_bytes_holds_a_broken_character(language):
    tokenizer = train_byte_pairs([language * 3], 300)
    model = model_for(tokenizer, std=0.02, context_length=64)
    config = {"max_tokens": 60, "seed": 0, "temperature": 1.0, "num_samples": 16}
    made = complete(model, tokenizer, [language[:5]], GenerationConfig(**config))
    assert [completion.text.count("\ufffd") for completion in made] == [0] * 16
    assert max(len(completion.token_ids) for completion in made) == 60
    raw = complete(model, tokenizer, [language[:5]], GenerationConfig(**config, raw=True))
    assert sum("\ufffd" in completion.text for completion in raw) > 8


@pytest.mark.slow
@pytest.mark.parametrize("language", [CHINESE, PERSIAN, EMOJI], ids=["chinese", "persian", "emoji"])
@pytest.mark.usefixtures("no_shape_checks")
def test_nor_does_one_of_a_hundred_of_500_tokens(language):
    tokenizer = train_byte_pairs([language * 3], 300)
    model = model_for(tokenizer, std=0.02, context_length=64)
    config = {"max_tokens": 500, "seed": 0, "temperature": 1.0, "num_samples": 100}
    made = complete(model, tokenizer, [language[:5]], GenerationConfig(**config))
    assert sum("\ufffd" in completion.text for completion in made) == 0
    raw = complete(model, tokenizer, [language[:5]], GenerationConfig(**config, raw=True))
    assert sum("\ufffd" in completion.text for completion in raw) > 50


@pytest.mark.usefixtures("no_shape_checks")
def test_samples_while_training_are_text_too(by_bytes):
    tokenizer, model = by_bytes
    for seed in range(4):
        assert "\ufffd" not in Sampler(tokenizer, CHINESE[:5], seed)(model, 100)


# --- the screen


@given(WITH_HALVES, WITH_HALVES)
@settings(max_examples=40)
def test_whatever_is_read_and_written_prints_as_text_without_a_terminal(text, name):
    said = show([*events(text, name), finished(sample=text, copied=name, out=name)], io.StringIO()).getvalue()
    assert not acts(said)
    assert not set(said) & ISOLATES
    assert said.encode("utf-8")


@given(WITH_HALVES, WITH_HALVES)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_on_the_least_able_terminal_the_live_block_goes_without_a_trace(narrow, text, name):
    lasting = list(events(text, name))[:2]
    there = show(lasting, narrow()).screen()
    live = show(events(text, name), narrow())
    assert live.screen() == there
    assert not acts(live.getvalue(), ours=r"\x1b\[\??[0-9;]*[A-Za-z]|\r")


@pytest.mark.parametrize("language", [CHINESE, EMOJI, PERSIAN, "कि क्षि ষ্ট ไทย " * 9], ids=["zh", "emoji", "fa", "hi"])
def test_the_live_block_counts_the_rows_of_every_script(narrow, language):
    assert show(list(events(language, language))[2:], narrow()).screen() == ({}, 0)


def test_markup_in_a_book_is_text(narrow):
    said = show(events("[/b] [bold]x[/bold] [link=file:///]y[/link]", "[/]"), narrow()).getvalue()
    assert "[/b] [bold]x[/bold]" in said
    assert "\x1b]8" not in said


# --- all of it


def test_a_text_of_all_planes_in_a_file_of_any_name_is_read_learned_from_and_written(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "\u202ebook [b]\x1b[2J\udc80.txt"
    text = f"{CHINESE}\n{PERSIAN} {EMOJI}\n{ODD}\U0001d573 [/b]\n" * 25
    try:
        path.write_text(text, encoding="utf-8")
    except (OSError, UnicodeError):
        pytest.skip("this file system has no such names")
    cut_short(monkeypatch)
    with TrainScreen() as screen:
        request = small_request(
            tmp_path / "run", sources=open_sources([path]), tokenizer="bpe", vocab_size=400, steps=1
        )
        train(request, screen.show)
    assert pellucid(["generate", "run", PERSIAN[:9], "--max-tokens", "30", "--json"]) == 0
    assert pellucid(["generate", "run", "\x1b[31m中\u202e", "--max-tokens", "30"]) == 0
    out, err = capfd.readouterr()
    assert not acts(out + err)
    assert "\ufffd" not in json.loads(next(line for line in out.splitlines() if line.startswith("{")))["text"]
