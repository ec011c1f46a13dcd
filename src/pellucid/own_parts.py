"""Parts of one's own: a class in a Python file, read, checked, recorded, and run only for those who say so.

    mine.py:ReGLU ──read──▶ mine.py:ReGLU@SHA256 ──check──▶ nn.own_part.CLASSES          (the name a run's config has)
                                     └──keep──▶ RUN/own_parts/mine-1a2b3c4d.py

Whoever names a file on the command line, or in Python, runs it. A model, a run and a recipe come from anywhere, so what
they name is run only with consent (docs/decisions/0009-code-that-a-model-brings.md).

A part takes the arguments that ours takes in its place, and gives vectors of the shape it was given:

    feed_forward   NAME(d_model, d_ff, bias)         forward(x)
    norm           NAME(d_model, epsilon)            forward(x)
    attention      NAME(config, layer, rotary)       forward(x, *, positions=None, mask=None, cache=None)

In: names of parts.  Out: classes for nn, copies for run folders.  Used by: train, checkpoint, loading, cli.
Read next: nn/own_part.py.
"""

import hashlib
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pellucid.errors import ConfigError, ModelFileError, UserError
from pellucid.model_config import OWN_PART, ModelConfig, is_own_part
from pellucid.nn import KVCache, TransformerLM
from pellucid.nn.own_part import CLASSES

FOLDER = "own_parts"
CONTRACT = {
    "feed_forward": "NAME(d_model, d_ff, bias) with forward(x)",
    "norm": "NAME(d_model, epsilon) with forward(x)",
    "attention": "NAME(config, layer, rotary) with forward(x, *, positions, mask, cache)",
}
SOURCES: dict[str, bytes] = {}
"""By SHA256: the files that this process was told to run, as they were then."""
TOKENS, ROWS, VOCABULARY = 7, 2, 11  # of the model that a part is tried in: little, and no two alike
LONGEST = 1024  # positions in the last try: more takes memory, and shows nothing new
CLOSE = 1e-4  # of the largest number: float32 sums in another order differ by a hundredth of this
Result = TypeVar("Result")


def pinned(model: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a model with each part of one's own read, run, and named by the hash of its file.

    Args:
        model: Fields of `ModelConfig`; to name a file here is to agree to its being run.

    Raises:
        ConfigError: if there is no such file or class, or its code fails; it names the line.
    """
    return {field: _pinned(value) if is_own_part(value) else value for field, value in model.items()}


def allow_kept(config: ModelConfig, folder: Path) -> None:
    """Run the copies that lie beside a model, so that it can be built; to call this is to consent.

    Raises:
        ModelFileError: if a copy is missing or is not what the model was made with.
    """
    for part in config.own_parts.values():
        path, name, sha256 = _apart(part)
        kept = folder / FOLDER / _kept_name(path, sha256)
        try:
            source = kept.read_bytes()
        except OSError as error:
            raise ModelFileError(
                f"the code of {name}, which this model is made with",
                came=f"none at '{kept}'",
                remedy="copy the folder whole",
            ) from error
        if hashlib.sha256(source).hexdigest() != sha256:
            raise ModelFileError(
                f"the code of {name} as the model was made with",
                came=f"a changed file at '{kept}'",
                remedy="put back the file that was saved with it",
            )
        _run(source, kept, name, part)


def keep(config: ModelConfig, folder: Path, write: Callable[[Path, bytes], None]) -> None:
    """Put a copy of the code that a model is made with beside it; `write` writes a file all or nothing."""
    for part in config.own_parts.values():
        path, _, sha256 = _apart(part)
        kept = folder / FOLDER / _kept_name(path, sha256)
        if sha256 in SOURCES and not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            write(kept, SOURCES[sha256])


def blamed(error: BaseException) -> UserError | None:
    """The same as a sentence, if it was raised in the code of a part of one's own."""
    file = _file_of(error)
    if isinstance(error, UserError) or not file:
        return None
    return ConfigError(f"code that runs in {file}", came=_in_words(error, file), remedy="mend it")


@cache
def check(config: ModelConfig) -> None:
    """Try each part of one's own in a small model: shapes, the future, the neighbours in a batch, the cache.

    Raises:
        ConfigError: saying what it does that a part must not do.
    """
    if not config.own_parts:
        return
    small = replace(config, num_layers=1, vocab_size=VOCABULARY, num_unused_ids=0, context_length=TOKENS, dropout=0.0)
    small = replace(small, layer_pattern=(), window=None)
    names = " and ".join(part.partition("@")[0] for part in config.own_parts.values())
    contract = "; ".join(CONTRACT[field] for field in config.own_parts)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = _tried(lambda: TransformerLM(small), names, f"be built: {contract}").eval()
        for field in config.own_parts:
            _check_shape(model, field, names)
        _check_model(model, names)
        whole = replace(small, context_length=min(config.context_length, LONGEST), window=config.window)
        ids = torch.zeros(1, whole.context_length, dtype=torch.long)
        _tried(lambda: TransformerLM(whole).eval()(ids), names, f"run at a length of {whole.context_length:,}")


def _check_shape(model: TransformerLM, field: str, names: str) -> None:
    part = model.final_norm if field == "norm" else getattr(model.blocks[0], field)
    x = torch.randn(ROWS, TOKENS, model.config.d_model)
    y = _tried(lambda: part(x), names, f"take vectors: {CONTRACT[field]}")
    if not isinstance(y, Tensor) or y.shape != x.shape or y.dtype != x.dtype:
        came = f"{tuple(y.shape)} of {y.dtype}" if isinstance(y, Tensor) else type(y).__name__
        raise ConfigError(
            f"{names} to give {tuple(x.shape)} of {x.dtype}, as it was given", came=came, remedy="mend its forward"
        )


def _check_model(model: TransformerLM, names: str) -> None:
    ids = torch.arange(ROWS * TOKENS).reshape(ROWS, TOKENS) % VOCABULARY
    logits = _tried(lambda: model(ids), names, "run in a model")
    _tried(lambda: logits.sum().backward(), names, "let gradients through")
    with torch.no_grad():
        if not torch.isfinite(logits).all():
            raise ConfigError(f"{names} to give finite numbers", came="others", remedy="mend its forward")
        later, other_row = ids.clone(), ids.clone()
        later[:, -1] = (later[:, -1] + 1) % VOCABULARY
        other_row[-1] = (other_row[-1] + 1) % VOCABULARY
        for changed, kept, what in (
            (ids, slice(None), "to give the same for the same"),
            (later, slice(-1), "to look at no later position"),
            (other_row, slice(None), "to treat each row of a batch apart"),
        ):
            rows = slice(-1) if changed is other_row else slice(None)
            _require_close(model(changed)[rows, kept], logits[rows, kept], f"{names} {what}", "mend its forward")
        cached = _tried(lambda: _cached(model, ids), names, "go on from a cache")
        remedy = "write keys and values with cache.write(key, value), attend to what it gives back, and obey the mask"
        _require_close(cached, logits, f"{names} to give the same with a cache, which writing needs", remedy)


def _cached(model: TransformerLM, ids: Tensor) -> Tensor:
    """Logits token by token, as texts are written: the first three at once, then one at a time."""
    cache, given = KVCache(model.config, batch_size=ROWS, capacity=TOKENS), []
    for start, end in [(0, 3), *((place, place + 1) for place in range(3, TOKENS))]:
        given.append(model(ids[:, start:end], cache=cache))
        cache.advance(end - start)
    return torch.cat(given, dim=1)


def _require_close(came: Tensor, expected: Tensor, what: str, remedy: str) -> None:
    largest = float((came - expected).abs().max())
    if not largest <= CLOSE * float(expected.abs().max()):
        raise ConfigError(what, came=f"another result, by {largest:.2g}", remedy=remedy)


def _pinned(part: str) -> str:
    path, name, sha256 = _apart(part)
    if sha256 and part in CLASSES:
        return part
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"a Python file at '{path}'", came=error.strerror or "none", remedy="check the path; write FILE.py:NAME"
        ) from error
    found = hashlib.sha256(source).hexdigest()
    if sha256 not in ("", found):
        raise ConfigError(f"{Path(path).name} with the hash {sha256[:8]}…", came=f"{found[:8]}…: it has been changed",
                          remedy="name it without the hash, to use it as it is now")  # fmt: skip
    whole = f"{Path(path).name}:{name}@{found}"
    _run(source, Path(path), name, whole)
    return whole


def _run(source: bytes, path: Path, name: str, part: str) -> None:
    """Run a file and remember the class that it makes; once, whatever else it is asked for."""
    if part in CLASSES:
        return
    sha256 = _apart(part)[2]
    stem = re.sub(r"\W", "_", path.stem)
    module_name = f"pellucid_own_{stem}_{sha256[:8]}"
    module = sys.modules.get(module_name)
    if module is None:
        module = ModuleType(module_name)
        module.__file__ = str(path.absolute())
        sys.modules[module_name] = module  # where dataclasses and the compiler look for it
        try:
            exec(compile(source, module.__file__, "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            del sys.modules[module_name]
            came = _in_words(error, module.__file__)
            raise ConfigError(f"Python that runs in '{path}'", came=came, remedy="mend it") from error
    kind = getattr(module, name, None)
    if not isinstance(kind, type) or not issubclass(kind, nn.Module):
        classes = [n for n, value in vars(module).items() if _is_part_of(value, module_name)]
        raise ConfigError(
            f"a class {name} in '{path}' that is an nn.Module",
            came="none" if kind is None else "another thing of that name",
            remedy=f"it has {', '.join(classes)}" if classes else "write class NAME(torch.nn.Module)",
        )
    CLASSES[part], SOURCES[sha256] = kind, source


def _is_part_of(value: object, module_name: str) -> bool:
    return isinstance(value, type) and issubclass(value, nn.Module) and value.__module__ == module_name


def _tried(act: Callable[[], Result], names: str, what: str) -> Result:
    """What `act` gives, or what it failed of as a sentence."""
    try:
        return act()
    except Exception as error:
        if isinstance(error, ModelFileError):  # nobody has consented
            raise
        raise ConfigError(f"{names} to {what}", came=_in_words(error, _file_of(error)), remedy="mend it") from error


def _file_of(error: BaseException) -> str:
    """The file of a part of one's own that an error came through, if it did."""
    files = {getattr(sys.modules.get(kind.__module__), "__file__", "") for kind in CLASSES.values()}
    return next((frame.filename for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files), "")


def _in_words(error: BaseException, file: str) -> str:
    """An error of somebody's code on one line, with the line of the file where it came from."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == file else (lines or [None])[-1]
    said = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
    where = f" in line {line}" if line else ""
    return f"{type(error).__name__}{where}: {said}".rstrip(": ")


def _apart(part: str) -> tuple[str, str, str]:
    """Path, name and hash, if there is one."""
    found = OWN_PART.fullmatch(part)
    assert found is not None, part
    return found["path"], found["name"], found["sha256"] or ""


def _kept_name(path: str, sha256: str) -> str:
    """What a copy is called; never a path, whatever a foreign model says."""
    return f"{Path(path).stem}-{sha256[:8]}.py"
