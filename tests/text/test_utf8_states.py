import pytest
from hypothesis import given
from hypothesis import strategies as st

from pellucid.text import character_tokenizer, train_byte_pairs
from pellucid.text.utf8_states import (
    AFTER_E0,
    AFTER_ED,
    AFTER_F0,
    AFTER_F4,
    BETWEEN,
    NOWHERE,
    NUM_STATES,
    ONE_MISSING,
    THREE_MISSING,
    TWO_MISSING,
    byte_table,
    bytes_begun,
    states_after,
    states_after_tokens,
)

ALL_BYTES = [bytes([byte]) for byte in range(256)]
LEADING = {
    BETWEEN: b"",
    ONE_MISSING: b"\xc3",
    TWO_MISSING: b"\xe4",
    THREE_MISSING: b"\xf1",
    AFTER_E0: b"\xe0",
    AFTER_ED: b"\xed",
    AFTER_F0: b"\xf0",
    AFTER_F4: b"\xf4",
}


def is_text(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def can_become_text(data):
    """By trying: whether some bytes after these make UTF-8 of them, as Python's decoder judges it."""
    return any(is_text(data + end) for end in (b"", *TAILS))


CONTINUATIONS = [b"\x80", b"\x90", b"\xa0", b"\xbf"]  # one of every range that a second byte may have
TAILS = [*CONTINUATIONS]
TAILS += [a + b for a in TAILS for b in CONTINUATIONS]
TAILS += [a + b for a in TAILS[4:] for b in CONTINUATIONS]


def run(states, token_ids):
    state = BETWEEN
    for token_id in token_ids:
        if state == NOWHERE:
            break
        state = int(states[state, token_id])
    return state


def test_the_machine_allows_of_all_second_bytes_those_that_python_decodes():
    table = byte_table()
    for state, leading in LEADING.items():
        allowed = {byte for byte in range(256) if table[state, byte] != NOWHERE}
        assert allowed == {byte for byte in range(256) if can_become_text(leading + bytes([byte]))}


def test_every_character_is_walked_from_between_to_between():
    table = byte_table()
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for code in (*codes[:0x3000], *codes[0x3000::97], 0xFFFF, 0x10000, 0x10FFFF):
        state = BETWEEN
        for byte in chr(code).encode():
            state = int(table[state, byte])
        assert state == BETWEEN, hex(code)


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=8).map(lambda tokens: [*tokens, *ALL_BYTES]), st.data())
def test_tokens_may_come_exactly_where_python_could_still_decode(tokens, data):
    states = states_after(tokens)
    before = data.draw(st.sampled_from(sorted(LEADING)))
    for token, after in zip(tokens, states[before], strict=True):
        whole = LEADING[before] + token
        if token:
            assert (after != NOWHERE) == can_become_text(whole)
        if after != NOWHERE:
            assert (after == BETWEEN) == is_text(whole)


def test_a_token_without_bytes_may_come_only_between_characters():
    states = states_after([b"", *ALL_BYTES])
    assert states[:, 0].tolist() == [BETWEEN] + [NOWHERE] * 7


def test_nothing_leads_to_where_the_vocabulary_cannot_go_on():
    lacks_99 = [token for token in ALL_BYTES if token[0] not in range(0x80, 0xC0)] + [b"\xb8", b"\xb8\xad", b"\xe4\xb8"]
    states = states_after(lacks_99)
    for state in range(NUM_STATES):
        for after in set(states[state].tolist()) - {NOWHERE}:
            assert (states[after] != NOWHERE).any()
    assert run(states, [lacks_99.index(b"\xe4"), lacks_99.index(b"\xb8\xad")]) == BETWEEN
    assert states[BETWEEN, lacks_99.index(b"\xed")] == NOWHERE  # B8 is none of the bytes that may follow ED


def test_a_character_that_would_only_ever_run_into_the_next_is_not_begun():
    states = states_after([b"a", b"\xe4", b"\xb8\xad\xe4"])
    assert states[BETWEEN].tolist() == [BETWEEN, NOWHERE, NOWHERE]


def test_characters_lead_from_between_to_between():
    assert not states_after_tokens(character_tokenizer(["abß中😀"]))[BETWEEN].any()


def test_a_text_is_walked_token_by_token():
    tokenizer = train_byte_pairs(["中文中文 سلام سلام 😀😀 é"], 280)
    states = states_after_tokens(tokenizer)
    for text in ("中文字典", "سلام دنیا", "👨‍👩‍👧", "\U0010ffff\ud7ff\ue000"):
        assert run(states, tokenizer.encode(text)) == BETWEEN
        assert run(states, tokenizer.encode(text)[:-1]) not in (BETWEEN, NOWHERE) or len(text) == 1


def test_an_empty_vocabulary_is_an_empty_table():
    assert states_after([]).shape == (NUM_STATES, 0)


@pytest.mark.parametrize(
    ("data", "begun"),
    [
        (b"", b""),
        ("中".encode()[:2], b"\xe4\xb8"),
        ("a😀".encode()[:-1], b"\xf0\x9f\x98"),
        (b"\x98\x80", b""),
        (b"\xe4\xc3", b"\xc3"),
        (b"\xff", b""),
    ],
)
def test_what_only_begins_a_character_is_told(data, begun):
    assert bytes_begun(data) == begun
