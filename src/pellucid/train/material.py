"""Text → what training needs: a tokenizer, both sides of the split as ids, and the yardsticks.

In: `Sources` or a `PreparedText`, a `Recipe`, the run folder's place for tokens.  Out: `Material`.  Used by: run.
Read next: progress.py.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pellucid.convert.any_tokenizer import load_any_tokenizer
from pellucid.data import (
    ChatSources,
    PreparedData,
    PreparedText,
    Sources,
    open_prepared,
    prepare,
    prepare_chats,
    sample_split,
    split_of,
    training_texts,
)
from pellucid.errors import DataError
from pellucid.text import TextTokenizer, character_tokenizer, choose_vocabulary, load_tokenizer, train_byte_pairs
from pellucid.train.events import Noticed, Observer, TextTokenized, YardsticksMeasured
from pellucid.train.recipe import Recipe
from pellucid.train.start import Start
from pellucid.yardsticks import measure_yardsticks

AnyText = Sources | PreparedText | ChatSources
PREPARED = "prepared.json"
"""In a run's place for tokens: the prepared folders that it reads instead, and what is in them."""
MOST_SEARCHED = 2_000_000  # tokens: copied passages are looked for in so many, about two seconds


@dataclass(frozen=True)
class Material:
    """Everything made from the text."""

    tokenizer: TextTokenizer
    data: PreparedData
    end_ids: frozenset[int] = frozenset()
    """Tokens that end answers, of chats."""
    asked: str = ""
    """Of chats, what a person says before the answer that samples are."""

    def question(self) -> list[int]:
        """Of chats, the ids of the first held-out conversation up to its first answer; if none is held out, of the
        first to learn from."""
        tokens = self.data.held_out_chats or self.data.train
        first, answer = int(tokens.documents[0, 0]) + 1, int(tokens.answers[0, 0])
        return tokens.read(first, answer).tolist()

    @property
    def bits_per_nat(self) -> float:
        """Bits per character that one nat per token comes to, on the training side."""
        return 1 / (0.6931471805599453 * self.data.characters_per_token)  # log 2

    @property
    def searched_share(self) -> float:
        """The part of the training side that `training_text` gives."""
        return 1 / self._every

    @property
    def _every(self) -> int:
        return -(-self.data.training_tokens // MOST_SEARCHED)

    def training_text(self, tokens_at_once: int = 1 << 16) -> Iterator[str]:
        """The training side, written back from its ids; of a long one every k-th block of tokens."""
        for tokens in self.data.parts:
            for start in range(0, len(tokens), tokens_at_once * self._every):
                yield self.tokenizer.decode(tokens.read(start, min(start + tokens_at_once, len(tokens))))

    def held_out_texts(self, characters: int) -> list[str]:
        """The beginning of each held-out passage, as the model knows it: what it cannot write is not there."""
        pieces = (self.tokenizer.decode(piece.tokens[: characters + 1]) for piece in self.data.held_out)
        return [text[:characters] for text in pieces]


def make_material(
    sources: AnyText,
    recipe: Recipe,
    folder: Path,
    observe: Observer,
    start: Start | None = None,
) -> Material:
    """Learn or load the tokenizer, and encode the text into token files in `folder`; or open what is prepared.

    Args:
        sources: The text.
        recipe: Says which tokenizer, and how much of the text.
        folder: Where the token files go.
        observe: Hears what became of it.
        start: The model to go on from, if the run does: its tokenizer is used.

    Raises:
        DataError: if what is prepared has another tokenizer than the model.
    """
    tokenizer, end_ids = (start.tokenizer, start.end_ids) if start else (None, frozenset())
    asked = ""
    if isinstance(sources, ChatSources):
        assert start is not None, "a request for chats names the model"
        tokenizer, reason = start.tokenizer, ""
        context_length = recipe.model["context_length"]
        chats = prepare_chats(sources, start.template(), tokenizer, folder, context_length=context_length)
        data, end_ids, asked = chats.data, chats.end_ids, chats.question
        for note in chats.notes:
            observe(Noticed(step=0, kind="chats", sentence=note))
    elif isinstance(sources, PreparedText):
        tokenizer, reason = _of_prepared(sources, tokenizer), ""
        data = sources.data(tokenizer)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / PREPARED).write_text(json.dumps(sources.facts(), indent=1), encoding="utf-8")
    else:
        tokenizer, reason = (tokenizer, "") if tokenizer else make_tokenizer(sources, recipe)
        data = prepare(sources, tokenizer, folder, most_characters=recipe.most_characters or math.inf)
    observe(
        TextTokenized(
            kind=tokenizer.kind,
            vocab_size=tokenizer.vocab_size,
            training_tokens=data.training_tokens,
            scored_tokens=data.train.num_scored if data.are_chats else None,
            held_out_tokens=sum(len(piece.tokens) for piece in data.held_out),
            characters_per_token=data.characters_per_token,
            reason=reason,
            text_share=data.training_characters / _training_characters(sources, data),
        )
    )
    return Material(tokenizer, data, end_ids, asked)


def _training_characters(sources: AnyText, data: PreparedData) -> int:
    if isinstance(sources, ChatSources):  # all of them are made ready
        return data.training_characters
    split = sources.split if isinstance(sources, PreparedText) else split_of(sources)
    return sources.characters - split.held_out_characters


def reopen_material(folder: Path, tokenizer_path: Path) -> Material:
    """What `make_material` left in a run folder, or the prepared folders that it names, if they are what they were."""
    tokenizer = load_tokenizer(tokenizer_path)
    if (folder / PREPARED).exists():
        text = PreparedText.reopen(json.loads((folder / PREPARED).read_bytes()))
        return Material(tokenizer, text.data(tokenizer))
    return Material(tokenizer, open_prepared(folder, tokenizer))


def _of_prepared(text: PreparedText, wanted: TextTokenizer | None) -> TextTokenizer:
    """The tokenizer of what is prepared, which must be that of the model to go on from, if there is one."""
    tokenizer = text.tokenizer()
    if wanted is not None and wanted.fingerprint != tokenizer.fingerprint:
        raise DataError(
            f"text prepared with the model's tokenizer ({wanted.vocab_size:,} ids, {wanted.fingerprint[:12]})",
            came=f"another's ({tokenizer.vocab_size:,} ids, {tokenizer.fingerprint[:12]})",
            remedy="prepare it anew with --tokenizer and the model's tokenizer.json, or give the text itself",
        )
    return tokenizer


def make_tokenizer(sources: Sources, recipe: Recipe) -> tuple[TextTokenizer, str]:
    """The tokenizer that a recipe names, or else the text needs, learned on the training side alone; and why that one.

    Nothing is said of one that was asked for and is there as it was.
    """
    if recipe.tokenizer == "characters":
        return character_tokenizer(training_texts(sources)), ""
    if recipe.tokenizer not in (None, "bpe"):
        return load_any_tokenizer(recipe.tokenizer), ""
    texts, asked = training_texts(sources), recipe.vocab_size
    if asked is None:
        may_be_characters = recipe.tokenizer is None
        choice = choose_vocabulary(texts, least=recipe.least_vocab_size, characters_allowed=may_be_characters)
        return choice.tokenizer, choice.reason
    tokenizer = train_byte_pairs(texts, asked)
    return tokenizer, f"the text has no more pairs, though {asked:,} were asked for" * (tokenizer.vocab_size < asked)


def measure(sources: AnyText, observe: Observer) -> YardsticksMeasured | None:
    """What simple predictors make of the held-out text, if there is any; of answers they know nothing."""
    if not sources.held_out_percent or isinstance(sources, ChatSources):
        return None
    sample = sources.sample() if isinstance(sources, PreparedText) else sample_split(sources)
    measured = YardsticksMeasured.of(measure_yardsticks(sample))
    observe(measured)
    return measured
