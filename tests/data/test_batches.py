"""Batches: pure in (seed, step), every row once an epoch, and short texts told apart."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid.data import Batches, TokenFile, TokenWriter
from pellucid.errors import ConfigError, DataError
from pellucid.text import character_tokenizer

CHARACTERS = "".join(chr(0x4E00 + place) for place in range(5_000))
TOKENIZER = character_tokenizer([CHARACTERS])


@pytest.fixture(scope="module")
def token_file(tmp_path_factory):
    """Make a file of so many tokens in all, every id of its text another one."""
    folder = tmp_path_factory.mktemp("tokens")

    def make(num_tokens: int) -> TokenFile:
        path = folder / f"{num_tokens}.tokens"
        with TokenWriter(path, TOKENIZER, text="") as writer:
            writer.begin_document(tenth=0)
            writer.add(TOKENIZER.encode(CHARACTERS[: num_tokens - 2]), characters=num_tokens - 2)
        tokens = TokenFile.open(path)
        assert len(tokens) == num_tokens
        return tokens

    return make


def batches_of(tokens, *, context_length=8, batch_size=4, seed=0):
    return Batches(tokens, context_length=context_length, batch_size=batch_size, seed=seed)


class TestPurity:
    def test_a_step_gives_the_same_whatever_was_asked_before(self, token_file):
        tokens = token_file(1000)
        forward, backward = batches_of(tokens), batches_of(tokens)
        there = [forward.at(step) for step in range(150)]
        back = [backward.at(step) for step in reversed(range(150))][::-1]
        for (inputs, targets), (other_inputs, other_targets) in zip(there, back, strict=True):
            assert torch.equal(inputs, other_inputs)
            assert torch.equal(targets, other_targets)

    def test_a_seed_is_an_order(self, token_file):
        tokens = token_file(1000)
        first = {seed: batches_of(tokens, seed=seed).starts(0).tolist() for seed in (0, 0, 1, 2)}
        assert len({tuple(starts) for starts in first.values()}) == 3

    def test_epochs_have_other_orders_and_other_phases(self, token_file):
        batches = batches_of(token_file(1001), batch_size=125)
        assert batches.rows_per_epoch == 125
        orders = [batches.starts(epoch) for epoch in range(4)]
        assert len({int(starts.min()) % 8 for starts in orders}) > 1
        assert len({tuple((starts - starts[0]).tolist()) for starts in orders}) == 4

    def test_no_global_random_state_is_read_or_moved(self, token_file):
        batches = batches_of(token_file(1000))
        torch.manual_seed(1)
        np.random.seed(1)
        before = torch.get_rng_state(), np.random.get_state()[1].copy()
        batches.at(0)
        assert torch.equal(before[0], torch.get_rng_state())
        assert np.array_equal(before[1], np.random.get_state()[1])

    def test_the_order_is_the_same_for_ever(self, token_file):
        assert batches_of(token_file(100), seed=7).starts(3).tolist() == [24, 0, 75, 67]


class TestEpochs:
    @settings(deadline=None, max_examples=40)
    @given(num_tokens=st.integers(3, 60), context_length=st.integers(1, 20), batch_size=st.integers(1, 7))
    def test_every_row_comes_once_an_epoch(self, token_file, num_tokens, context_length, batch_size):
        if num_tokens <= context_length:
            return
        batches = batches_of(token_file(num_tokens), context_length=context_length, batch_size=batch_size)
        rows = batches.rows_per_epoch
        steps = -(-3 * rows // batch_size)
        starts = np.concatenate([batches.starts(step) for step in range(steps)])
        for epoch in range(3):
            ring = num_tokens - 1
            places = np.sort((starts[epoch * rows : (epoch + 1) * rows] - starts[epoch * rows]) % ring)
            gaps = np.diff([*places, ring])
            # rows follow one another without overlap; fewer tokens than a row are left out
            assert (gaps >= context_length).all()
            assert gaps.sum() - rows * context_length < context_length

    def test_every_token_is_a_target_about_equally_often(self, token_file):
        batches = batches_of(token_file(72), context_length=8, batch_size=8)
        counts = np.zeros(TOKENIZER.vocab_size)
        for step in range(400):
            np.add.at(counts, batches.at(step)[1].numpy().ravel(), 1)
        used = counts[counts > 0]
        assert len(used) == 71
        assert used.min() > 0.8 * used.max()

    def test_epochs_and_steps_count_rows(self, token_file):
        batches = batches_of(token_file(1001), batch_size=50)
        assert batches.steps_per_epoch == 2.5
        assert batches.epochs_after(5) == 2.0


class TestRows:
    def test_targets_are_the_ids_one_place_on(self, token_file):
        inputs, targets = batches_of(token_file(1000)).at(3)
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
        assert inputs.shape == targets.shape == (4, 8)
        assert inputs.dtype == targets.dtype == torch.int64
        assert inputs.is_contiguous()
        assert targets.is_contiguous()

    def test_rows_are_stretches_of_the_ring(self, token_file):
        tokens = token_file(30)
        ring = tokens.read(0, 29).tolist()
        batches = batches_of(tokens, context_length=9, batch_size=3)
        for step in range(40):
            inputs, targets = batches.at(step)
            for start, row, last in zip(batches.starts(step), inputs.tolist(), targets[:, -1].tolist(), strict=True):
                assert [*row, last] == [ring[(start + place) % 29] for place in range(10)]

    @pytest.mark.parametrize("ranks", [1, 2, 3, 4])
    def test_ranks_take_disjoint_slices_of_one_global_batch(self, token_file, ranks):
        batches = batches_of(token_file(1000), batch_size=12)
        share = 12 // ranks
        parts = [batches.at(5, rows=slice(rank * share, (rank + 1) * share)) for rank in range(ranks)]
        whole = batches.at(5)
        for side in (0, 1):
            assert torch.equal(torch.cat([part[side] for part in parts]), whole[side])

    def test_a_damaged_file_is_noticed(self, token_file):
        tokens = token_file(1000)
        content = bytearray(tokens.path.read_bytes())
        content[4096 + 2 : 4096 + 2 * 999] = b"\xff\xff" * 998
        damaged = tokens.path.with_name("damaged.tokens")
        damaged.write_bytes(content)
        with pytest.raises(DataError, match="damaged"):
            batches_of(TokenFile.open(damaged)).at(0)


class TestShortTexts:
    def test_the_context_and_one_more_trains(self, token_file):
        batches = batches_of(token_file(257), context_length=256)
        assert batches.rows_per_epoch == 1
        assert batches.at(0)[0].shape == (4, 256)

    @pytest.mark.parametrize("num_tokens", [2, 255, 256])
    def test_fewer_are_refused_with_the_split_and_both_numbers(self, token_file, num_tokens):
        message = f"257 tokens in the training split .* but got {num_tokens}: choose a context_length of at most "
        with pytest.raises(DataError, match=message):
            batches_of(token_file(num_tokens), context_length=256)

    @pytest.mark.parametrize("num_tokens", [258, 2_560, 2_580])
    def test_more_train(self, token_file, num_tokens):
        batches_of(token_file(num_tokens), context_length=256).at(0)

    @pytest.mark.parametrize("sizes", [(0, 4), (8, 0), (-1, 4)])
    def test_sizes_must_be_positive(self, token_file, sizes):
        with pytest.raises(ConfigError, match="at least 1"):
            batches_of(token_file(100), context_length=sizes[0], batch_size=sizes[1])


class TestMixtures:
    @pytest.fixture
    def parts(self, token_file):
        return [token_file(801), token_file(241)]

    def test_rows_come_in_the_proportions_asked_for(self, parts):
        batches = Batches(parts, context_length=8, batch_size=10, seed=1, weights=[Fraction(7), Fraction(3)])
        assert all(np.bincount(batches.parts(step), minlength=2).tolist() == [7, 3] for step in range(100))

    def test_every_row_of_a_part_comes_once_in_its_own_epoch(self, parts):
        batches = Batches(parts, context_length=8, batch_size=5, seed=1, weights=[Fraction(1), Fraction(1)])
        places = np.concatenate([np.stack([batches.parts(step), batches.starts(step)]) for step in range(80)], axis=1)
        for part, rows in enumerate((100, 30)):
            starts = places[1, places[0] == part]
            for epoch in range(len(starts) // rows):
                assert len(np.unique(starts[epoch * rows : (epoch + 1) * rows])) == rows

    def test_a_batch_is_a_pure_function_of_seed_and_step(self, parts):
        weights = [Fraction(2), Fraction(3)]
        forward, backward = (Batches(parts, context_length=8, batch_size=4, seed=1, weights=weights) for _ in range(2))
        there = [forward.at(step)[0] for step in range(90)]
        back = [backward.at(step)[0] for step in reversed(range(90))][::-1]
        assert all(map(torch.equal, there, back))

    def test_slices_join_to_the_batch(self, parts):
        batches = Batches(parts, context_length=8, batch_size=4, seed=1)
        whole = batches.at(5)[0]
        assert torch.equal(torch.cat([batches.at(5, rows=slice(3))[0], batches.at(5, rows=slice(3, 4))[0]]), whole)

    def test_rows_are_read_from_the_file_they_belong_to(self, parts):
        batches = Batches(parts, context_length=8, batch_size=40, seed=1, weights=[Fraction(1), Fraction(1)])
        inputs, _ = batches.at(0)
        for part, start, row in zip(batches.parts(0).tolist(), batches.starts(0).tolist(), inputs.numpy(), strict=True):
            if start + 8 <= len(parts[part]):
                assert (parts[part].read(start, start + 8) == row).all()

    def test_epochs_are_told_for_each_part(self, parts):
        batches = Batches(parts, context_length=8, batch_size=10, seed=1, weights=[Fraction(1), Fraction(3)])
        assert batches.epochs_of_parts(40) == (1.0, 10.0)
        assert batches.epochs_after(40) == 0.25 * 1 + 0.75 * 10

    def test_without_weights_all_parts_are_read_equally_often(self, parts):
        batches = Batches(parts, context_length=8, batch_size=10, seed=1)
        assert batches.epochs_of_parts(13) == pytest.approx((1.0, 1.0))
        assert batches.epochs_after(13) == pytest.approx(1.0)

    def test_one_part_is_what_it_is_alone(self, parts):
        alone, mixed = batches_of(parts[0]), Batches(parts[:1], context_length=8, batch_size=4, seed=0)
        assert all((alone.starts(step) == mixed.starts(step)).all() for step in range(70))

    def test_two_parts_of_one_size_have_orders_of_their_own(self, token_file):
        batches = Batches([token_file(801)] * 2, context_length=8, batch_size=10, seed=1)
        starts, parts = batches.starts(0), batches.parts(0)
        assert starts[parts == 0].tolist() != starts[parts == 1].tolist()

    def test_a_part_that_is_too_short_is_told(self, token_file):
        with pytest.raises(DataError, match="at least 9 tokens"):
            Batches([token_file(100), token_file(5)], context_length=8, batch_size=2, seed=0)


class TestDocuments:
    @pytest.fixture
    def documents(self, tmp_path):
        """Eleven documents of 0 to 30 characters."""
        with TokenWriter(tmp_path / "x.tokens", TOKENIZER, text="") as writer:
            for number in range(11):
                writer.begin_document(tenth=0)
                text = CHARACTERS[100 * number : 100 * number + 3 * number]
                writer.add(TOKENIZER.encode(text), characters=len(text))
        return TokenFile.open(tmp_path / "x.tokens")

    def test_every_token_is_told_its_document_and_its_place_there(self, documents):
        batches = Batches(documents, context_length=16, batch_size=4, seed=0, mask_documents=True)
        for step in range(30):
            inputs, _, document_ids, positions = batches.at(step)
            for ids, own, places in zip(inputs.tolist(), document_ids.tolist(), positions.tolist(), strict=True):
                expected, document, place = [], 0, 0
                for token in ids:
                    if token == TOKENIZER.end_of_text_id:
                        document, place = document + 1, 0
                    expected.append((document, place))
                    place += 1
                assert list(zip(own, places, strict=True)) == expected

    def test_tokens_of_one_document_have_one_number_and_others_another(self, documents):
        batches = Batches(documents, context_length=16, batch_size=4, seed=0, mask_documents=True)
        inputs, _, document_ids, _ = batches.at(2)
        hundreds = (inputs - TOKENIZER.encode(CHARACTERS[0])[0]) // 100  # which document a character was taken from
        inside = inputs != TOKENIZER.end_of_text_id
        for row in range(4):
            pairs = set(zip(document_ids[row, inside[row]].tolist(), hundreds[row, inside[row]].tolist(), strict=True))
            assert len(pairs) == len({document for document, _ in pairs})

    def test_inputs_and_targets_are_the_same_as_without(self, documents):
        with_documents = Batches(documents, context_length=16, batch_size=4, seed=0, mask_documents=True).at(3)
        without = batches_of(documents, context_length=16).at(3)
        assert len(without) == 2
        assert all(map(torch.equal, without, with_documents[:2]))

    def test_slices_of_rows_have_their_own_documents(self, documents):
        batches = Batches(documents, context_length=16, batch_size=4, seed=0, mask_documents=True)
        whole, some = batches.at(1), batches.at(1, rows=slice(1, 3))
        assert all(torch.equal(part[1:3], own) for part, own in zip(whole, some, strict=True))
