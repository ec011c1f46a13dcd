from pellucid.cli import evaluate_progress
from pellucid.cli.evaluate_progress import ReadingProgress


def test_without_a_terminal_there_is_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(evaluate_progress, "PLAIN_SECONDS", 0.0)
    with ReadingProgress(2000, "characters") as progress:
        progress(500)
    assert capsys.readouterr().err.startswith("25% of 2,000 characters, ")


def test_a_short_reading_says_nothing(capsys):
    with ReadingProgress(2000, "characters") as progress:
        progress(500)
        progress(2000)
    assert capsys.readouterr() == ("", "")


def test_quiet_is_quiet(capsys, monkeypatch):
    monkeypatch.setattr(evaluate_progress, "PLAIN_SECONDS", 0.0)
    with ReadingProgress(0, "tokens", quiet=True) as progress:
        progress(1)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_a_line_moves(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with ReadingProgress(2000, "characters") as progress:
        assert progress.is_alive
        progress(1000)
        progress.live.refresh()
    assert "characters/s" in capsys.readouterr().err
