import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.parallel import ALONE, Ranks


def test_alone_everything_comes_back_as_it_was_given():
    assert ALONE.is_first
    assert ALONE.sum([1.5, 2.0]) == [1.5, 2.0]
    assert ALONE.largest(3) == 3
    assert ALONE.from_first({"a": [1, None]}) == {"a": [1, None]}


@given(st.integers(1, 40), st.integers(1, 9))
def test_the_shares_of_all_ranks_are_everything_once(count, ranks):
    shares = [Ranks(rank, ranks).share(count) for rank in range(ranks)]
    assert [row for share in shares for row in range(count)[share]] == list(range(count))
    lengths = [share.stop - share.start for share in shares]
    assert max(lengths) == -(-count // ranks)


def test_a_rehearsing_rank_has_its_place_and_keeps_to_itself():
    rehearsing = Ranks(1, 2, 1).rehearsing()
    assert (rehearsing.rank, rehearsing.count, rehearsing.local_rank) == (1, 2, 1)
    assert rehearsing.sum([2.0]) == [2.0]


@pytest.mark.parametrize("rank", range(3))
def test_only_one_is_the_first(rank):
    assert Ranks(rank, 3).is_first == (rank == 0)
