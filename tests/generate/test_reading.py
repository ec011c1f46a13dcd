import pytest
import torch

from pellucid import presets
from pellucid.errors import ShapeError
from pellucid.generate import Reading, decode, likeliest
from pellucid.nn import TransformerLM

SIZES = {"vocab_size": 40, "d_model": 32, "num_heads": 4, "num_layers": 2, "context_length": 48}


@pytest.fixture(params=["default", "gpt2"])
def model(request):
    torch.manual_seed(3)
    model = TransformerLM(getattr(presets, request.param)(**SIZES)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.15)
    return model


@pytest.fixture(params=[False, True], ids=["program", "model"])
def how(request):
    return {"through_model": request.param}


def ids(length, seed=0):
    return torch.randint(40, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def expected(model, sequence):
    with torch.no_grad():
        return model(torch.tensor([sequence]))[0]


def test_rows_may_have_any_number_of_new_ids_at_any_time(model, how):
    reading = Reading(model, 3, 4, **how)
    parts = [[ids(3, 1), [], ids(20, 2)], [[], ids(5, 3), ids(2, 4)], [ids(17, 5), ids(1, 6), ids(1, 7)]]
    for part in parts:
        logits = reading.read(part)
        for row, new in enumerate(part):
            assert len(logits[row]) in ((0,) if not new else (1, len(new)))
            if new:
                whole = expected(model, reading.sequences[row])
                torch.testing.assert_close(logits[row], whole[-len(logits[row]) :], atol=2e-5, rtol=2e-5)
    assert reading.sequences == [
        parts[0][0] + parts[2][0],
        parts[1][1] + parts[2][1],
        parts[0][2] + parts[1][2] + parts[2][2],
    ]


def test_what_is_cut_off_is_as_if_it_had_never_been_read(model, how):
    reading = Reading(model, 2, 30, **how)
    reading.read([ids(9, 1), ids(4, 2)])
    reading.cut(0, 5)
    logits = reading.read([ids(3, 8), ids(1, 9)])
    torch.testing.assert_close(logits[0][-1], expected(model, ids(9, 1)[:5] + ids(3, 8))[-1], atol=2e-5, rtol=2e-5)


def test_rows_that_are_let_go_take_nothing_with_them(model, how):
    reading = Reading(model, 3, 30, **how)
    reading.read([ids(2, 1), ids(3, 2), ids(4, 3)])
    reading.keep([2, 0])
    assert reading.sequences == [ids(4, 3), ids(2, 1)]
    logits = reading.read([[7], [8]])
    torch.testing.assert_close(logits[0][-1], expected(model, [*ids(4, 3), 7])[-1], atol=2e-5, rtol=2e-5)


def test_past_the_context_there_is_no_room(model, how):
    reading = Reading(model, 1, 4, **how)
    assert reading.room(0) == 48
    reading.read([ids(40)])
    assert reading.room(0) == 8
    with pytest.raises(ShapeError):
        reading.read([ids(9)])


def test_decoding_goes_on_from_what_has_been_read_and_reads_only_what_is_new(model, how):
    prompt = ids(12, 1)
    fresh = [token_id for _, token_id in decode(model, [prompt], lambda _, logits: likeliest(logits), max_tokens=20)]
    reading, read = Reading(model, 1, 20, **how), []
    reading.read([[*prompt[:9], 1, 2, 3]])
    whole = reading.read
    reading.read = lambda tokens: read.append(len(tokens[0])) or whole(tokens)
    steps = decode(model, [prompt], lambda _, logits: likeliest(logits), max_tokens=20, reading=reading)
    assert [token_id for _, token_id in steps] == fresh
    assert read[0] == 3 if prompt[9:10] != [1] else read[0] < 3
    assert reading.sequences[0] == (prompt + fresh)[: len(reading.sequences[0])]
    assert len(reading.sequences[0]) >= len(prompt) + 19 - 1
