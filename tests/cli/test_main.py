import os
import signal
import subprocess
import sys

import pytest

from pellucid.cli import main
from pellucid.errors import RunFolderError, TrainingStopped

PELLUCID = [sys.executable, "-m", "pellucid"]
QUICK = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def a_verb(monkeypatch):
    """Let `pellucid tokens` do something else."""

    def install(function):
        module = type(sys)("pellucid.cli.tokens")
        module.main = function
        monkeypatch.setitem(sys.modules, "pellucid.cli.tokens", module)
        monkeypatch.setattr(main, "existing_verbs", lambda: ["generate", "tokens"])

    return install


def raising(error):
    def verb(_):
        raise error

    return verb


def test_help_lists_the_verbs_that_exist_one_line_each(capsys):
    assert main.run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == main.existing_verbs()
    assert max(map(len, lines)) <= 80  # a terminal's width


def test_a_verb_is_listed_as_soon_as_its_file_exists(monkeypatch, tmp_path, capsys):
    (tmp_path / "import_model.py").touch()
    (tmp_path / "chat.py").touch()
    monkeypatch.setattr(main, "__file__", str(tmp_path / "main.py"))
    assert main.existing_verbs() == ["chat", "import"]
    main.run([])
    assert "  chat " in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["-h"], ["--help"], ["help"]])
def test_asked_for_nothing_it_helps(words, capsys):
    assert main.run(words) == 0
    assert capsys.readouterr().out.startswith("pellucid:")


def test_the_version_is_told(capsys):
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("pellucid 0.")


HELP = """
import sys
from pellucid.cli.main import run
run(["--help"])
print(sys.modules.keys() & {"torch", "tyro", "rich", "numpy", "msgspec"})
"""


def test_help_needs_neither_torch_nor_tyro_nor_rich():
    said = subprocess.run([sys.executable, "-c", HELP], capture_output=True, encoding="utf-8", check=True).stdout
    assert said.endswith("set()\n")


def test_an_unknown_verb_gets_the_nearest_one(capsys, a_verb):
    a_verb(lambda _: None)
    assert main.run(["tokns"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "Expected a verb that pellucid knows, but got 'tokns': perhaps you meant pellucid tokens.\n"


def test_a_verb_like_no_other_gets_the_way_to_the_help(capsys):
    assert main.run(["\x1b[31mxyz"]) == 2
    assert capsys.readouterr().err == "Expected a verb that pellucid knows, but got '␛[31mxyz': see pellucid --help.\n"


def test_a_verb_gets_the_words_after_it(a_verb):
    got = []
    a_verb(lambda words: got.append(words))
    assert main.run(["tokens", "a.txt", "--json", "--debug"]) == 0
    assert got == [["a.txt", "--json"]]


def test_what_follows_two_dashes_is_the_verbs(a_verb):
    got = []
    a_verb(lambda words: got.append(words))
    main.run(["tokens", "--", "--debug"])
    assert got == [["--", "--debug"]]


def test_a_verb_chooses_its_exit_code(a_verb):
    a_verb(lambda _: 7)
    assert main.run(["tokens"]) == 7


def test_a_users_mistake_is_one_sentence_and_2(a_verb, capsys):
    a_verb(raising(RunFolderError("a run", came="a \x1b[31mfile", remedy="choose another")))
    assert main.run(["tokens"]) == 2
    assert capsys.readouterr().err == "Expected a run, but got a ␛[31mfile: choose another.\n"


def test_a_stop_on_purpose_is_one_sentence_and_1(a_verb, capsys):
    a_verb(raising(TrainingStopped("a finite loss", came="nan", remedy="lower the rate")))
    assert main.run(["tokens"]) == 1
    assert capsys.readouterr().err == "Expected a finite loss, but got nan: lower the rate.\n"


def test_a_mistake_of_ours_is_one_sentence_and_1(a_verb, capsys):
    a_verb(raising(ZeroDivisionError("division\nby zero")))
    assert main.run(["tokens"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "ZeroDivisionError: division by zero. Run the same command with --debug" in said


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), RunFolderError("a", came="b", remedy="c")])
def test_debug_shows_where_it_came_from(a_verb, capsys, error):
    a_verb(raising(error))
    main.run(["tokens", "--debug"])
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "with --debug" not in said


def test_ctrl_c_is_130(a_verb, capsys):
    a_verb(raising(KeyboardInterrupt()))
    assert main.run(["tokens"]) == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (None, 0), (2, 2), ("text", 1)])
def test_a_parser_that_has_spoken_keeps_its_code(a_verb, code, expected):
    a_verb(raising(SystemExit(code)))
    assert main.run(["tokens"]) == expected


def test_the_handler_of_sigterm_is_put_back(a_verb):
    before = signal.getsignal(signal.SIGTERM)
    a_verb(lambda _: None)
    main.run(["tokens"])
    assert signal.getsignal(signal.SIGTERM) is before


VERB = """
import sys, time
from pellucid.cli import main
def verb(_):
    try:
        {body}
    finally:
        print("cleared away", file=sys.stderr, flush=True)
module = type(sys)("pellucid.cli.tokens")
module.main = verb
sys.modules["pellucid.cli.tokens"] = module
main.existing_verbs = lambda: ["tokens"]
sys.exit(main.run(["tokens"]))
"""


def process(body, **options):
    code = VERB.format(body=body)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_unwinds_and_gives_its_code(number, code):
    running = process("print('ready', flush=True); time.sleep(30)")
    assert running.stdout.readline() == b"ready\n"
    running.send_signal(number)
    _, said = running.communicate(timeout=60)
    assert running.returncode == code
    assert b"cleared away" in said
    assert b"Traceback" not in said


def test_a_reader_that_has_gone_is_no_error():
    running = process("[print('x' * 1000) for _ in range(10_000)]")
    running.stdout.readline()
    running.stdout.close()
    assert running.wait(timeout=60) == 141
    assert running.stderr.read() == b"cleared away\n"


def test_a_reader_that_has_gone_before_the_last_line_is_no_error():
    running = process("print('ready', flush=True); sys.stdin.readline(); print('x')", stdin=subprocess.PIPE)
    running.stdout.readline()
    running.stdout.close()
    running.stdin.write(b"\n")
    running.stdin.close()
    assert running.wait(timeout=60) == 141
    assert running.stderr.read() == b"cleared away\n"


def test_output_is_utf8_whatever_the_locale():
    text = "größe 🙂 \u200b 中"
    env = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    out, _ = process(f"print({text!a})", env=env).communicate(timeout=60)
    assert out.decode("utf-8") == f"{text}\n"


def test_python_m_pellucid_is_the_same():
    said = subprocess.run([*PELLUCID, "nonsense"], capture_output=True, encoding="utf-8", check=False, env=QUICK)
    assert said.returncode == 2
    assert said.stderr.startswith("Expected a verb")


def test_a_broken_file_of_a_verb_is_ours(monkeypatch, capsys):
    monkeypatch.setattr(main, "existing_verbs", lambda: ["chat"])
    monkeypatch.setitem(sys.modules, "pellucid.cli.chat", None)  # importing it fails
    assert main.run(["chat"]) == 1
    assert "--debug" in capsys.readouterr().err
