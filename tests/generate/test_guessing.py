from hypothesis import given
from hypothesis import strategies as st

from pellucid.generate import Guesser

IDS = st.lists(st.integers(0, 3), max_size=60)


@given(IDS, st.integers(0, 6), st.integers(0, 6))
def test_it_guesses_what_stood_behind_the_same_ids_before(sequence, most, room):
    guess = Guesser(most).guess(sequence, room)
    assert len(guess) <= min(most, room)
    if guess:
        places = [p for p in range(2, len(sequence)) if sequence[p - 2 : p] == sequence[-2:]]
        assert any(sequence[p : p + len(guess)] == guess for p in places)


@given(IDS, IDS)
def test_it_need_not_see_a_sequence_at_once(beginning, end):
    step_by_step = Guesser(4)
    for length in range(len(beginning), len(beginning + end)):
        step_by_step.guess((beginning + end)[:length], 4)
    assert step_by_step.guess(beginning + end, 4) == Guesser(4).guess(beginning + end, 4)


def test_the_longest_run_that_came_before_counts():
    assert Guesser(1).guess([1, 2, 3, 4, 9, 3, 4, 8, 1, 2, 3, 4], 1) == [9]


def test_it_guesses_less_when_guesses_fail_and_tries_again_later():
    guesser, sequence = Guesser(4), [1, 2, 3, 4, 5, 6] * 3
    assert len(guesser.guess(sequence, 9)) == 4
    for _ in range(3):
        guesser.learn(len(guesser.guess(sequence, 9)) or 1, 0)
    assert guesser.guess(sequence, 9) == []
    waits = [len(guesser.guess(sequence, 9)) for _ in range(20)]
    assert waits[0] == 0
    assert waits[-1] == 1
    guesser.learn(1, 1)
    assert len(guesser.guess(sequence, 9)) == 2


def test_none_are_made_if_none_are_wanted():
    assert Guesser(0).guess([1, 2] * 9, 5) == []
