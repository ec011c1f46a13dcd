"""The page as a whole: complete in itself, whatever a run has left."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from pellucid.checkpoint import RunFolder
from pellucid.data import Split, split_of
from pellucid.data.card import TextCard
from pellucid.data.prepared_folder import FolderCard
from pellucid.errors import RunFolderError
from pellucid.report import report_page, write_report, writing
from tests.report.invented_run import FACTS, evaluated, finished, invented, sampled, step
from tests.train.small_run import small_sources

VOID = {"meta", "img", "br", "path", "rect", "use", "line"}
MOST_BYTES = 3_000_000


class _Nesting(HTMLParser):
    """Whether every element ends where it should."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(page)
        self.wrong += self.open

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"/{tag} at {self.getpos()}")


def _headings(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


def test_a_whole_run_has_every_part_and_no_address(run):
    page = report_page(run)
    assert _headings(page)[:2] == ["It writes", "How it learned"]
    for heading in (
        "Copied?",
        "The text",
        "What its attention reads",
        "Exactly this run",
        "Before you share this page",
    ):
        assert heading in _headings(page)
    assert "could not be made" not in page
    assert not re.search(r"https?://|src=\"(?!data:)|url\((?!#)|@import|<link|<script", page)
    assert _Nesting(page).wrong == []


def test_it_is_written_into_the_folder_or_elsewhere(run, tmp_path):
    assert write_report(run) == run.path / "report.html"
    assert write_report(run, tmp_path / "نص.html").read_text(encoding="utf-8") == run.report_path.read_text("utf-8")


def test_the_same_run_gives_the_same_page(run):
    assert report_page(run) == report_page(run)


FILES = ["model.safetensors", "config.json", "tokenizer.json", "metrics.jsonl", "tokens/train.tokens"]


@pytest.mark.parametrize(
    ("damage", "how"),
    [*((name, how) for name in FILES for how in ("gone", "cut", "noise")), ("tokens", "gone"), ("checkpoints", "gone")],
)
def test_a_damaged_run_has_a_page_without_a_traceback(run, damage, how):
    path = run.path / damage
    if how == "gone":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if how == "cut" else bytes(byte ^ 0x5A for byte in whole))
    page = report_page(RunFolder.open(run.path))
    assert "could not be made" not in page
    assert "Traceback" not in page
    assert "How it learned" in _headings(page)


def test_a_model_that_is_missing_is_a_sentence(run):
    (run.path / "model.safetensors").unlink()
    assert "There is no model to look into." in report_page(run)


def test_a_part_that_fails_leaves_a_sentence_and_the_others_stay(run, monkeypatch):
    def fails(record):
        raise ZeroDivisionError("by <b>")

    monkeypatch.setattr(writing, "samples", fails)
    page = report_page(run)
    assert "This part could not be made (ZeroDivisionError: by &lt;b&gt;)." in page
    assert "Exactly this run" in _headings(page)


@pytest.mark.parametrize("events", [[], [step(1)], [step(1), evaluated(1), sampled(1)], [{"event": "Finished"}]])
@pytest.mark.parametrize("facts", [FACTS, {}, {"plan": [], "data": 3, "config": None, "command": "x", "yardsticks": 1}])
def test_every_beginning_of_a_run_has_a_page(tmp_path, events, facts):
    page = report_page(invented(tmp_path / "run", *events, facts=facts))
    assert "could not be made" not in page
    assert _Nesting(page).wrong == []


def test_every_field_of_every_event_may_be_missing_or_of_another_kind(run):
    lines = [json.loads(line) for line in run.metrics_path.read_text(encoding="utf-8").splitlines()]
    for odd in (None, "text", -1, [], {}, {"a": None}, 1e400):
        with run.metrics_path.open("w", encoding="utf-8") as file:
            for event in lines:
                changed = {name: value if name == "event" else odd for name, value in event.items()}
                file.write(json.dumps(changed) + "\n")
        page = report_page(RunFolder.open(run.path))
        assert re.findall(r"could not be made \([^)]*\)", page) == []


def test_hostile_text_anywhere_stays_text(run, hostile):
    facts = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    facts |= {"name": hostile, "command": ["pellucid", hostile]}
    facts["data"] |= {"name": hostile, "alphabet": hostile}
    run.write_run(facts)
    run.append_metrics({"event": "Noticed", "step": 1, "kind": "module", "sentence": hostile})
    run.append_metrics(sampled(1, hostile, prompt=hostile))
    run.append_metrics(finished(sample=hostile, copied=hostile, usually_shared=hostile))
    page = report_page(RunFolder.open(run.path))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 10
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert _Nesting(page).wrong == []


def test_a_run_of_a_day_has_a_page_that_a_phone_can_hold(tmp_path):
    events = [step(number) for number in range(1, 6_001)]
    events += [event for number in range(1, 1000) for event in (evaluated(number), sampled(number, "word " * 60))]
    modules = {
        f"blocks.{layer}.{name}": {"weight": 1.0, "activation": 2.0} for layer in range(48) for name in "abcdefgh"
    }
    events += [{"event": "ModuleHealth", "step": number, "modules": modules, "seconds": 0} for number in range(20)]
    events += [finished(sample="so " * 5000)]
    assert len(report_page(invented(tmp_path / "run", *events)).encode()) < MOST_BYTES


def test_a_disk_that_refuses_is_a_sentence(run):
    with pytest.raises(RunFolderError, match="nowhere"):
        write_report(run, Path("/nowhere/report.html"))


def test_nothing_half_written_stays_behind(run, monkeypatch):
    before = sorted(run.path.iterdir())
    monkeypatch.setattr(writing, "report_page", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(run)
    assert sorted(run.path.iterdir()) == before


def test_a_run_on_prepared_text_shows_its_card(run, tmp_path):
    text = TextCard(
        characters=9,
        utf8_bytes=9,
        documents=1,
        distinct_characters=5,
        empty_documents=0,
        duplicate_documents=0,
        letters_by_script={"Latin": 3, "Han": 1},
        lines=1,
        told_lines=0,
        repeated_lines=0,
        longest_line=9,
        boilerplate="",
        held_out="Held out: nothing.",
    )
    known = dict.fromkeys(("fingerprint", "alphabet", "tokenizer", "tokenizer_kind", "tokenizer_reason"), "")
    numbers = dict.fromkeys(("vocab_size", "training_tokens", "held_out_tokens"), 1)
    card = FolderCard(
        format="", version=1, sources=(), asked={}, text=text, split=_split(), notes=(), files={},
        characters_per_token=1.0, **known, **numbers,
    )  # fmt: skip
    (tmp_path / "card.json").write_bytes(card.encode())
    (run.tokens_path / "prepared.json").write_text(json.dumps({"prepared": [{"path": str(tmp_path)}]}))
    page = report_page(run)
    assert "Letters: Latin 75.0%, Han 25.0%." in page
    assert "could not be made" not in page


def _split() -> Split:
    return split_of(small_sources(500))


def test_of_a_model_that_was_imported_no_training_is_told(tmp_path):
    folder = RunFolder.create(tmp_path / "run", {"imported": {"kind": "a GGUF file"}})
    with pytest.raises(RunFolderError, match=r"of whose training nothing is known: .* --tokens surprise\.html"):
        write_report(folder)
    assert not folder.report_path.exists()
