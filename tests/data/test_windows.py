"""Evaluation windows: every token scored once, ends of text never."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data import IGNORED, windows

END = 99


def scored(ids, context_length, batch_size):
    batches = list(windows(np.array(ids), context_length=context_length, batch_size=batch_size, end_of_text_id=END))
    targets = np.concatenate([targets.numpy().ravel() for _, targets in batches]) if batches else np.array([])
    return batches, [target for target in targets.tolist() if target != IGNORED]


@settings(deadline=None)
@given(ids=st.lists(st.integers(0, 98), max_size=60), context_length=st.integers(1, 9), batch_size=st.integers(1, 5))
def test_every_token_is_scored_once_in_order_and_all_batches_have_one_shape(ids, context_length, batch_size):
    batches, found = scored([END, *ids], context_length, batch_size)
    assert found == ids
    assert all(inputs.shape == targets.shape == (batch_size, context_length) for inputs, targets in batches)


def test_a_target_is_predicted_from_the_token_before_it():
    ((inputs, targets),) = windows(
        np.array([END, 1, 2, 3, 4, 5], dtype=np.uint16), context_length=2, batch_size=3, end_of_text_id=END
    )
    assert inputs.tolist() == [[END, 1], [2, 3], [4, END]]
    assert targets.tolist() == [[1, 2], [3, 4], [5, IGNORED]]


def test_an_end_of_text_inside_a_passage_is_input_but_not_scored():
    batches, found = scored([END, 1, END, 2], 4, 1)
    assert found == [1, 2]
    assert batches[0][0].tolist() == [[END, 1, END, END]]


def test_a_passage_without_text_has_no_window():
    assert scored([END], 4, 2) == ([], [])
