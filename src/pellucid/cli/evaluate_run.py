"""`pellucid evaluate`, carried out: opens the model and the text, has them scored, and says what came out.

In: `EvaluateFlags`.  Out: lines, JSON, a page.  Used by: evaluate.py.  Read next: evaluate_findings.py.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import pellucid
from pellucid.checkpoint import RunFolder
from pellucid.cli.arguments import text_from_stdin
from pellucid.cli.evaluate_findings import Findings
from pellucid.cli.evaluate_flags import EvaluateFlags
from pellucid.cli.evaluate_lines import NAME_CELLS, as_json, lines
from pellucid.cli.evaluate_page import check_page, write_page
from pellucid.cli.evaluate_progress import ReadingProgress
from pellucid.cli.printable import printable_json
from pellucid.cli.quoting import one_line, shown
from pellucid.data import Document, PreparedData, Sources, are_chats, escape_bits, open_sources, sources_of_texts
from pellucid.errors import RunFolderError, UserError
from pellucid.float32 import fast_float32
from pellucid.inspection import (
    Parts,
    ScoredDocument,
    TextScore,
    default_stride,
    score_answers,
    score_documents,
    score_passages,
)
from pellucid.loading import Loaded
from pellucid.quantize import Int8Linear
from pellucid.train.device import Capabilities, check_device
from pellucid.train.material import Material, reopen_material
from pellucid.yardsticks import Score, measure_beside, share_known

MOST_TRAINING = 2_500_000  # characters of the run's own text that tables are made of: about three seconds
MOST_MEASURED = 5_000_000  # characters of the text that yardsticks are measured on


def carry_out(flags: EvaluateFlags) -> None:
    """Score, and tell."""
    if flags.tokens:
        check_page(Path(flags.tokens))
    loaded = pellucid.load(
        flags.run,
        device=check_device(flags.device, Capabilities.of_this_machine()),
        own_code=flags.own_code,
        precision=flags.precision,
    )
    _tell(loaded.notes, flags)
    with fast_float32():
        findings, scored, again = (_on_files if flags.files else _on_held_out)(flags, loaded)
        if flags.tokens:
            write_page(Path(flags.tokens), findings, scored, loaded)
        if flags.precision != "auto":
            held_in = _number_type(loaded)
            del loaded  # never are both in memory
            findings = replace(findings, as_stored=_as_stored(flags, held_in, again))
    if flags.json:
        print(printable_json(as_json(findings) | {"page": flags.tokens}))
        return
    for line in lines(findings):
        print(shown(line, isolate=sys.stdout.isatty()))
    if flags.tokens:
        page = one_line(flags.tokens, NAME_CELLS)
        print(shown(f"Every token's surprise: {page}. The page holds the text: share it with care.", isolate=False))


def _number_type(loaded: Loaded) -> torch.dtype:
    """What its matrices are held in."""
    head = loaded.model.lm_head
    return head.integers.dtype if isinstance(head, Int8Linear) else head.weight.dtype


def _as_stored(flags: EvaluateFlags, held_in: torch.dtype, score: Callable[[Loaded], Score]) -> Score | None:
    """The score with the weights as they are stored; None if they were held in that."""
    stored = pellucid.load(
        flags.run, device=check_device(flags.device, Capabilities.of_this_machine()), own_code=flags.own_code
    )
    if _number_type(stored) == held_in:
        return None
    if not flags.json:
        print("The same once more, with the weights as they are stored.", file=sys.stderr)
    return score(stored)


def _on_files(flags: EvaluateFlags, loaded: Loaded) -> tuple[Findings, list[ScoredDocument], Callable[[Loaded], Score]]:
    """The figures on files; the documents themselves if a page is to show them; how another model is scored on them."""
    sources, notes = _sources(flags), list[str]()
    material = _material(flags.run, notes)
    if material and material.data.are_chats:  # tables of chats say nothing of a text
        material = None
    notes = [*sources.notes, *notes]
    _tell(notes, flags)
    # A model without its own text is charged as if that had been as long as this one.
    price = material.data.escape_bits if material else escape_bits(sources.characters, loaded.tokenizer.vocab_size)
    parts, scores, kept = Parts.of(sources.documents.characters.tolist()), list[TextScore](), list[ScoredDocument]()

    def passing(documents: Iterable[ScoredDocument]) -> Iterator[ScoredDocument]:
        for document in documents:
            scores.append(document.score)
            if flags.tokens:
                kept.append(document)
            yield document

    def score(other: Loaded, passing: Callable = iter) -> Score:
        with ReadingProgress(sources.characters, "characters", quiet=flags.json) as progress:
            how = {"escape_bits": price, "stride": flags.stride, "on_progress": progress}
            bits = parts.bits(passing(score_documents(other.model, other.tokenizer, sources, **how)))
        return Score("model", bits, parts.characters)

    begun = time.monotonic()
    scored = score(loaded, passing)
    seconds = time.monotonic() - begun
    yardsticks, known = _beside(sources, parts, material)
    findings = Findings(
        model=flags.run,
        documents=tuple(scores),
        score=scored,
        precision=flags.precision,
        parts=parts.kind,
        yardsticks=tuple(yardsticks),
        context_length=loaded.model.config.context_length,
        stride=flags.stride or default_stride(loaded.model.config),
        held_out=False,
        escape_bits=price,
        known=known,
        notes=(*loaded.notes, *notes),
        seconds=seconds,
    )
    return findings, kept, score


def _on_held_out(
    flags: EvaluateFlags, loaded: Loaded
) -> tuple[Findings, list[ScoredDocument], Callable[[Loaded], Score]]:
    """The same of the run's own held-out passages, as in training."""
    material = _material(flags.run, None)
    if material is None or not material.data.held_out:
        raise RunFolderError(
            f"held-out passages in '{flags.run}'",
            came="none: it has no tokens/" if material is None else "none: everything was for training",
            remedy=f"name a text, as in pellucid evaluate {flags.run} other.txt",
        )
    data, context_length = material.data, loaded.model.config.context_length
    if data.are_chats:
        return _on_answers(flags, loaded, data)
    stride = context_length if flags.stride is None else flags.stride
    tokens = sum(len(piece.tokens) - 1 for piece in data.held_out)

    def documents(other: Loaded) -> list[ScoredDocument]:
        with ReadingProgress(tokens, "tokens", quiet=flags.json) as progress:
            how = {"escape_bits": data.escape_bits, "stride": stride, "on_progress": progress}
            return score_passages(other.model, other.tokenizer, data.held_out, **how)

    def score(other: Loaded) -> Score:
        return _of_passages([document.score for document in documents(other)])

    begun = time.monotonic()
    scored = documents(loaded)
    scores = tuple(document.score for document in scored)
    how = {"parts": "passages", "yardsticks": tuple(_recorded(loaded)), "context_length": context_length}
    return _held_out(flags, loaded, data, scores, begun, stride=stride, **how), scored, score


def _on_answers(
    flags: EvaluateFlags, loaded: Loaded, data: PreparedData
) -> tuple[Findings, list[ScoredDocument], Callable[[Loaded], Score]]:
    """The same of a run that learned from chats: of the answers in the conversations that it held out."""
    if flags.stride is not None or flags.tokens:
        raise UserError(
            "no --stride and no --tokens where answers in chats are scored",
            came="one of them",
            remedy="leave it out, or name a text",
        )
    context_length = loaded.facts["config"]["model"].get("context_length", loaded.model.config.context_length)

    def scores_of(other: Loaded) -> tuple[TextScore, ...]:
        chats = data.held_out_chats
        assert chats is not None, "prepared chats that hold something out have a file of it"
        how = {"context_length": context_length}
        return tuple(score_answers(other.model, other.tokenizer, chats, data.held_out, **how))

    begun = time.monotonic()
    scores = scores_of(loaded)
    how = {"parts": "groups of conversations", "yardsticks": (), "context_length": context_length, "of_answers": True}
    findings = _held_out(flags, loaded, data, scores, begun, stride=context_length, **how)
    return findings, [], lambda other: _of_passages(scores_of(other))


def _held_out(
    flags: EvaluateFlags,
    loaded: Loaded,
    data: PreparedData,
    scores: tuple[TextScore, ...],
    begun: float,
    **how: Any,
) -> Findings:
    """The figures of what a run held out."""
    return Findings(
        model=flags.run,
        documents=scores,
        score=_of_passages(scores),
        precision=flags.precision,
        held_out=True,
        escape_bits=data.escape_bits,
        notes=loaded.notes,
        seconds=time.monotonic() - begun,
        **how,
    )


def _of_passages(scores: Sequence[TextScore]) -> Score:
    return Score("model", tuple(one.bits for one in scores), tuple(one.characters for one in scores))


def _sources(flags: EvaluateFlags) -> Sources:
    if chats := [file for file in flags.files if are_chats(Path(file))]:
        raise UserError(
            "text to score",
            came=f"chats, in {chats[0]}",
            remedy="a run that learned from chats is scored on the"
            " answers it held out by pellucid evaluate RUN alone; for any other model save the answers as text",
        )
    if "-" not in flags.files:
        return open_sources(flags.files, encoding=flags.encoding, text_column=flags.text_column)
    if len(flags.files) > 1:
        raise UserError("- alone, or files", came="both", remedy="score standard input by itself")
    return sources_of_texts([Document("standard input", text_from_stdin())])


def _material(run: str, notes: list[str] | None) -> Material | None:
    """The run's own text, if it is there. If it is damaged, `notes` says so; without notes that is an error."""
    if not (Path(run) / "run.json").exists():
        return None
    folder = RunFolder.open(run)
    if not folder.tokens_path.is_dir() or not any(folder.tokens_path.iterdir()):
        return None
    try:
        return reopen_material(folder.tokens_path, folder.tokenizer_path)
    except UserError as error:
        if notes is None:
            raise
        notes.append(f"The run's own text is left aside. {error}")
    return None


def _tell(notes: Iterable[str], flags: EvaluateFlags) -> None:
    if not flags.json:
        for note in notes:
            print(shown(note, isolate=sys.stderr.isatty()), file=sys.stderr)


def _beside(sources: Sources, parts: Parts, material: Material | None) -> tuple[list[Score], float | None]:
    """The yardsticks on a text, of a long one on the beginning of each part; and how much of it was learned from."""
    share = min(1.0, MOST_MEASURED / sources.characters)
    most = None if share == 1 else max(1, int(max(parts.characters) * share))
    texts = [text for text in parts.texts(sources, most_characters=most) if text]
    learned, learned_share = _learned(material) if material else ([], 1.0)
    tables = learned[:: max(1, -(-sum(map(len, learned)) // MOST_TRAINING))]
    share_in_tables = learned_share * sum(map(len, tables)) / max(1, sum(map(len, learned)))
    scores = measure_beside(texts, tables, training_share=share_in_tables)
    if share < 1:
        partly = f"; measured on {sum(map(len, texts)) / sources.characters:.0%} of the text"
        scores = [replace(score, note=score.note + partly) for score in scores]
    return scores, share_known(texts, learned) if learned else None


def _learned(material: Material) -> tuple[list[str], float]:
    """The text that the run learned from, or of a long one blocks from all over it, and which part of it they are."""
    blocks = [block.strip("\ufffd") for block in material.training_text()]  # at its ends a character may be cut
    whole = sum(map(len, blocks)) / max(1, material.data.training_characters)
    return blocks, 1.0 if whole > 0.99 else whole  # characters cut at ends of blocks are no part left out


def _recorded(loaded: Loaded) -> list[Score]:
    """The yardsticks that training measured on the same passages."""
    found: Mapping[str, Any] | None = loaded.facts.get("yardsticks")
    if not found:
        return []
    characters = tuple(found["held_out_characters"])
    total, note = sum(characters), found["note"]
    names = [
        ("chance", "a guess among the characters of the training text"),
        ("letters", "how often each comes, in the training text"),
    ]
    scores = [Score(name, (found[name] * total,), (total,), said) for name, said in names]
    if found["best_ngram_name"] != "letters":
        name, said = found["best_ngram_name"], "a table of the training text; the length that does best here"
        scores.append(Score(name, tuple(found["best_ngram_bits"]), characters, said))
    scores.append(Score("xz after", (found["xz"] * total,), (total,), "xz when it has read the training text before"))
    return [replace(score, note=f"{score.note} ({note})" if note else score.note) for score in scores]
