import io
import json
import subprocess
import sys

import pytest

from pellucid.cli.main import run
from tests.train.small_run import cut_short, small_text, train_small


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run, and what it said at its end."""
    with pytest.MonkeyPatch.context() as patch:
        cut_short(patch)
        path = tmp_path_factory.mktemp("runs") / "words"
        return str(path), train_small(path)[0]


@pytest.fixture(scope="module")
def trained(finished):
    return finished[0]


@pytest.fixture
def evaluate(capsys):
    def call(*words):
        code = run(["evaluate", *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def other(tmp_path):
    path = tmp_path / "other.txt"
    path.write_text(small_text(2000, seed=5), encoding="utf-8")
    return path


def test_without_a_file_it_is_the_figure_of_training_beside_the_same_yardsticks(finished, evaluate):
    trained, event = finished
    code, out, _ = evaluate(trained, "--json")
    said = json.loads(out)
    assert code == 0
    assert said["text"] == "held out"
    assert said["stride"] == said["context_length"] == 16
    assert said["together"]["bits_per_character"] == pytest.approx(event.held_out, rel=1e-6)
    assert said["together"]["standard_error"] == pytest.approx(event.standard_error, rel=1e-4)
    assert said["lead"]["bits_per_character"] == pytest.approx(event.ngram_lead, abs=1e-6)
    measured = {one["name"]: one["bits_per_character"] for one in said["yardsticks"]}
    assert measured["chance"] == pytest.approx(event.yardsticks["chance"])
    assert measured["xz after"] == pytest.approx(event.yardsticks["xz"])
    assert f"{event.held_out:.3f} ± {event.standard_error:.3f}" in evaluate(trained)[1]


def test_a_file_is_scored_and_everything_is_said(trained, other, evaluate):
    code, out, err = evaluate(trained, other)
    assert code == 0
    assert "2,000 characters, 2,000 tokens" in out
    assert "In bits per character: " in out
    assert "over 10 passages" in out
    for name in ("chance", "letter counts", "-gram", "xz", "xz, after it"):
        assert name in out
    assert "8 apart" in out
    assert err.startswith("pellucid evaluate: reading")


def test_json_is_one_object_and_nothing_else(trained, other, evaluate):
    code, out, err = evaluate(trained, other, "--json", "--stride", 16)
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    said = json.loads(out)
    assert said["stride"] == 16
    assert said["documents"][0]["name"].endswith("other.txt")
    assert said["page"] is None


def test_a_shorter_stride_gives_every_token_more_to_go_by(trained, other, evaluate):
    one, two = (json.loads(evaluate(trained, other, "--json", "--stride", stride)[1]) for stride in (16, 1))
    assert one["together"]["tokens"] == two["together"]["tokens"] == 2000
    assert one["together"]["loss"] != two["together"]["loss"]


def test_standard_input_folders_and_columns_are_read(trained, tmp_path, evaluate, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the cat sat\n")))
    assert json.loads(evaluate(trained, "-", "--json")[1])["documents"][0]["characters"] == 11
    table = tmp_path / "rows.jsonl"
    table.write_text('{"body": "the cat sat", "id": 1}\n{"body": "the dog ran", "id": 2}\n', encoding="utf-8")
    said = json.loads(evaluate(trained, table, "--text-column", "body", "--json")[1])
    assert [one["name"].partition("rows")[2] for one in said["documents"]] == [".jsonl (text 1)", ".jsonl (text 2)"]
    (tmp_path / "more").mkdir()
    for name in "ab":
        (tmp_path / "more" / f"{name}.txt").write_text(f"the cat sat on {name}", encoding="utf-8")
    assert len(json.loads(evaluate(trained, tmp_path / "more", "--json")[1])["documents"]) == 2


def test_the_text_it_learned_from_is_told_as_that(trained, tmp_path, evaluate):
    path = tmp_path / "same.txt"
    path.write_text(small_text(), encoding="utf-8")
    assert "stands word for word in the text it learned from" in evaluate(trained, path)[1]


def test_characters_it_cannot_write_cost_their_price(trained, tmp_path, evaluate):
    path = tmp_path / "new.txt"
    path.write_text("the cat saΩ on Ω mat", encoding="utf-8")
    assert "2 characters that its tokenizer cannot write cost" in evaluate(trained, path)[1]
    assert json.loads(evaluate(trained, path, "--json")[1])["together"]["escaped_characters"] == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.txt"], "nothing.txt"),
        (["--stride", "0", "other.txt"], "a stride from 1 to 16, the model's context, but got 0"),
        (["--stride", "17"], "a stride from 1 to 16, the model's context, but got 17"),
        (["--stride", "half", "other.txt"], "a whole number"),
        (["empty.txt"], "some text, but got nothing in empty.txt"),
        (["picture.png"], "picture.png"),
        (["-", "other.txt"], "- alone, or files"),
        (["--tokens", "page.txt", "other.txt"], "ends in .html"),
        (["--tokens", "no/page.html", "other.txt"], "a folder that is not there"),
        (["--device", "tpu", "other.txt"], "tpu"),
        (["--strid", "4"], "perhaps you meant --stride"),
    ],
)
def test_a_mistake_is_one_sentence_and_2(trained, other, evaluate, words, sentence, monkeypatch):
    monkeypatch.chdir(other.parent)
    (other.parent / "empty.txt").write_text("", encoding="utf-8")
    (other.parent / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    code, out, err = evaluate(trained, *words)
    assert (code, out) == (2, "")
    err = err.removeprefix("pellucid evaluate: reading the text and starting torch, a few seconds.\n")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_folder_that_is_no_run_is_one_sentence(tmp_path, evaluate):
    code, out, err = evaluate(tmp_path, "--json")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


HELP = """
import sys
from pellucid.cli.main import run
run(["evaluate", "--help"])
print(sys.modules.keys() & {"torch", "numpy", "rich", "tokenizers", "matplotlib"})
"""


def test_help_needs_no_torch():
    said = subprocess.run([sys.executable, "-c", HELP], capture_output=True, encoding="utf-8", check=True).stdout
    assert said.endswith("set()\n")
    for flag in ("stride", "tokens", "encoding", "text-column", "device", "json"):
        assert f"--{flag}" in said
