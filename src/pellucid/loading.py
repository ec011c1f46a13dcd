"""`pellucid.load(path)`: a model and its own tokenizer from wherever they are, ready to write.

    model = pellucid.load("runs/book-01")
    print(model.generate("Once upon a time"))

(The file is not named load.py: importing it would put a module where `pellucid.load`, the function, has to be.)

In: a path.  Out: `Loaded`.  Used by: notebooks, the command line, serve, inspection.  Read next: cli/main.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
import torch

from pellucid import own_parts
from pellucid.checkpoint import RunFolder, read_config, read_model
from pellucid.checkpoint.model_files import FORMAT
from pellucid.convert.beside_weights import read_chat_template
from pellucid.convert.foreign_model import ForeignModel
from pellucid.convert.gguf import open_gguf
from pellucid.convert.huggingface import open_hugging_face
from pellucid.convert.torch_checkpoint import SUFFIXES, open_torch_checkpoint
from pellucid.data import told_differences
from pellucid.errors import GenerationError, ModelFileError, TokenizerError
from pellucid.generate import Completion, GenerationConfig, Writing
from pellucid.generate.stream import Prompt
from pellucid.nn import TransformerLM
from pellucid.quantize import require_precision, with_precision
from pellucid.text import TextTokenizer, load_tokenizer


@dataclass(frozen=True)
class Loaded:
    """A model with its tokenizer and what is known of it.

    Example:
        >>> from pellucid.model_config import ModelConfig
        >>> from pellucid.text import character_tokenizer
        >>> tokenizer = character_tokenizer(["to be or not to be"])
        >>> model = TransformerLM(ModelConfig(vocab_size=tokenizer.vocab_size, d_model=64, num_heads=4)).eval()
        >>> loaded = Loaded(model, tokenizer)
        >>> loaded.generate("to ", max_tokens=5, seed=1) == loaded.generate("to ", max_tokens=5, seed=1)
        True
    """

    model: TransformerLM
    """In evaluation mode."""
    tokenizer: TextTokenizer
    """The very one it was trained with."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the run decided: run.json. Empty for a model without one."""
    end_ids: frozenset[int] = frozenset()
    """Ids that end a text beside the tokenizer's end of text, such as the end of a chat's turn. A run lists its own in
    run.json, under the same name."""
    chat_template: str | None = None
    """How a chat becomes one text, in the words of Jinja, if the model comes with it."""
    source: Path | None = None
    """The folder or file it was read from."""
    notes: tuple[str, ...] = ()
    """Sentences that are to be said of it: what was left out, and why."""

    def generate(self, prompt: str = "", **settings: Any) -> str:
        """What the model writes after a prompt; an empty one begins a document.

        Args:
            prompt: Text to go on from.
            settings: Fields of `GenerationConfig`: max_tokens, temperature, top_k, top_p, min_p, stop, seed, raw.

        Raises:
            GenerationError: for a setting out of its range or a prompt too long.
            TokenizerError: if the prompt has characters that the model does not know, naming them, and those that look
                like them where the model's own text has such.
        """
        config = _config(settings)
        if config.num_samples > 1:
            raise GenerationError(
                "num_samples=1 for generate, which gives one text",
                came=f"num_samples={config.num_samples}",
                remedy="ask complete([prompt], ...), which gives all",
            )
        return self.complete([prompt], config=config)[0].text

    def told(self, prompt: str) -> tuple[str, ...]:
        """Sentences about letters of a prompt that look like others which the model's own text has instead."""
        alphabet = str(self.facts.get("data", {}).get("alphabet", "")) or _alphabet(self.tokenizer)
        return told_differences(prompt, alphabet)

    def complete(self, prompts: list[str], **settings: Any) -> list[Completion]:
        """The same for several prompts side by side, each with all facts: text, ids, seed, why it ended."""
        writing = self.writing(prompts, **settings)
        for _ in writing:
            pass
        return writing.completions

    def stream(self, prompt: str = "", **settings: Any) -> Iterator[str]:
        """The same in pieces as they come, never half a character; joined they are what `generate` gives."""
        writing = self.writing([prompt], **settings)
        return (chunk for number, chunk in writing if number == 0)

    def writing(self, prompts: Sequence[Prompt], **settings: Any) -> Writing:
        """Several texts being written after texts or ids, to be iterated over: (number, chunk)."""
        try:
            return Writing(self.model, self.tokenizer, prompts, _config(settings), self.end_ids)
        except TokenizerError as error:
            told = self.told("\n".join(prompt for prompt in prompts if isinstance(prompt, str)))
            if not told:
                raise
            remedy = "write them as the text does: " + "; ".join(sentence.removesuffix(".") for sentence in told)
            raise TokenizerError(error.expected, came=error.came, remedy=remedy) from None


def load(
    path: str | Path, *, device: torch.device | str = "cpu", own_code: bool = False, precision: str = "auto"
) -> Loaded:
    """Open a model.

    Args:
        path: A run folder; or one with model.safetensors, config.json and tokenizer.json, ours or Hugging Face's; or a
            GGUF file.
        device: Where to put the model.
        own_code: Run the code in its own_parts/, if it was made with parts that somebody wrote.
        precision: What its weights are held in: float32, bfloat16 or int8; auto: as they are stored.

    Raises:
        ModelFileError: if there is no model, or not one that can be read; it says what can. Also if it needs somebody's
            code to be run, and own_code is not said.
        ConfigError: for a precision that there is not.
        TokenizerError: if the tokenizer is missing or is not the model's own.
    """
    if not isinstance(path, str | Path) or not str(path):
        raise ModelFileError("the path of a model folder", came=repr(path), remedy="give one, such as runs/book-01")
    require_precision(precision)
    path = Path(path)
    _refuse_others(path)
    if (foreign := open_foreign(path)) is not None:
        tokenizer = foreign.required_tokenizer()
        model, told = with_precision(foreign.model().to(device), precision)
        notes = (*foreign.notes, *told)
        return Loaded(
            model, tokenizer, end_ids=foreign.end_ids, chat_template=foreign.chat_template, source=path, notes=notes
        )
    is_run = (path / "run.json").exists()
    facts = RunFolder.open(path).facts if is_run else {}
    if is_run and not (path / "model.safetensors").exists():
        raise ModelFileError(
            f"a model in '{path}'", came="a run that has not saved one yet", remedy="wait, or let it train on"
        )
    if own_code:
        own_parts.allow_kept(read_config(path), path)
    model, tokenizer = read_model(path), load_tokenizer(path)
    _require_a_pair(model, tokenizer, facts, path)
    told = facts.get("end_ids")
    told = told if isinstance(told, list) else []
    ends = frozenset(one for one in told if type(one) is int and 0 <= one < tokenizer.vocab_size)
    model, notes = with_precision(model.to(device), precision)
    return Loaded(model, tokenizer, facts, ends, read_chat_template(path), path, notes)


def open_foreign(path: Path) -> ForeignModel | None:
    """The model that somebody else's file or folder holds, before its weights are read; None for one of ours."""
    if _is_gguf(path):
        return open_gguf(path)
    return open_hugging_face(path) if _is_hugging_face(path) else None


def open_foreign_or_checkpoint(path: Path, tokenizer: TextTokenizer | None = None) -> ForeignModel:
    """The model that somebody else's folder, GGUF file or torch checkpoint holds, for making it a run.

    Args:
        path: The folder or file.
        tokenizer: For one that has none of its own, or another.

    Raises:
        ModelFileError: if it holds none that can be read, or is a run already.
        TokenizerError: if its tokenizer is missing or is not the model's own.
    """
    if path.is_file() and path.suffix.lower() in SUFFIXES:
        return open_torch_checkpoint(path, tokenizer)
    _refuse_others(path)
    if (foreign := open_foreign(path)) is None:
        raise ModelFileError(
            "somebody else's model", came=f"'{path}', a model of ours", remedy="use it as it is: every verb takes it"
        )
    return foreign if tokenizer is None else replace(foreign, tokenizer=tokenizer)


def _is_gguf(path: Path) -> bool:
    return path.suffix.lower() == ".gguf" and path.is_file()


def _is_hugging_face(path: Path) -> bool:
    if (path / "run.json").exists():
        return False
    try:
        described = msgspec.json.decode((path / "config.json").read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError):
        return False
    return isinstance(described, dict) and "model_type" in described and described.get("format") != FORMAT


def _alphabet(tokenizer: TextTokenizer) -> str:
    return tokenizer.decode(range(tokenizer.vocab_size)) if tokenizer.kind == "characters" else ""


def _config(settings: Mapping[str, Any]) -> GenerationConfig:
    if settings.keys() == {"config"}:
        return settings["config"]
    known = {field.name for field in fields(GenerationConfig)}
    if unknown := sorted(settings.keys() - known):
        close = get_close_matches(unknown[0], known, n=1)
        remedy = f"perhaps you meant {close[0]}" if close else f"choose among {', '.join(sorted(known))}"
        raise GenerationError("settings of GenerationConfig", came=", ".join(unknown), remedy=remedy)
    return GenerationConfig(**settings)


def _refuse_others(path: Path) -> None:
    """Say what can be opened, before anything is read."""
    supported = "a GGUF file, a folder in Hugging Face's format, or one that `pellucid train` wrote"
    came = None
    if not path.exists():
        came = f"'{path}', where there is nothing"
    elif path.is_file() and not _is_gguf(path):
        came = f"'{path}', a file"
    elif path.is_dir() and not (path / "run.json").exists() and not (path / "config.json").exists():
        came = f"'{path}', a folder without run.json or config.json"
    if came:
        raise ModelFileError("a model folder", came=came, remedy=f"give {supported}, such as runs/book-01")


def _require_a_pair(model: TransformerLM, tokenizer: TextTokenizer, facts: Mapping[str, Any], path: Path) -> None:
    """Refuse a tokenizer of another run: by its size, and by its fingerprint where the run recorded one."""
    num_ids = model.config.vocab_size - model.config.num_unused_ids
    if tokenizer.vocab_size != num_ids:
        raise TokenizerError(
            f"the tokenizer of this model, with {num_ids} ids",
            came=f"one with {tokenizer.vocab_size} ids in '{path}'",
            remedy="put back the tokenizer.json that was saved with the model",
        )
    recorded = facts.get("tokenizer")
    expected = recorded.get("fingerprint") if isinstance(recorded, Mapping) else None
    if expected is not None and expected != tokenizer.fingerprint:
        raise TokenizerError(
            "the tokenizer that the run recorded",
            came=f"another of the same size in '{path}'",
            remedy="put back the tokenizer.json that was saved with the model",
        )
