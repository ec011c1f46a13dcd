import os
import signal
import warnings
from pathlib import Path

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.cli import main, train_run
from pellucid.cli.train_flags import parse_flags
from pellucid.cli.train_run import exit_code, free_folder, stop_signals
from pellucid.cli.train_screen import TrainScreen
from pellucid.errors import UserError
from pellucid.train import Planned, StepDone, TextTokenized
from tests.cli.test_train_closing import finished
from tests.train.small_run import cut_short, small_text

FLAGS = """--tokenizer char --precision float32 --compile off --steps 6 --batch-size 4 --evaluations 2
    --model.d-model 32 --model.num-heads 2 --model.num-layers 1 --model.context-length 16"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cut_short(monkeypatch)


@pytest.fixture
def words():
    Path("words.txt").write_text(small_text(), encoding="utf-8")
    return "words.txt"


def pellucid_train(*words, flags=FLAGS):
    return main.run(["train", *flags.split(), *words])


@pytest.fixture
def signalled(monkeypatch):
    """Let signals come while an event is shown."""

    def come(*numbers, at):
        coming, show = list(numbers), TrainScreen.show

        def shown(self, event):
            show(self, event)
            while coming and at(event):
                signal.raise_signal(coming.pop(0))

        monkeypatch.setattr(TrainScreen, "show", shown)

    return come


def at_step(number):
    return lambda event: isinstance(event, StepDone) and event.step == number


# --- from words to a run


def test_a_text_becomes_a_run_in_the_next_free_folder(words, capsys):
    assert pellucid_train(words) == pellucid_train(words) == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == ["words-01", "words-02"]
    said = capsys.readouterr()
    assert said.err == ""
    assert "Next:  pellucid generate runs/words-02" in said.out
    assert RunFolder.open("runs/words-01").facts["data"]["name"] == "words.txt"


def test_without_a_text_it_is_pythons_documentation_and_says_so(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(train_run, "train", lambda request, *_, **__: asked.append(request) or finished())
    assert pellucid_train() == 0
    (request,) = asked
    assert request.name == "Python's documentation"
    assert request.out == Path("runs/python-docs-01")
    assert "No file given" in request.text_read().notes[0]


@pytest.mark.parametrize("name", ["größe und maß.txt", "with space.txt", "-dash.txt", "🙂.txt"])
def test_names_of_any_letters_work(name, capsys):
    Path(name).write_text(small_text(), encoding="utf-8")
    assert pellucid_train(f"./{name}", "--out", f"runs/{name} run") == 0
    said = capsys.readouterr().out
    assert f"Text: ./{name}, 3,000 characters" in said
    facts = RunFolder.open(f"runs/{name} run").facts
    assert facts["data"]["name"] == f"./{name}"


@pytest.mark.parametrize(
    ("source", "folder"),
    [
        ("book.txt", "book"),
        ("a/größe maß!.txt", "größe-maß"),
        ("...", "text"),
        ("/", "text"),
        ("my.long.name.md", "my.long.name"),
    ],
)
def test_a_run_is_named_after_its_first_source(source, folder):
    assert train_run._name((source,)) == folder


def test_of_many_sources_a_few_are_named(capsys):
    names = [f"{number}.txt" for number in range(6)]
    for number, name in enumerate(names):
        Path(name).write_text(small_text(500, seed=number), encoding="utf-8")
    assert pellucid_train(*names) == 0
    assert "Text: 0.txt, 1.txt, 2.txt, 3.txt and 2 more, 6 documents, 3,000 characters" in capsys.readouterr().out


def test_the_folder_one_stands_in_may_become_the_run_or_stays_as_it_was(words, capsys, monkeypatch):
    Path("here").mkdir()
    monkeypatch.chdir("here")
    assert pellucid_train(f"../{words}", "--out", ".", "--prompt", "Ω") == 2
    assert list(Path().iterdir()) == []
    assert pellucid_train(f"../{words}", "--out", ".") == 0
    assert RunFolder.open(".").facts["plan"]["steps"] == 6


def test_a_name_that_is_no_text_is_written_out(capsys):
    name = os.fsdecode(b"caf\xe9.txt")
    Path(name).write_text(small_text(), encoding="utf-8")
    assert pellucid_train(name, "--out", "run") == 0
    assert RunFolder.open("run").facts["data"]["name"] == r"caf\xe9.txt"


def test_a_folder_is_free_if_nothing_bears_its_name():
    Path("runs").mkdir()
    Path("runs/a-01").mkdir()
    Path("runs/a-02").symlink_to("nowhere")
    assert free_folder(Path("runs"), "a") == Path("runs/a-03")


# --- mistakes


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nowhere.txt"], "nowhere.txt, which does not exist"),
        (["empty.txt"], "nothing in empty.txt"),
        (["latin1.txt"], "UTF-8 text in latin1.txt, but got the byte 0xE9"),
        (["words.txt", "--encoding", "klingon"], "klingon"),
        (["words.txt", "--tokenizer", "chars"], "char, bpe, or the path of a tokenizer.json, but got 'chars'"),
        (["words.txt", "--tokenizer", "words.txt"], "tokenizer"),
        (["words.txt", "--vocab-size", "300"], "vocab_size"),
        (["words.txt", "--minutes", "3"], "minutes or steps, but got minutes=3.0 and steps=6: leave out one of them"),
        (["words.txt", "--minuts", "3"], "perhaps you meant --minutes"),
        (["words.txt", "--model.context-length", "9000"], "9,001 tokens in the training split"),
        (["words.txt", "--model.num-heads", "3"], "num_heads"),
        (["words.txt", "--seed", "-1"], "a seed from 0"),
        (["words.txt", "--prompt", "Ω"], "Ω"),
        (["words.txt", "--out", "words.txt"], "a new or empty folder"),
        (["words.txt", "--out", "words.txt/run"], "a file is in the way"),
        (["words.txt", "--out", "full"], "a folder with other files"),
        (["--resume", "nowhere"], "nothing there"),
        (["--resume", "full"], "a folder without run.json"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_sentence_and_2_and_leaves_nothing_behind(words, capsys, given, said):
    Path("empty.txt").touch()
    Path("latin1.txt").write_bytes(b"caf\xe9 " * 1000)
    Path("full").mkdir()
    Path("full/thesis.txt").touch()
    before = sorted(Path().rglob("*"))
    code = pellucid_train(*given, flags="" if "--resume" in given else FLAGS)
    out, err = capsys.readouterr()
    assert code == 2
    assert said in err
    assert err.count("\n") == 1
    assert len(out.splitlines()) <= 4  # what had been found out by then
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("characters", "said"),
    [
        (0, "some text, but got nothing"),
        (1, "257 tokens in the training split, but got a text of 1 bytes"),
        (199, "257 tokens in the training split, but got a text of 199 bytes"),
        (250, "257 tokens in the training split (the context of 256 and the one that follows), but got 251"),
        (255, "257 tokens in the training split (the context of 256 and the one that follows), but got 256"),
        (256, None),
        (2580, None),
    ],
)
def test_a_text_shorter_than_the_context_is_refused_with_both_numbers(capsys, characters, said):
    """Of 256 characters the training split keeps 246, with an end for each tenth and one for all: 257 tokens."""
    Path("words.txt").write_text(small_text(characters), encoding="utf-8")
    code = pellucid_train("words.txt", "--model.context-length", "256", "--steps", "1", "--evaluations", "1")
    err = capsys.readouterr().err
    if said is None:
        assert (code, err) == (0, "")
    else:
        assert code == 2
        assert said in err
        assert not Path("runs").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_a_sentence(words, capsys, tmp_path):
    tmp_path.chmod(0o500)
    try:
        assert pellucid_train(words) == 2
    finally:
        tmp_path.chmod(0o700)
    assert "choose a folder that you may write to" in capsys.readouterr().err


@pytest.mark.parametrize(
    "beside",
    [
        ["words.txt"],
        ["--out", "b"],
        ["--steps", "3", "--minutes", "1"],
        ["--model.d-model", "64"],
        ["--preset", "gpt2"],
    ],
)
def test_a_run_goes_on_with_its_own_settings_alone(capsys, beside):
    assert pellucid_train("--resume", "run", *beside, flags="") == 2
    assert "Expected --resume RUN alone" in capsys.readouterr().err


# --- signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_step_saves_and_says_how_to_go_on(words, capsys, signalled, number, code):
    signalled(number, at=at_step(2))
    assert pellucid_train(words, "--out", "run") == code
    said = capsys.readouterr()
    assert said.err == ""
    begins = "Saved at step 2. Cooling down for" if number == signal.SIGINT else "Stopping: saving"
    stopped = {
        signal.SIGINT: "Stopped after step 3 of 6, cooled down from step 2 on",
        signal.SIGTERM: "after step 2 of 6",
    }
    for line in (begins, stopped[number], "Go on: pellucid train --resume run"):
        assert line in said.out
    assert RunFolder.open("run").latest_checkpoint().name == "step-000002"
    assert pellucid_train("--resume", "run", flags="") == 0
    assert "Going on with run after step 2 of 6" in capsys.readouterr().out


def test_a_resumed_run_stops_as_gently(words, signalled):
    signalled(signal.SIGINT, at=at_step(2))
    assert pellucid_train(words, "--out", "run") == 130
    signalled(signal.SIGINT, at=at_step(4))
    assert pellucid_train("--resume", "run", flags="") == 130
    assert RunFolder.open("run").latest_checkpoint().name == "step-000004"


def test_a_second_ctrl_c_ends_the_cooling_down(words, capsys, signalled):
    signalled(signal.SIGINT, signal.SIGINT, at=at_step(5))
    assert pellucid_train(words, "--out", "run") == 130
    said = capsys.readouterr().out
    assert "Stopped after step 5 of 6" in said
    assert "Cooling down" not in said
    assert RunFolder.open("run").latest_checkpoint().name == "step-000005"


def test_a_third_ctrl_c_ends_at_once_and_harms_nothing(words, capsys, signalled):
    signalled(*[signal.SIGINT] * 3, at=at_step(5))
    assert pellucid_train(words, "--out", "run") == 130
    assert capsys.readouterr().err == "\nInterrupted.\n"
    assert RunFolder.open("run").latest_checkpoint().name == "step-000003"
    assert pellucid_train("--resume", "run", flags="") == 0


@pytest.mark.parametrize("kind", [TextTokenized, Planned])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_before_the_plan_a_signal_ends_at_once_and_leaves_nothing(words, signalled, monkeypatch, kind, number, code):
    if kind is Planned:  # the last moment at which nothing is to be saved
        monkeypatch.setattr(train_run, "Planned", type(None))
    signalled(number, at=lambda event: isinstance(event, kind))
    assert pellucid_train(words) == code
    assert [path.name for path in Path().iterdir()] == ["words.txt"]


def test_a_signal_at_the_very_end_changes_nothing(words, signalled):
    signalled(signal.SIGTERM, at=at_step(6))
    assert pellucid_train(words) == 0
    assert exit_code(finished(), signal.SIGTERM) == 0
    assert exit_code(finished(completed=False), signal.SIGTERM) == 143
    assert exit_code(finished(completed=False), None) == 0


def test_afterwards_signals_mean_what_they_meant():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyError), stop_signals():
        raise KeyError
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_where_torch_was_interrupted_is_not_told(words, monkeypatch):
    """It warns while it traces a step that Ctrl-C ends, in thirty lines."""

    def interrupted(*_, **__):
        warnings.warn("Error detected in MulBackward0. Traceback of forward call that caused the error", stacklevel=1)
        raise KeyboardInterrupt

    monkeypatch.setattr(train_run, "train", interrupted)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert pellucid_train(words) == 130
    assert told == []


def test_numbers_gone_bad_are_one_sentence_and_1(words, capsys, monkeypatch):
    show = TrainScreen.show

    def go_bad(self, event):
        show(self, event)
        if isinstance(event, Planned):
            monkeypatch.setattr("pellucid.train.step._is_finite", lambda number: False)

    monkeypatch.setattr(TrainScreen, "show", go_bad)
    assert pellucid_train(words, "--out", "run", "--steps", "20", "--evaluations", "1") == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "10 steps in a row, up to step 10" in err
    assert not Path("run").exists()  # nothing had been saved


def test_the_same_command_goes_on_and_another_is_refused(words, capsys, signalled):
    signalled(signal.SIGINT, at=at_step(2))
    assert pellucid_train(words, "--out", "run") == 130
    assert pellucid_train(words, "--out", "run", "--seed", "1") == 2
    assert "seed is 1, and was 0" in capsys.readouterr().err
    assert pellucid_train(words, "--out", "run") == 0
    assert "Going on with run after step 2 of 6" in capsys.readouterr().out


def test_a_prompt_of_other_bytes_is_refused(words):
    flags = parse_flags([words, "--prompt", os.fsdecode(b"caf\xe9")])
    with pytest.raises(UserError, match="UTF-8"):
        train_run.request_of(flags)
