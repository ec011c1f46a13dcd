"""How fast a model writes here, alone and beside its peers: same weights, same prompt, same threads, turn by turn.

    prefill   tokens of the prompt a second, until the first new one is chosen
    decode    new tokens a second after that; each needs every weight once, so memory bounds it

In: a model's path.  Out: a `GenerateReport`.  Used by: the command line.  Read next: ../doctor.py.
"""

import importlib.util
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from pellucid.bench.bandwidth import read_bytes_per_second
from pellucid.bench.rounds import interleave, ratio
from pellucid.bench.writers import LLAMA_CPP, PACKAGES, PELLUCID, TRANSFORMERS, Job, WriterProcess, Written
from pellucid.convert.gguf_writing import write_gguf
from pellucid.convert.huggingface_writing import with_family_for_its_tokenizer, write_hugging_face
from pellucid.convert.outgoing import Outgoing
from pellucid.data import builtin_corpus, training_texts
from pellucid.errors import UserError
from pellucid.loading import Loaded, load
from pellucid.model_config import ModelConfig

PEER_PRECISIONS = {
    TRANSFORMERS: {"float32": "float32", "bfloat16": "bfloat16", "int8": "bfloat16"},
    LLAMA_CPP: {"float32": "float32", "bfloat16": "bfloat16", "int8": "q8_0"},
}
"""What a peer has that comes nearest; `transformers` alone has nothing below 16 bits on a CPU."""

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class GenerateRow:
    """One writer's figures, medians over rounds."""

    writer: str
    precision: str
    prefill_tokens_per_second: float
    decode_tokens_per_second: float
    first_token_seconds: float
    prefill_ratio: float
    """How many times faster ours read the prompt, the median of the rounds."""
    decode_ratio: float
    """The same of writing."""
    bytes_per_token: int
    """What of weights and cache has to be read for a token."""
    share_of_bandwidth: float
    """Those bytes times the tokens a second, of what this machine can read."""
    peak_bytes: int
    opening_seconds: float
    same_tokens: int
    """How many of the new tokens were ours, from the first on."""


@dataclass(frozen=True, kw_only=True)
class GenerateReport:
    """What was measured."""

    model: str
    parameters: int
    prompt_tokens: int
    new_tokens: int
    rounds: int
    threads: int
    bandwidth_bytes_per_second: float
    rows: tuple[GenerateRow, ...]

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def bench_generate(
    path: Path,
    *,
    prompt_tokens: int = 400,
    new_tokens: int = 100,
    precision: str = "auto",
    against: Sequence[str] = (),
    rounds: int = 5,
    say: Say = lambda text: None,
) -> GenerateReport:
    """Measure.

    Args:
        path: A model.
        prompt_tokens: How long the prompt is.
        new_tokens: How many tokens are written; 2 or more.
        precision: What ours is held in.
        against: Peers to measure beside it.
        rounds: How often everyone has a turn.
        say: Hears what is being done.

    Raises:
        UserError: for a peer that is not known or not installed, and for lengths that do not fit the model.
        ModelFileError: for a model that cannot be opened, or that a peer does not have.
    """
    _require_peers(against)
    say(f"Opening {path}")
    loaded = load(path)
    prompt = _prompt(loaded, prompt_tokens, new_tokens)
    config, parameters = loaded.model.config, loaded.model.num_parameters()
    held = precision if precision != "auto" else str(next(loaded.model.parameters()).dtype).removeprefix("torch.")
    about = {"threads": torch.get_num_threads(), "num_positions": prompt_tokens + new_tokens + 8}
    with tempfile.TemporaryDirectory(prefix="pellucid-bench-") as folder:
        jobs = [Job(PELLUCID, str(path), precision, **about)]
        for peer in against:
            theirs = PEER_PRECISIONS[peer][held]
            say(f"Writing the same weights for {peer} in {theirs}")
            jobs.append(Job(peer, str(_for_peer(peer, loaded, theirs, Path(folder))), theirs, **about))
        del loaded
        with ExitStack() as ends:
            writers = [_opened(job, ends, say) for job in jobs]
            taken = _taken(writers, prompt, new_tokens, rounds, say)
            peaks = [writer.peak_bytes() for writer in writers]
    bandwidth = read_bytes_per_second()
    kinds = [held, *(job.precision for job in jobs[1:])]
    sizes = [bytes_per_token(config, parameters, kind, prompt_tokens + new_tokens // 2) for kind in kinds]
    rows = [
        _row(writer, taken, len(prompt), kind=kind, share_of=bandwidth, size=size, peak=peak)
        for writer, kind, size, peak in zip(writers, kinds, sizes, peaks, strict=True)
    ]
    return GenerateReport(
        model=str(path),
        parameters=parameters,
        prompt_tokens=prompt_tokens,
        new_tokens=new_tokens,
        rounds=rounds,
        threads=torch.get_num_threads(),
        bandwidth_bytes_per_second=bandwidth,
        rows=tuple(rows),
    )


def _opened(job: Job, ends: ExitStack, say: Say) -> WriterProcess:
    say(f"Opening it in {job.writer}")
    writer = WriterProcess(job)
    ends.callback(writer.close)
    return writer


def bytes_per_token(config: ModelConfig, parameters: int, kind: str, num_positions: int) -> int:
    """What has to be read for one token: every weight but the rows of other tokens, and the cache.

    Args:
        config: The model's.
        parameters: How many numbers it has.
        kind: What they are held in.
        num_positions: How long the sequence is.

    Example:
        >>> config = ModelConfig(vocab_size=10, d_model=8, num_heads=1, num_layers=1)
        >>> bytes_per_token(config, 1000, "float32", 0)
        3680
    """
    bytes_each = {"float32": 4.0, "bfloat16": 2.0, "int8": 1.0, "q8_0": 34 / 32}[kind]  # q8_0: a scale for each 32
    table = 0 if config.tie_embeddings else config.vocab_size * config.d_model
    d_key = (config.num_kv_heads or config.num_heads) * (config.d_head or 0)
    cache = 2 * config.num_layers * d_key * num_positions
    return int((parameters - table) * bytes_each + cache * (2 if kind in ("bfloat16", "q8_0") else 4))


def _taken(
    writers: list[WriterProcess], prompt: list[int], new_tokens: int, rounds: int, say: Say
) -> dict[str, list[Written]]:
    for writer in writers:
        say(f"Warming up {writer.job.writer}")
        writer.write(prompt, 2)
    taken: dict[str, list[Written]] = {writer.job.writer: [] for writer in writers}

    def turn(writer: WriterProcess) -> float:
        taken[writer.job.writer].append(writer.write(prompt, new_tokens))
        return 0.0

    say(f"Measuring, {rounds} rounds")
    interleave({writer.job.writer: lambda writer=writer: turn(writer) for writer in writers}, rounds)
    return taken


def _row(
    writer: WriterProcess,
    taken: dict[str, list[Written]],
    prompt_tokens: int,
    *,
    kind: str,
    size: int,
    share_of: float,
    peak: int,
) -> GenerateRow:
    own, mine = taken[PELLUCID], taken[writer.job.writer]
    first, rest = (median(getattr(one, name) for one in mine) for name in ("first_seconds", "rest_seconds"))
    ids = own[0].token_ids
    same = next((n for n, pair in enumerate(zip(ids, mine[0].token_ids, strict=True)) if pair[0] != pair[1]), len(ids))
    return GenerateRow(
        writer=writer.job.writer,
        precision=kind,
        prefill_tokens_per_second=prompt_tokens / first,
        decode_tokens_per_second=1 / rest,
        first_token_seconds=first,
        prefill_ratio=ratio([one.first_seconds for one in mine], [one.first_seconds for one in own]),
        decode_ratio=ratio([one.rest_seconds for one in mine], [one.rest_seconds for one in own]),
        bytes_per_token=size,
        share_of_bandwidth=size / rest / share_of,
        peak_bytes=peak,
        opening_seconds=writer.opening_seconds,
        same_tokens=same,
    )


def _prompt(loaded: Loaded, prompt_tokens: int, new_tokens: int) -> list[int]:
    """Ids of a text that every Python carries, from its beginning."""
    context_length = loaded.model.config.context_length
    if prompt_tokens < 1 or new_tokens < 2 or prompt_tokens + new_tokens > context_length:
        raise UserError(
            f"1 or more prompt tokens and 2 or more new ones, at most {context_length:,} together (its context)",
            came=f"{prompt_tokens:,} and {new_tokens:,}",
            remedy="choose others with --prompt-tokens and --new-tokens",
        )
    text = "".join(training_texts(builtin_corpus()))[: 20 * prompt_tokens]
    text = text.translate(dict.fromkeys(map(ord, loaded.tokenizer.unknown_characters(text))))
    ids = [*loaded.tokenizer.beginning_ids, *loaded.tokenizer.encode(text).tolist()] or [loaded.tokenizer.start_id]
    return (ids * (prompt_tokens // len(ids) + 1))[:prompt_tokens]


def _require_peers(against: Sequence[str]) -> None:
    for peer in against:
        if peer not in PACKAGES:
            known = ", ".join(PACKAGES)
            raise UserError(f"peers among {known}", came=repr(peer), remedy="separate several with commas")
        if importlib.util.find_spec(PACKAGES[peer]) is None:
            package = "llama-cpp-python" if peer == LLAMA_CPP else peer
            raise UserError(f"{peer} to be installed", came="none", remedy=f"pip install {package}, or leave it out")


def _for_peer(peer: str, loaded: Loaded, precision: str, folder: Path) -> Path:
    """The model as the peer opens it."""
    name = {"name": "model", "end_ids": loaded.end_ids, "chat_template": loaded.chat_template}
    outgoing = Outgoing.of(loaded.model, loaded.tokenizer, **name)
    if peer == LLAMA_CPP:
        write_gguf(folder / "model.gguf", outgoing, precision)
        return folder / "model.gguf"
    place = folder / "hugging-face"
    place.mkdir()
    write_hugging_face(place, with_family_for_its_tokenizer(outgoing), precision)
    return place
