"""What a run is made of, composed once: defaults < preset < recipe < flags.

A recipe is a TOML file with the fields that the flags of `pellucid train` have. With `[variants.NAME]` tables and
`seeds` it is several runs, which differ in nothing else:

    sources = ["book.txt"]            seeds = [0, 1, 2]

    [training]                        [variants.baseline]
    steps = 300
                                      [variants.no-norm]
    [model]                           model.norm = "none"
    num_layers = 4

Settings are one flat mapping, {"model.norm": "none", "tokenizer": "bpe"}; what is not in it stays with the preset and
the planner.

In: a TOML file, flags.  Out: `RunConfig`s.  Used by: the command line.  Read next: cli/train_series.py.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from pellucid.errors import ConfigError, PellucidError
from pellucid.model_config import ModelConfig, is_own_part
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig

Settings = dict[str, Any]
SECTIONS = {"training": TrainingConfig, "model": ModelConfig, "optimizer": OptimizerConfig, "schedule": ScheduleConfig}
NOT_FOR_PEOPLE = frozenset({"model.vocab_size", "model.rope_scaling", "model.num_unused_ids"})
"""What follows from the text, or what only an imported model has."""
TABLES = (*SECTIONS, "variants", "seeds")
"""What tells a recipe from another TOML file."""
MOST_RUNS = 1000  # more is a typing error, and a folder that nobody reads
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True)
class RunConfig:
    """One run of a recipe: its name, which is also its folder's, and its settings, flags included."""

    name: str
    variant: str
    seed: int
    settings: Settings


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as it was written, every key known and every value of its kind."""

    path: Path
    settings: Settings
    """What all runs have."""
    variants: Mapping[str, Settings]
    """What each variant has instead; without any, the recipe is one run, or one for each seed."""
    seeds: tuple[int, ...]

    @property
    def is_series(self) -> bool:
        """Whether it is more than a run with settings."""
        return bool(self.variants or self.seeds)

    def runs(self, flags: Settings) -> list[RunConfig]:
        """All runs, seed by seed, so that a series that is stopped early can be compared as far as it went.

        Args:
            flags: Settings that lie over the recipe's; `training.seed` stands for all its seeds.

        Raises:
            ConfigError: if a flag sets what a variant is about, or the runs are not counted in steps.
        """
        for name, variant in self.variants.items():
            if both := sorted(variant.keys() & flags.keys()):
                raise ConfigError(
                    f"flags that leave the variants of {self.path} as they are",
                    came=f"one for {both[0]}, which is what variant {name} is about",
                    remedy="leave the flag out, or take the setting out of the variant",
                )
        common = over(self.settings, flags)
        seeds = self.seeds or (common.get("training.seed", 0),)
        if "training.seed" in flags:
            seeds = (flags["training.seed"],)
        variants = self.variants or {self.path.stem: {}}
        if "training.steps" not in common:
            raise ConfigError(
                "steps in [training], for runs that are to be compared",
                came="minutes, which fit another number of steps into each run",
                remedy="set steps = 300, say, or give --steps",
            )
        return [
            RunConfig(
                name=f"{name}-seed-{seed}",
                variant=name,
                seed=seed,
                settings=common | variant | {"training.seed": seed},
            )
            for seed in seeds
            for name, variant in variants.items()
        ]


def over(lower: Settings, upper: Settings) -> Settings:
    """`upper` put over `lower`; minutes take the place of steps, and steps that of minutes.

    Example:
        >>> over({"training.steps": 300, "preset": "gpt2"}, {"training.minutes": 5.0})
        {'preset': 'gpt2', 'training.minutes': 5.0}
    """
    lengths = {"training.steps", "training.minutes"}
    replaced = lengths if upper.keys() & lengths else set()
    return {name: value for name, value in lower.items() if name not in replaced} | upper


def looks_like_recipe(path: Path) -> bool:
    """Whether a file is a recipe and not a text: its name ends in .toml, and one of `TABLES` stands at its top.

    A file that is no TOML is one if it has a heading of a recipe: its author will want to know where it went wrong.
    """
    if path.suffix != ".toml" or not path.is_file():
        return False
    try:
        content = path.read_bytes().decode()
    except UnicodeDecodeError:
        return False
    try:
        return bool(tomllib.loads(content).keys() & set(TABLES))
    except tomllib.TOMLDecodeError:
        return bool(re.search(rf"^\s*\[+\s*({'|'.join(TABLES)})\s*([].]|$)|^\s*seeds\s*=", content, re.MULTILINE))


def read_recipe(path: Path, top: Mapping[str, Any]) -> RecipeFile:
    """Read a recipe.

    Args:
        path: The file. Paths in it start from its folder.
        top: Settings outside the tables, such as tokenizer, and their types.

    Raises:
        ConfigError: for what is no TOML, an unknown key, a value of another kind; it names the place.
    """
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except UnicodeDecodeError as error:
        raise ConfigError(f"a recipe in UTF-8 in {path}", came=str(error), remedy="save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"TOML in {path}", came=f"a mistake: {error}", remedy="mend that line") from error
    known = dict(top) | _fields_of_sections()
    tables, seeds = content.pop("variants", {}), content.pop("seeds", [])
    place = f"{path}: "
    settings = _with_paths(_settings(content, known, place), path.parent)
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError(f"{place}variants to be tables", came=repr(tables), remedy="write [variants.NAME]")
    variants = {
        _name(name, place): _with_paths(_settings(table, known, f"{place}variants.{name}."), path.parent)
        for name, table in tables.items()
    }
    _require_comparable(variants, place, set(top))
    _require_seeds(seeds, settings, place)
    if len(variants or "1") * len(seeds or "1") > MOST_RUNS:
        raise ConfigError(f"at most {MOST_RUNS:,} runs", came="more", remedy="list fewer variants or seeds")
    return RecipeFile(path, settings, variants, tuple(seeds))


def in_variant(error: PellucidError, run: RunConfig, path: Path) -> PellucidError:
    """The same mistake, with where it was made."""
    return type(error)(error.expected, came=f"{error.came}, in variant {run.variant} of {path}", remedy=error.remedy)


def _fields_of_sections() -> dict[str, Any]:
    every = {
        f"{section}.{name}": hint
        for section, config in SECTIONS.items()
        for name, hint in get_type_hints(config).items()
    }
    return {name: hint for name, hint in every.items() if name not in NOT_FOR_PEOPLE}


def _settings(table: Mapping[str, Any], known: Mapping[str, Any], place: str) -> Settings:
    """The flat mapping of a table, every value converted to its type."""
    settings = {}
    for name, value in _flat(table):
        if name not in known:
            file, _, inside = place.rpartition(": ")
            dotted = isinstance(value, dict) and inside  # [variants.a-0.5] is a table 5 in a table a-0
            remedy = 'put a name that has a dot into quotes: [variants."x-0.5"]' if dotted else _perhaps(name, known)
            raise ConfigError(f"settings that exist in {file}", came=inside + name, remedy=remedy)
        settings[name] = _value(value, known[name], place + name)
    return settings


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        name = name.replace("-", "_")  # as the flags write it
        if name not in SECTIONS:
            yield name, value
        elif isinstance(value, dict):
            yield from ((f"{name}.{field.replace('-', '_')}", inner) for field, inner in value.items())
        else:
            yield f"{name} = {value!r}", value


def _value(value: Any, hint: Any, place: str) -> Any:
    try:
        if str in get_args(hint) and _words(hint) and not is_own_part(value):
            return msgspec.convert(value, get_args(hint)[0])  # one of the words
        return msgspec.convert(value, hint)
    except msgspec.ValidationError:
        expected = f"{place} to be {_kind(hint)}"
        remedy = (
            f"perhaps you meant {close[0]}" if (close := _close(value, _words(hint))) else "choose one of that kind"
        )
        raise ConfigError(expected, came=repr(value), remedy=remedy) from None


def _words(hint: Any) -> list[str]:
    """The words that a value may be."""
    if get_origin(hint) is Literal:
        return [word for word in get_args(hint) if isinstance(word, str)]
    return [word for part in get_args(hint) for word in _words(part)]


def _kind(hint: Any) -> str:
    if words := _words(hint):
        words += ["FILE.py:NAME"] if str in get_args(hint) else []
        return ("a list of " if get_origin(hint) is tuple else "") + " or ".join(words)
    kinds = [KINDS[kind] for kind in (get_args(hint) or (hint,)) if kind in KINDS]
    return ("a list of " if get_origin(hint) in (tuple, list) else "") + (" or ".join(kinds) or str(hint))


def _perhaps(name: str, known: Mapping[str, Any]) -> str:
    """The nearest setting that is known, in its table or another."""
    last = name.rpartition(".")[2]
    elsewhere = [whole for whole in known if whole.rpartition(".")[2] == last]
    close = elsewhere or _close(name, known) or [w for w in known if _close(last, [w.rpartition(".")[2]])]
    return f"perhaps you meant {close[0]}" if close else "pellucid train --help lists them"


def _close(word: object, words: Any) -> list[str]:
    return get_close_matches(word, list(words), n=1) if isinstance(word, str) else []


def _with_paths(settings: Settings, folder: Path) -> Settings:
    """The settings with paths that start where the recipe lies."""
    if "sources" in settings:
        settings["sources"] = tuple(str(folder / source) for source in settings["sources"])
    if settings.get("tokenizer", "").endswith(".json"):
        settings["tokenizer"] = str(folder / settings["tokenizer"])
    if "from" in settings:
        settings["from"] = str(folder / settings["from"])
    return {name: str(folder / value) if is_own_part(value) else value for name, value in settings.items()}


def _name(name: str, place: str) -> str:
    if not re.fullmatch(r"\w[\w.-]{0,59}", name):  # it becomes a folder's, with room for the seed
        raise ConfigError(
            f"{place}a variant's name of letters, digits, dots and hyphens, at most 60, since it names a folder",
            came=repr(name),
            remedy="choose another",
        )
    return name


def _require_comparable(variants: Mapping[str, Settings], place: str, top: set[str]) -> None:
    """Variants share the text, its tokens and its split; and seeds are listed once for all."""
    if len({name.casefold() for name in variants}) < len(variants):
        raise ConfigError(f"{place}names of variants that differ in more than case", came=", ".join(variants),
                          remedy="rename one, or some disks put both into one folder")  # fmt: skip
    for name, variant in variants.items():
        for setting in variant:
            if setting in top - {"preset"}:
                raise ConfigError(
                    f"{place}the same text and tokens for every variant",
                    came=f"{setting} in variant {name}",
                    remedy="set it above the variants, or make another recipe and compare the two",
                )
            if setting in ("training.seed", "training.steps", "training.minutes"):
                raise ConfigError(
                    f"{place}the same seeds and steps for every variant",
                    came=f"{setting} in variant {name}",
                    remedy="set steps in [training], and seeds = [0, 1, 2] at the top",
                )


def _require_seeds(seeds: Any, settings: Settings, place: str) -> None:
    fits = isinstance(seeds, list) and all(type(seed) is int and 0 <= seed < 2**63 for seed in seeds)
    if not fits or len(set(seeds)) < len(seeds):
        raise ConfigError(f"{place}seeds to be different whole numbers from 0", came=repr(seeds),
                          remedy="write seeds = [0, 1, 2]")  # fmt: skip
    if seeds and "training.seed" in settings:
        raise ConfigError(f"{place}seeds or training.seed", came="both", remedy="leave out one of them")
