import numpy as np

from pellucid.inspection import ScoredDocument, TextScore, characters_of, chosen_passages
from pellucid.inspection import passages as room


def document(nats, name="a"):
    nats = np.asarray(nats, dtype=np.float32)
    score = TextScore(name=name, characters=len(nats), utf8_bytes=len(nats), tokens=len(nats), nats=float(nats.sum()))
    return ScoredDocument(score, np.zeros(len(nats), dtype=int), nats, np.arange(len(nats)), np.zeros(0, dtype=int), "")


def test_a_short_text_is_shown_whole():
    found = chosen_passages([document([1.0] * 30), document([]), document([2.0] * 3000)])
    assert [(one.document, one.first, one.stop, one.why) for one in found] == [
        (0, 0, 30, "whole"),
        (2, 0, 3000, "whole"),
    ]


def test_of_a_long_one_the_beginning_the_hardest_and_the_easiest():
    nats = np.full(20_000, 2.0)
    nats[5000:5200] = 9.0
    nats[12_000:12_200] = 0.1
    found = chosen_passages([document(nats)])
    by_kind = {why: [one for one in found if one.why == why] for why in ("beginning", "hardest", "easiest")}
    assert by_kind["beginning"][0].stop == room.BEGINNING
    assert by_kind["hardest"][0].first == 5000
    assert by_kind["easiest"][0].first == 12_000
    assert sum(one.stop - one.first for one in found) <= room.BEGINNING + room.HARDEST + room.EASIEST


def test_passages_do_not_overlap():
    found = chosen_passages([document(np.random.default_rng(0).random(5000)), document([3.0] * 700)])
    places = [(one.document, place) for one in found for place in range(one.first, one.stop)]
    assert len(places) == len(set(places))


def test_a_few_words_are_not_called_the_hardest_unless_there_is_nothing_else():
    long = document(np.full(8000, 2.0))
    found = chosen_passages([long, document([50.0] * 3)])
    assert all(one.document == 0 for one in found)
    short = [document(np.random.default_rng(n).random(10), str(n)) for n in range(500)]
    assert len([one for one in chosen_passages(short) if one.why == "hardest"]) == room.HARDEST // 10


def test_the_easiest_are_not_the_hardest_once_more():
    found = chosen_passages([document([2.0] * 1000), document([2.0] * 3100)])
    assert len({(one.document, one.first) for one in found}) == len(found)


def test_places_are_told_in_characters():
    one = document([1.0] * 10)
    assert characters_of(one, 0, 10) == (0, 10)
    assert characters_of(one, 3, 5) == (3, 5)
