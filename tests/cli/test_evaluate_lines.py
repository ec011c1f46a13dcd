import json

import pytest

from pellucid.cli.evaluate_lines import against_the_table, as_json, escapes, how, known, lines, lost
from pellucid.inspection import TextScore
from pellucid.yardsticks import Score
from tests.cli.test_evaluate_findings import findings


def documents(count):
    return tuple(
        TextScore(name=f"{n}.txt", characters=100, utf8_bytes=100, tokens=50, nats=50.0 + n) for n in range(count)
    )


def test_the_first_lines_say_what_was_scored_and_what_compares():
    said = lines(findings())
    assert said[0] == "2 documents: 1,000 characters, 500 tokens of 2.00 characters."
    assert said[1] == "It hesitates between 5.5 letters a time (chance 32, 5-gram table 7.0)."
    assert said[2].startswith("In bits per character: 2.453 ± ")
    assert "over 2 documents; 2.230 per byte" in said[2]
    assert said[3].startswith("Loss 3.400 nats per token, perplexity 29.96: ")


def test_one_document_goes_by_its_name_and_has_no_table():
    said = lines(findings(documents=documents(1), score=Score("model", (72.0,), (100,)), parts="none"))
    assert said[0].startswith("0.txt: 100 characters, 50 tokens")
    assert "±" not in said[2]
    assert not [line for line in said if line.startswith("By document")]


def test_documents_stand_in_a_table_the_hardest_first():
    said = lines(findings())
    place = said.index("By document, the hardest first:")
    assert said[place + 1].split() == ["bits/char", "bits/byte", "perplexity", "characters"]
    assert said[place + 2].split() == ["2.885", "2.885", "54.60", "400", "b.txt"]
    assert said[place + 3].split() == ["2.164", "1.855", "20.09", "600", "a.txt"]
    assert len({line.index(".txt") for line in said[place + 2 : place + 4]}) == 1


def test_of_many_documents_the_hardest_and_the_easiest_are_shown():
    said = lines(findings(documents=documents(40)))
    place = said.index("By document, the 5 hardest and the 5 easiest of 40:")
    names = [line.split()[-1] for line in said[place + 2 : place + 13]]
    assert names == [*(f"{n}.txt" for n in (39, 38, 37, 36, 35)), "…", *(f"{n}.txt" for n in (4, 3, 2, 1, 0))]


def test_yardsticks_stand_below_each_other_with_what_they_knew():
    said = [line for line in lines(findings()) if line.startswith("  ")]
    assert "  chance          5.000  a guess" in said
    assert "  5-gram table    2.800  a table" in said
    assert "  xz, after it    2.900  xz" in said


@pytest.mark.parametrize(
    ("bits", "sentence"),
    [
        ((1300.0, 1152.5), "Better than the 5-gram table by 0.347 ± "),
        ((1600.0, 1400.0), "Worse than the 5-gram table by 0.200 ± "),
        ((1400.0, 1400.0), "As good as the 5-gram table: the difference, 0.000 ± "),
    ],
)
def test_better_and_worse_are_said_only_beyond_the_error(bits, sentence):
    assert against_the_table(findings(score=Score("model", bits, (600, 400)))).startswith(sentence)


def test_without_a_table_nothing_is_said_of_one():
    assert against_the_table(findings(yardsticks=())) == ""


def test_escaped_characters_are_told_and_many_make_the_figure_doubtful():
    score = TextScore(name="a", characters=100, utf8_bytes=100, tokens=99, nats=99.0, escaped=1, escape_bits=30.0)
    assert escapes(findings()) == ""
    few = escapes(findings(documents=(score,)))
    assert few.startswith("1 character that its tokenizer cannot write cost 30.0 bits each")
    assert "tells little" not in few
    many = TextScore(name="a", characters=100, utf8_bytes=200, tokens=0, nats=0.0, escaped=100, escape_bits=30.0)
    assert "They are 100% of the text" in escapes(findings(documents=(many,)))
    assert "there is no loss per token" in "\n".join(lines(findings(documents=(many,))))


def test_a_text_that_was_learned_from_is_told_as_that():
    assert known(findings()) == known(findings(known=0.05)) == ""
    assert known(findings(known=0.84)).startswith("About 84% of this text stands word for word in the text it learned")


def test_how_it_was_scored_is_true_of_every_stride():
    assert how(findings(stride=256)) == "[windows of 256 tokens, none overlapping · 2.0 s, 250 tokens/s]"
    assert "128 apart: each token is predicted from 128 or more before it" in how(findings())


def test_json_has_figures_for_all_and_for_each_and_can_be_read():
    said = json.loads(json.dumps(as_json(findings(known=0.0))))
    assert said["together"]["bits_per_character"] == pytest.approx(2.4526, abs=1e-4)
    assert said["together"]["standard_error_over"] == "documents"
    assert [document["name"] for document in said["documents"]] == ["a.txt", "b.txt"]
    assert said["documents"][0].keys() == said["together"].keys() - {"standard_error", "standard_error_over"} | {"name"}
    assert said["lead"] == {"over": "5-gram", "bits_per_character": 0.3475, "standard_error": pytest.approx(0.0, abs=1)}
    assert said["yardsticks"][0] == {"name": "chance", "bits_per_character": 5.0, "note": "a guess"}
    assert (said["context_length"], said["stride"], said["known_share"], said["text"]) == (256, 128, 0.0, "files")


def test_a_name_commands_nothing_and_is_cropped():
    long = TextScore(name="x" * 300 + "\x1b[31m", characters=10, utf8_bytes=10, tokens=5, nats=5.0)
    said = lines(findings(documents=(long,)))[0]
    assert said.startswith("…xxx")
    assert "x␛[31m: 10 characters" in said
    assert len(said) < 140


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        ((980.0, 690.0), "In int8 it loses 0.020 ± "),
        ((1020.0, 690.0), "In int8 it gains 0.020 ± "),
        ((1000.0, 690.0), "In int8 it is as good as with the weights as stored, to 0.001 bits per character."),
    ],
)
def test_what_a_precision_costs_is_one_sentence(stored, sentence):
    score, as_stored = Score("model", (1000.0, 690.0), (600, 400)), Score("model", stored, (600, 400))
    assert lost(findings(score=score, precision="int8", as_stored=as_stored)).startswith(sentence)


def test_of_one_part_the_cost_has_no_error():
    score, as_stored = Score("model", (100.0,), (100,)), Score("model", (98.0,), (100,))
    said = lost(findings(score=score, precision="int8", as_stored=as_stored))
    assert said == "In int8 it loses 0.020 bits per character against the weights as stored."


def test_without_a_precision_nothing_is_said_of_it():
    assert lost(findings()) == ""
