import itertools
import json

import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pellucid import presets
from pellucid.errors import GenerationError, TokenizerError
from pellucid.generate import StopFinder, TextStream, Writing, complete, whole_text
from pellucid.generation_config import GenerationConfig
from pellucid.nn import TransformerLM
from pellucid.text import TextTokenizer, character_tokenizer, train_byte_pairs

TEXT = "to be, or not to be: that is the question.\nWhether 'tis nobler in the mind to suffer 👨‍👩‍👧 ไทย 한국어 "


@pytest.fixture(scope="module")
def bytes_only():
    return train_byte_pairs(["a"], 257)


@pytest.fixture(scope="module")
def byte_pairs():
    return train_byte_pairs([TEXT * 3], 300)


@pytest.fixture(scope="module")
def characters():
    return character_tokenizer([TEXT])


@pytest.fixture(scope="module")
def metaspace():
    """As SentencePiece makes them: ▁ for spaces, bytes for what has no token, the first space trimmed."""
    pieces = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "▁a", "▁b", "a", "b", "▁▁", "▁ab", "é"]
    built = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {piece: i for i, piece in enumerate(pieces)}, [("▁", "▁"), ("▁", "a")], byte_fallback=True
        )
    )
    decoders = tokenizers.decoders
    built.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    built.add_special_tokens(["</s>"])
    return TextTokenizer(built.to_str(), end_of_text="</s>")


@pytest.fixture(scope="module")
def metaspace_v2():
    """The other spelling of the same: one Metaspace decoder."""
    pieces = ["</s>", "▁", "▁a", "▁b", "a", "b", "▁▁", "▁ab"]
    built = tokenizers.Tokenizer(tokenizers.models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    built.decoder = tokenizers.decoders.Metaspace()
    built.add_special_tokens(["</s>"])
    return TextTokenizer(built.to_str(), end_of_text="</s>")


def model_for(tokenizer, seed=1, **sizes):
    torch.manual_seed(seed)
    shape = {"d_model": 32, "num_heads": 4, "num_layers": 1, "context_length": 16, **sizes}
    return TransformerLM(presets.default(vocab_size=tokenizer.vocab_size, **shape)).eval()


def pieces(tokenizer, token_ids):
    stream = TextStream(tokenizer)
    return [*(stream.push(token_id) for token_id in token_ids), stream.finish()]


# --- ids to text


@pytest.mark.parametrize("text", ["👨‍👩‍👧", "ภาษาไทย", "한국어", "né\u0301e", "a\u200bb", "\ufeff", "𝒳"])
def test_no_piece_holds_part_of_a_character_when_its_bytes_come_one_at_a_time(bytes_only, text):
    given = pieces(bytes_only, bytes_only.encode(text).tolist())
    assert "".join(given) == text
    assert not any("\ufffd" in piece for piece in given)


def test_a_character_is_given_as_soon_as_it_is_whole(bytes_only):
    assert pieces(bytes_only, bytes_only.encode("aß😀b").tolist()) == ["a", "", "ß", "", "", "", "😀", "b", ""]


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_text_that_ends_inside_a_character_ends_with_one_replacement(bytes_only, cut):
    token_ids = bytes_only.encode("ok😀").tolist()[: 2 + cut]
    assert pieces(bytes_only, token_ids)[-1] == "\ufffd"
    assert "".join(pieces(bytes_only, token_ids)) == bytes_only.decode(token_ids) == "ok\ufffd"


def test_a_replacement_character_that_is_meant_comes_through(bytes_only):
    assert "".join(pieces(bytes_only, bytes_only.encode("a\ufffdb\ufffd").tolist())) == "a\ufffdb\ufffd"


def random_ids(data, tokenizer, longest=200):
    return data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=longest))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize("kind", ["bytes_only", "byte_pairs", "characters", "metaspace", "metaspace_v2"])
@pytest.mark.usefixtures("no_shape_checks")
def test_pieces_joined_are_what_decoding_at_once_gives(request, kind, data):
    tokenizer = request.getfixturevalue(kind)
    token_ids = random_ids(data, tokenizer)
    assert "".join(pieces(tokenizer, token_ids)) == tokenizer.decode(token_ids)


@pytest.mark.parametrize("kind", ["metaspace", "metaspace_v2"])
@pytest.mark.usefixtures("no_shape_checks")
def test_spaces_survive_in_long_streams_of_tokens_that_begin_with_one(request, kind):
    tokenizer = request.getfixturevalue(kind)
    generator = torch.Generator().manual_seed(0)
    first = tokenizer.vocab_size - 7
    for length in (1, 2, 65, 66, 300):
        token_ids = (first + torch.randint(7, (length,), generator=generator)).tolist()
        assert "".join(pieces(tokenizer, token_ids)) == tokenizer.decode(token_ids)


@pytest.mark.parametrize("kind", ["metaspace", "metaspace_v2"])
def test_a_first_space_is_trimmed_only_where_the_text_begins(request, kind):
    tokenizer = request.getfixturevalue(kind)
    a, space_a = (next(i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i) == b) for b in (b"a", b" a"))
    token_ids = [space_a, *[a] * 40, *[tokenizer.end_of_text_id] * 90, space_a, a]
    assert "".join(pieces(tokenizer, token_ids)) == "a" + "a" * 40 + " aa"


@pytest.mark.parametrize("text", ["ไ", "😀", "ß", "aไ😀"])
def test_characters_stay_whole_where_a_long_stream_forgets_its_beginning(bytes_only, text):
    given = pieces(bytes_only, bytes_only.encode(text * 100).tolist())
    assert "".join(given) == text * 100


def test_a_long_stream_decodes_no_more_than_a_window(characters, monkeypatch):
    longest = []
    decode = characters.decode
    monkeypatch.setattr(characters, "decode", lambda ids: longest.append(len(ids)) or decode(ids))
    pieces(characters, [5] * 1000)
    assert max(longest) < 100


# --- stop texts


@given(
    text=st.text("abEND ", max_size=40),
    stop=st.lists(st.text("abEND ", min_size=1, max_size=5), max_size=3),
    cuts=st.lists(st.integers(1, 5), max_size=40),
)
def test_a_stop_text_is_found_however_the_text_is_cut(text, stop, cuts):
    finder, given, place = StopFinder(stop), "", 0
    for size in [*cuts, len(text) + 1]:
        given += finder.push(text[place : place + size])
        place += size
    given += finder.finish()
    ends = [text.find(one) + len(one) for one in stop if one in text]
    assert finder.found == bool(ends)
    if len(stop) == 1 or not ends:
        assert given == (text.partition(stop[0])[0] if ends else text)
    assert text.startswith(given)
    assert not any(one in given for one in stop)


def test_the_beginning_of_a_stop_text_is_held_back_until_it_is_sure():
    finder = StopFinder(["</end>"])
    assert [finder.push(character) for character in "a</en</end>b"] == ["a", "", "", "", "", "</en", *[""] * 6]
    assert finder.finish() == ""
    assert finder.found


def test_what_was_held_back_is_given_at_the_end():
    finder = StopFinder(["</end>"])
    assert finder.push("a</en") + finder.finish() == "a</en"


def test_without_stop_texts_nothing_is_held_back():
    assert StopFinder(()).push("abc") == "abc"


# --- writing


@pytest.mark.parametrize("kind", ["bytes_only", "byte_pairs", "characters"])
def test_streamed_and_given_at_once_are_the_same(request, kind):
    tokenizer = request.getfixturevalue(kind)
    model = model_for(tokenizer)
    config = GenerationConfig(max_tokens=40, seed=3, temperature=1.0)
    writing = Writing(model, tokenizer, ["to be", ""], config)
    streamed = ["", ""]
    for number, chunk in writing:
        streamed[number] += chunk
    assert streamed == [completion.text for completion in complete(model, tokenizer, ["to be", ""], config)]
    for completion in writing.completions:
        assert completion.text == whole_text(tokenizer, completion.token_ids)
        assert len(completion.token_ids) <= 40


@pytest.fixture(scope="module")
def model(characters):
    return model_for(characters)


def text_of(model, tokenizer, prompt="to be", **chosen):
    return complete(model, tokenizer, [prompt], GenerationConfig(**{"max_tokens": 12, "seed": 3, **chosen}))[0]


def test_the_same_seed_writes_the_same_and_another_another(model, characters):
    assert text_of(model, characters, seed=3).text == text_of(model, characters, seed=3).text
    assert len({text_of(model, characters, seed=seed).text for seed in range(5)}) == 5


def test_without_a_seed_texts_differ_and_the_seed_told_writes_them_again(model, characters):
    one, two = text_of(model, characters, seed=None), text_of(model, characters, seed=None)
    assert one.text != two.text
    assert text_of(model, characters, seed=one.seed).text == one.text


def test_samples_have_seeds_of_their_own_that_write_each_alone(model, characters):
    config = GenerationConfig(max_tokens=12, seed=10, num_samples=3)
    together = complete(model, characters, ["to be", "or"], config)
    assert [completion.seed for completion in together] == [10, 11, 12] * 2
    assert len({completion.text for completion in together}) == 6
    for completion in together:
        assert text_of(model, characters, completion.prompt, seed=completion.seed).text == completion.text


def test_writing_leaves_the_global_stream_alone(model, characters):
    before = torch.get_rng_state()
    text_of(model, characters, seed=None)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_empty_prompt_begins_with_the_end_of_text(model, characters):
    assert text_of(model, characters, "").prompt_ids == [characters.end_of_text_id]


def forced(model, script):
    """A model that gives these ids, whatever it reads."""

    class Forced(TransformerLM):
        place = 0

        def forward(self, token_ids, **_):
            logits = torch.zeros(len(token_ids), 1, self.config.vocab_size)
            logits[:, :, script[Forced.place]] = 50.0
            Forced.place += 1
            return logits

    return Forced(model.config).eval()


def test_the_models_own_end_stops_it_and_is_not_in_the_text(model, characters):
    script = [*characters.encode("be").tolist(), characters.end_of_text_id, 3]
    ended = text_of(forced(model, script), characters, temperature=0.0)
    assert (ended.text, ended.finish_reason, len(ended.token_ids)) == ("be", "stop", 2)


def test_what_was_held_back_is_given_when_the_model_ends_the_text(bytes_only):
    for written, stop, text in ((b"a\xf0\x9f", (), "a\ufffd"), (b"or no", ("not",), "or no")):
        ids = {bytes_only.token_bytes(token_id): token_id for token_id in range(257)}
        script = [*(ids[bytes([byte])] for byte in written), bytes_only.end_of_text_id]
        made = text_of(forced(model_for(bytes_only), script), bytes_only, temperature=0.0, stop=stop, raw=True)
        assert (made.text, made.finish_reason) == (text, "stop")


@pytest.mark.parametrize(
    ("stop", "text"), [(("not",), "or "), (("to", "not"), "or "), (("or",), ""), (("t ",), "or no"), (("xyz",), None)]
)
def test_it_stops_before_a_stop_text_over_several_tokens(model, characters, stop, text):
    script = characters.encode("or not to be").tolist()
    ended = text_of(forced(model, script), characters, temperature=0.0, stop=stop)
    assert ended.text == ("or not to be" if text is None else text)
    assert ended.finish_reason == ("length" if text is None else "stop")


def test_a_stop_text_holds_no_chunk_of_it(model, characters):
    script = characters.encode("or not to be").tolist()
    config = GenerationConfig(max_tokens=12, temperature=0.0, stop=("not",))
    chunks = [chunk for _, chunk in Writing(forced(model, script), characters, ["to"], config)]
    assert chunks == ["o", "r", " "]


@pytest.mark.parametrize(("raw", "end"), [(False, ""), (True, "\ufffd")])
def test_of_an_end_inside_a_character_the_ids_are_told_and_the_text_is_whole_unless_raw(bytes_only, raw, end):
    script = bytes_only.encode("a😀").tolist()
    for max_tokens, text in ((2, f"a{end}"), (4, f"a{end}"), (5, "a😀")):
        model = forced(model_for(bytes_only), script)
        writing = Writing(model, bytes_only, ["x"], GenerationConfig(max_tokens=max_tokens, temperature=0.0, raw=raw))
        assert "".join(chunk for _, chunk in writing) == writing.completions[0].text == text
        assert json.loads(json.dumps(writing.completions[0].text)) == text
        assert writing.completions[0].token_ids == script[:max_tokens]
        assert writing.completions[0].finish_reason == "length"


def test_a_longer_text_of_the_same_seed_begins_with_the_shorter(bytes_only):
    model = model_for(bytes_only)
    texts = [text_of(model, bytes_only, max_tokens=length, seed=4, temperature=1.0).text for length in range(1, 30)]
    assert all(longer.startswith(shorter) for shorter, longer in itertools.pairwise(texts))


@pytest.mark.parametrize("kind", ["bytes_only", "byte_pairs", "metaspace"])
@pytest.mark.parametrize("choice", [{"temperature": 3.0}, {"temperature": 0.0}, {"temperature": 1.0, "top_k": 3}])
@pytest.mark.usefixtures("no_shape_checks")
def test_what_is_written_is_always_text_and_with_raw_it_is_not(request, kind, choice):
    tokenizer = request.getfixturevalue(kind)
    model = model_for(tokenizer)

    def broken(raw):
        config = GenerationConfig(max_tokens=100, num_samples=8, seed=1, raw=raw, **choice)
        return sum(made.text.count("\ufffd") for made in complete(model, tokenizer, ["ab", "a"], config))

    assert broken(raw=False) == 0
    assert broken(raw=True) > 0 or choice["temperature"] == 0.0


@pytest.mark.parametrize("kind", ["bytes_only", "byte_pairs"])
@pytest.mark.usefixtures("no_shape_checks")
def test_every_sequence_of_a_ragged_batch_walks_through_its_own_characters(request, kind):
    tokenizer = request.getfixturevalue(kind)
    model, config = model_for(tokenizer), GenerationConfig(max_tokens=40, temperature=2.0, seed=5, num_samples=3)
    together = complete(model, tokenizer, ["to", "or not to be", ""], config)
    for made in together:
        assert made.text == text_of(model, tokenizer, made.prompt, max_tokens=40, temperature=2.0, seed=made.seed).text


@given(data=st.data())
@pytest.mark.parametrize("kind", ["bytes_only", "metaspace"])
@pytest.mark.usefixtures("no_shape_checks")
def test_a_stream_that_is_cut_anywhere_ends_with_its_last_whole_character(request, kind, data):
    tokenizer = request.getfixturevalue(kind)
    text = data.draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
    if kind == "metaspace":
        ids = {tokenizer.token_bytes(i): i for i in range(tokenizer.vocab_size - 7)}
        token_ids = [ids[bytes([byte])] for byte in text.encode()]
    else:
        token_ids = tokenizer.encode(text).tolist()
    cut = data.draw(st.integers(0, len(token_ids)))
    stream = TextStream(tokenizer)
    given = "".join([*map(stream.push, token_ids[:cut]), stream.finish(broken=False)])
    whole = text.encode()[:cut].decode("utf-8", "ignore")
    assert given == (whole.removeprefix(" ") if kind == "metaspace" else whole)


@pytest.mark.parametrize("max_tokens", [0, 1, 12, 40])
def test_max_tokens_is_what_is_written_not_the_total(model, characters, max_tokens):
    made = text_of(model, characters, max_tokens=max_tokens, temperature=0.0)
    assert made.finish_reason in ("length", "stop")
    assert len(made.token_ids) == max_tokens or made.finish_reason == "stop"


def test_no_tokens_are_an_empty_text(model, characters):
    made = text_of(model, characters, max_tokens=0)
    assert (made.text, made.token_ids, made.finish_reason) == ("", [], "length")


@pytest.mark.parametrize(("length", "fits"), [(15, True), (16, True), (17, False), (48, False)])
def test_a_prompt_past_the_context_is_refused_by_both_numbers_or_cut_and_told(model, characters, length, fits):
    prompt = "be" * (length // 2) + "b" * (length % 2)
    if not fits:
        with pytest.raises(GenerationError, match=f"at most 16 tokens .* but got {length} tokens"):
            text_of(model, characters, prompt)
    made = text_of(model, characters, prompt, truncate_prompt=True)
    assert made.num_dropped == max(0, length - 16)
    assert len(made.prompt_ids) == min(16, length)
    assert made.text == text_of(model, characters, prompt[max(0, length - 16) :]).text


def test_unknown_characters_of_a_prompt_are_named(model, characters):
    with pytest.raises(TokenizerError) as caught:
        text_of(model, characters, "d?Z7")
    assert "'?'" in str(caught.value)
    assert "'Z'" in str(caught.value)
    assert "'t'" not in str(caught.value)


def test_ids_without_a_token_are_never_written(characters):
    sizes = {"vocab_size": characters.vocab_size + 50, "num_unused_ids": 50}
    model = TransformerLM(presets.default(**sizes, d_model=32, num_heads=4, num_layers=1, context_length=16)).eval()
    config = GenerationConfig(temperature=50.0, num_samples=20, max_tokens=30, seed=0)
    for completion in complete(model, characters, ["to"], config):
        assert max(completion.token_ids, default=0) < characters.vocab_size


def test_a_prompt_may_spell_a_special_token_and_stays_text(model, byte_pairs):
    made = complete(model_for(byte_pairs), byte_pairs, ["<|endoftext|>"], GenerationConfig(max_tokens=1, seed=0))[0]
    assert byte_pairs.end_of_text_id not in made.prompt_ids


def test_iterating_twice_writes_the_same_twice(model, characters):
    writing = Writing(model, characters, ["to"], GenerationConfig(max_tokens=8))
    assert list(writing) == list(writing)


def test_many_at_once_write_what_each_writes_alone(model, characters):
    prompts = ["to be", "t", "or not to be: t", "", "question"]
    greedy = {"temperature": 0.0, "max_tokens": 20}
    together = complete(model, characters, prompts, GenerationConfig(**greedy))
    assert [made.text for made in together] == [text_of(model, characters, p, **greedy).text for p in prompts]


def test_for_the_eye_chunks_end_where_a_grapheme_ends(bytes_only):
    text = "e\u0301कि👨\u200d👩\u200d👧!"
    script = bytes_only.encode(text).tolist()
    model = forced(model_for(bytes_only, context_length=64), script)
    writing = Writing(model, bytes_only, ["x"], GenerationConfig(max_tokens=len(script), temperature=0.0))
    assert [chunk for _, chunk in writing.whole_graphemes()] == ["e\u0301", "कि", "👨\u200d👩\u200d👧", "!"]
    assert writing.completions[0].text == text


# --- ids as prompts


def test_ids_are_gone_on_from_as_their_text_is(byte_pairs):
    model, config = model_for(byte_pairs), GenerationConfig(max_tokens=8, seed=1)
    ids = byte_pairs.encode("to be").tolist()
    one, two = complete(model, byte_pairs, ["to be", ids], config)
    assert (one.prompt, one.prompt_ids, one.text) == (two.prompt, two.prompt_ids, two.text)
    assert complete(model, byte_pairs, [torch.tensor(ids)], config)[0] == one


def test_ids_are_read_as_they_are_and_shown_by_name(byte_pairs):
    made = complete(model_for(byte_pairs), byte_pairs, [[byte_pairs.end_of_text_id]], GenerationConfig(max_tokens=1))[0]
    assert (made.prompt, made.prompt_ids) == ("<|endoftext|>", [byte_pairs.end_of_text_id])


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ([], "a prompt of one id or more, but got none"),
        ([-1], "ids from 0 to"),
        ([10**6], "ids from 0 to"),
        ([0] * 17, "a prompt of at most 16 tokens .* but got 17 tokens"),
    ],
)
def test_ids_that_cannot_be_read_are_refused(byte_pairs, prompt, sentence):
    with pytest.raises((GenerationError, TokenizerError), match=sentence):
        Writing(model_for(byte_pairs), byte_pairs, [prompt], GenerationConfig())
