from pellucid.cli.arguments import parse
from pellucid.cli.evaluate_flags import EvaluateFlags


def flags(*words):
    return parse(EvaluateFlags, words, "evaluate")


def test_a_run_alone_is_enough():
    said = flags("runs/book")
    assert (said.run, said.files, said.stride, said.tokens, said.json) == ("runs/book", (), None, None, False)


def test_files_stand_before_and_after_flags():
    said = flags("runs/book", "a.txt", "b.txt", "--stride", "64", "--tokens", "page.html", "--json")
    assert said.files == ("a.txt", "b.txt")
    assert (said.stride, said.tokens, said.json) == (64, "page.html", True)
    assert flags("--stride", "64", "runs/book", "-").files == ("-",)
