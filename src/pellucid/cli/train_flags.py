"""The flags of `pellucid train`.

Model, optimizer and schedule have flags named after the fields of their configurations, with the same help; a flag
that is not given leaves the choice to the planner.

In: words.  Out: `TrainFlags`.  Used by: train.py.  Read next: train_run.py.
"""

import ast
import dataclasses
import inspect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin, get_type_hints

import tyro

from pellucid.cli.arguments import parse
from pellucid.cli.values import Text, WholeNumber, unset
from pellucid.model_config import ModelConfig
from pellucid.run_config import NOT_FOR_PEOPLE, SECTIONS, Settings
from pellucid.training_config import OptimizerConfig, ScheduleConfig, TrainingConfig


def _partial(config: type, left_out: frozenset[str] = frozenset(), *, tell_defaults: bool = False) -> type:
    """A dataclass with the fields of `config`, none of which need be given, each with its docstring as help."""
    hints, helps = get_type_hints(config), field_help(config)
    return dataclasses.make_dataclass(
        f"{config.__name__}Flags",
        [
            (
                one.name,
                *_flag(hints[one.name], helps[one.name], one.default, tell_defaults),
            )
            for one in dataclasses.fields(config)
            if one.name not in left_out
        ],
        kw_only=True,
    )


def _flag(hint: Any, help_text: str, default: Any, tell_default: bool) -> tuple[Any, Any]:
    """Type and default of the flag for a field: what is off unless switched on needs no value."""
    if hint is bool and default is False and tell_default:
        return Annotated[bool, tyro.conf.arg(help=help_text, help_behavior_hint="")], field(default=False)
    shown = default if tell_default else None
    return unset(hint, help_text, shown), field(default=() if get_origin(hint) is tuple else None)


def field_help(config: type) -> dict[str, str]:
    """The docstring under each field of a dataclass."""
    definition = ast.parse(inspect.getsource(config)).body[0]
    assert isinstance(definition, ast.ClassDef)
    helps = {}
    for before, after in itertools.pairwise(definition.body):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                helps[name] = " ".join(text.split())
    return helps


def given(flags: Any) -> dict[str, Any]:
    """What was set on the command line."""
    untouched = {one.name: one.default for one in dataclasses.fields(flags)}
    return {name: value for name, value in vars(flags).items() if value != untouched[name]}


PresetName = Literal["default", "gpt2", "char-gpt"]

if TYPE_CHECKING:
    TrainingFlags = ModelFlags = OptimizerFlags = ScheduleFlags = Any
else:
    TrainingFlags = _partial(TrainingConfig, tell_defaults=True)
    ModelFlags = _partial(ModelConfig, frozenset(name.removeprefix("model.") for name in NOT_FOR_PEOPLE))
    OptimizerFlags = _partial(OptimizerConfig)
    ScheduleFlags = _partial(ScheduleConfig)


@dataclass(kw_only=True)
class TrainFlags:
    """Learn from text: files and folders as they are, or none for Python's own documentation.

    Leaves a run folder with the model, its tokenizer, checkpoints and everything the screen showed. Ctrl-C stops a run
    so that it can go on. The dial is --minutes; everything else is chosen for the text, and may be chosen by you.
    """

    sources: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="[SOURCE ...]", help_behavior_hint="")
    ] = ()
    """Text, code, web pages, .epub, .docx, .odt, .srt, .csv, .jsonl, packed or not; folders of them; prepared ones.
    A recipe (.toml: settings, variants, seeds) may stand before them."""
    training: tyro.conf.OmitArgPrefixes[TrainingFlags] = field(default_factory=TrainingFlags)
    """How long, and how it is computed."""
    out: Text = None
    """The run folder. Default: runs/NAME-01, the next free number."""
    own_code: bool = False
    """Run code that a recipe names, or that lies in own_parts/ of the run to go on with: read it first.
    A FILE.py that you name in a flag needs no such word."""
    from_: Annotated[Text, tyro.conf.arg(name="from", metavar="MODEL")] = None
    """Go on from this model: a run, a Hugging Face folder or a .gguf file. Its shape and tokenizer are kept, and it is
    trained gently; a .jsonl of chats (rows with messages) teaches it to answer."""
    add_token: tuple[str, ...] = ()
    """With --from: a special token that the model gets, such as "<|tool|>". May be said several times."""
    resume: Text = None
    """Go on with this run folder, perhaps to another number of --steps, or for some more --minutes; every other setting
    is the run's own."""
    track: Text = None
    """Also send the metrics to tensorboard, wandb or trackio, or to several of them with commas between."""
    preset: PresetName = "default"
    """The shape of the model: default can be exported anywhere."""
    tokenizer: Text = None
    """char, bpe, or the path of a tokenizer.json. Default: what fits the script and the size of the text."""
    vocab_size: WholeNumber = None
    """How many ids bpe learns. Default: what fits the script and the size of the text."""
    encoding: Text = None
    """The encoding of the files, if it is not UTF-8."""
    text_column: Text = None
    """Which column of .csv and .jsonl files is text. Default: the only one that can be."""
    drop_boilerplate: bool = False
    """Leave out licences around books, page numbers and running heads; they are told in any case."""
    held_out: WholeNumber = None
    """How many percent of the text to hold out, to be scored on. Default: 5; 0 learns from all of it."""
    weights: Text = None
    """Of several prepared folders: in which proportions to mix them, as in 0.7,0.3. Default: as long as they are."""
    model: ModelFlags = field(default_factory=ModelFlags)
    """Fields of the model; what is not given is the preset's and the planner's."""
    optimizer: OptimizerFlags = field(default_factory=OptimizerFlags)
    """Learning rates and what goes with them."""
    schedule: ScheduleFlags = field(default_factory=ScheduleFlags)
    """How the learning rate rises and falls."""


def parse_flags(words: Sequence[str]) -> TrainFlags:
    """The flags in `words`.

    Raises:
        UserError: for flags that do not exist or do not fit.
    """
    return parse(TrainFlags, words, "train")


SPELLED = {"from_": "from"}
"""Settings whose names are no names in Python."""
OUTSIDE_RECIPES = frozenset({"out", "resume", "track", "own_code"})
"""Flags that say where to, and what is allowed, not what."""


def recipe_fields() -> dict[str, Any]:
    """The settings outside sections that a recipe may have, and their types: those that have flags."""
    hints = get_type_hints(TrainFlags)
    own = {name: hint for name, hint in hints.items() if name not in OUTSIDE_RECIPES and name not in SECTIONS}
    return {SPELLED.get(name, name): hint for name, hint in own.items()}


def as_settings(flags: TrainFlags) -> Settings:
    """What was set on the command line, as a recipe says it; where to is left out.

    Example:
        >>> as_settings(parse_flags(["--steps", "3", "--model.norm", "none", "--out", "x"]))
        {'training.steps': 3, 'model.norm': 'none'}
    """
    untouched, settings = TrainFlags(), {}
    for name in recipe_fields():
        field_name = f"{name}_" if f"{name}_" in SPELLED else name
        if getattr(flags, field_name) != getattr(untouched, field_name):
            settings[name] = getattr(flags, field_name)
    for section in SECTIONS:
        settings |= {f"{section}.{name}": value for name, value in given(getattr(flags, section)).items()}
    return settings


def from_settings(settings: Settings, out: str | None = None) -> TrainFlags:
    """The flags that say the same.

    Example:
        >>> from_settings({"preset": "gpt2", "model.norm": "none"}).model.norm
        'none'
    """
    flags = TrainFlags(out=out)
    for name, value in settings.items():
        section, _, field_name = (f"{name}_" if f"{name}_" in SPELLED else name).rpartition(".")
        setattr(getattr(flags, section) if section else flags, field_name, value)
    return flags
