"""What happens during a run, as data: training writes nothing to a screen, it emits these.

Whoever listens decides what to do: the command line prints, the run folder keeps each event as a line of metrics.jsonl,
a test collects them. An event says everything a listener may need, so none asks back.

In: facts.  Out: frozen records.  Used by: all of this room, the command line, the report.  Read next: one_program.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pellucid.yardsticks import Yardsticks


@dataclass(frozen=True, kw_only=True)
class Event:
    """Anything that happened."""

    def as_json(self) -> dict[str, Any]:
        """The event as metrics.jsonl keeps it: its name, then its fields."""
        return {"event": type(self).__name__, **asdict(self)}


Observer = Callable[[Event], None]


@dataclass(frozen=True, kw_only=True)
class TextRead(Event):
    """The sources have been surveyed."""

    name: str
    documents: int
    characters: int
    distinct_characters: int
    fingerprint: str
    notes: tuple[str, ...] = ()
    are_chats: bool = False
    """Whether its documents are conversations."""


@dataclass(frozen=True, kw_only=True)
class StartOpened(Event):
    """The run begins with a model that has learned already."""

    name: str
    parameters: int
    vocab_size: int
    """How many ids its tokenizer has, new ones included."""
    context_length: int
    new_tokens: tuple[str, ...] = ()
    """Special tokens that it gets."""


@dataclass(frozen=True, kw_only=True)
class TextTokenized(Event):
    """The tokenizer is ready and both sides of the split are ids."""

    kind: str
    vocab_size: int
    training_tokens: int
    held_out_tokens: int
    characters_per_token: float
    """Of those that are learned."""
    scored_tokens: int | None = None
    """Of chats, how many of the training tokens are in answers, and learned."""
    reason: str = ""
    """Why these tokens: the measurement that decided, to be shown after "since"; empty if they were asked for."""
    text_share: float = 1.0
    """The part of the training text that was made ready: less than 1 if the run could not read it all."""


@dataclass(frozen=True, kw_only=True)
class YardsticksMeasured(Event):
    """What simple predictors make of the held-out text, in bits per character."""

    chance: float
    letters: float
    best_ngram: float
    best_ngram_name: str
    xz: float
    note: str = ""
    best_ngram_bits: Sequence[float] = ()
    """Bits on each held-out passage, so that a model can be compared passage by passage."""
    held_out_characters: Sequence[int] = ()
    bytes_per_character: float = 1.0
    """Of the held-out text."""
    unseen: int = 0
    """How many held-out characters the training text never has."""
    escape_bits: float = 0.0
    """What each of them costs the tables, and a model that knows characters alone."""

    @classmethod
    def of(cls, yardsticks: Yardsticks) -> "YardsticksMeasured":
        """The shown ones of `yardsticks`."""
        return cls(
            chance=yardsticks.chance.bits_per_character,
            letters=yardsticks.letters.bits_per_character,
            best_ngram=yardsticks.best_ngram.bits_per_character,
            best_ngram_name=yardsticks.best_ngram.name,
            xz=yardsticks.xz.bits_per_character,
            note=yardsticks.xz.note,
            best_ngram_bits=yardsticks.best_ngram.bits,
            held_out_characters=yardsticks.best_ngram.characters,
            bytes_per_character=yardsticks.bytes_per_character,
            unseen=yardsticks.unseen,
            escape_bits=yardsticks.escape_bits,
        )


@dataclass(frozen=True, kw_only=True)
class CompileBegun(Event):
    """The step is being compiled: what it costs and from what run length on it pays."""

    expected_seconds: float
    pays_after_seconds: float


@dataclass(frozen=True, kw_only=True)
class VariantTried(Event):
    """One way to compute the step was checked and timed. `admitted` says whether it is right; `reason` why not."""

    variant: str
    admitted: bool
    reason: str
    step_seconds: float | None = None
    compile_seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Planned(Event):
    """The run is fixed: from here on it is counted in steps."""

    model: dict[str, Any]
    parameters: int
    trained_parameters: int | None = None
    """How many of them are trained; None: nobody has counted them."""
    batch_size: int
    micro_batch_size: int
    tokens_per_step: int
    steps: int
    epochs: float
    row_length: int | None = None
    """Tokens in a row, where they are fewer than the model can read."""
    epochs_of_parts: tuple[float, ...] = ()
    """Of several texts that are mixed, how often each is read."""
    packed_documents: int = 0
    """Documents that stand in rows with others, and see these; 0 if they are kept apart."""
    step_seconds: float
    variant: str
    threads: int
    device: str
    evaluations: int
    minutes: float | None
    ranks: int = 1
    """Processes that share each step."""
    used_up: bool = False
    """Whether it is the text that ends the run, which would be learned by heart, and not the clock."""
    optimizer: dict[str, Any] = field(default_factory=dict)
    """Rates and decays, with those that follow from how often the text is read."""
    memory_bytes: int = 0
    """What the run is expected to need at most; 0: nobody has estimated it."""
    reach: str = ""
    """What the model can be exported to, in a sentence."""
    out: str


@dataclass(frozen=True, kw_only=True)
class StartScored(Event):
    """What the model that the run begins with makes of the held-out text, before anything is learned from the rest."""

    held_out: float
    """Bits per character."""
    standard_error: float | None
    held_out_even: float
    held_out_odd: float
    passage_bits: Sequence[float]
    passage_characters: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Resumed(Event):
    """A run that was stopped goes on from a checkpoint, everything as it was planned; what came later is forgotten."""

    step: int
    steps: int
    path: str
    """The checkpoint; its own `Saved` is among what is forgotten."""
    variant: str
    out: str
    note: str = ""
    steps_again: int = 0
    """Steps that were saved in a later checkpoint, which is damaged or gone."""


@dataclass(frozen=True, kw_only=True)
class StepDone(Event):
    """An optimizer step. Rates are what this step used; bits per character are of its own batch, before the update.

    `train` is their running mean, which is also the train loss of `Evaluated`.
    """

    step: int
    steps: int
    bits_per_character: float
    train: float | None
    gradient_norm: float
    learning_rates: dict[str, float]
    epoch: float
    tokens_per_second: float
    seconds_left: float
    skipped: bool = False
    not_finite: str = ""
    """Of a skipped step: which module's output or gradient was the first that was not finite, in words."""


@dataclass(frozen=True, kw_only=True)
class Evaluated(Event):
    """The held-out passages were scored. The best step is chosen on the even ones; the odd ones were never asked."""

    step: int
    steps: int
    train: float | None
    held_out: float | None
    """Bits per character; None if nothing is held out."""
    standard_error: float | None
    held_out_even: float | None
    held_out_odd: float | None
    is_best: bool
    seconds: float
    epoch: float = 0.0
    passage_bits: Sequence[float] = ()
    """Bits on each held-out passage, so that runs can be compared passage by passage."""
    passage_characters: Sequence[int] = ()
    """Their lengths."""
    tokens_per_second: float = 0.0
    seconds_left: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Sampled(Event):
    """The model continued the same prompt as every time."""

    step: int
    prompt: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ModuleHealth(Event):
    """What every module looks like after a step, by its address; None where a number is not finite.

    weight, gradient: root mean squares of its own weights and of their gradients, clipped; update_ratio: of the last
    update, divided by that of the weights; activation: root mean square of what it gives (of a block: the residual
    stream after it); entropy: how widely attention looks, in nats, and entropy_ceiling: if it looked at all keys alike.
    """

    step: int
    modules: dict[str, dict[str, float | None]]
    seconds: float
    """What the look cost."""


@dataclass(frozen=True, kw_only=True)
class Noticed(Event):
    """Something in the run's numbers that a person should know as it happens."""

    step: int
    kind: str
    """skipped step, loss spike, gradient norm, overfitting, standstill, or module."""
    sentence: str
    value: float | None = None
    """The number it is about."""
    usual: float | None = None
    """What it usually is, or was at its best."""


@dataclass(frozen=True, kw_only=True)
class Replanned(Event):
    """The machine is faster or slower than the trial said; the number of steps was set anew, once, before the decay."""

    step: int
    old_steps: int
    new_steps: int
    step_seconds: float
    planned_step_seconds: float


@dataclass(frozen=True, kw_only=True)
class MicroBatchHalved(Event):
    """The memory did not suffice, so fewer rows are computed at once; a step has as many tokens as before."""

    step: int
    """The step that it happened in; 0 before the first."""
    micro_batch_size: int
    batch_size: int


@dataclass(frozen=True, kw_only=True)
class Extended(Event):
    """A run goes on to a later last step than it was planned with; the schedule is that of a run of so many steps."""

    step: int
    old_steps: int
    new_steps: int
    old_fraction: float
    """What of the peak rate the next step would have used."""
    new_fraction: float
    """What it uses."""


@dataclass(frozen=True, kw_only=True)
class CoolingDown(Event):
    """Somebody wishes to stop: what is needed to go on is saved at `step`, and the rate falls to its end at `steps`."""

    step: int
    steps: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Saved(Event):
    """A complete checkpoint is on the disk."""

    step: int
    path: str


@dataclass(frozen=True, kw_only=True)
class Finished(Event):
    """The run is over, completed or stopped by a signal; model.safetensors holds the best step."""

    completed: bool
    cooled_from: int | None = None
    """The step from which the rate fell to its end at once, if somebody wished so."""
    step: int
    steps: int
    planned_steps: int
    best_step: int
    held_out: float | None
    """Bits per character; None if nothing is held out."""
    standard_error: float | None
    held_out_even: float | None
    held_out_odd: float | None
    last_held_out: float | None
    train: float | None
    yardsticks: dict[str, Any] = field(default_factory=dict)
    ngram_lead: float = 0.0
    """By how many bits per character the model is better than the best n-gram, passage by passage."""
    ngram_lead_error: float | None = None
    """Its standard error."""
    held_out_characters: int = 0
    """Of the answers, of chats."""
    held_out_tokens: int | None = None
    """Of chats, how many tokens of answers the held-out figure is about."""
    before: float | None = None
    """Held-out bits per character of the model that the run began with."""
    gain: float = 0.0
    """By how many of them the run has made it better, passage by passage."""
    gain_error: float | None = None
    """Its standard error."""
    copied: str = ""
    """The longest passage of the sample that stands in the training text."""
    usually_shared: str = ""
    """The longest passage that ten held-out passages, each as long as the sample, share with the training text."""
    sample: str = ""
    question: str = ""
    """Of chats, what the sample answers."""
    context_length: int = 0
    """Held-out text is scored in windows of so many tokens, none overlapping."""
    d_model: int = 0
    epochs: float = 0.0
    """How often the training text was read."""
    text_share: float = 1.0
    """As in `TextTokenized`."""
    searched_share: float = 1.0
    """The part of the training text in which copied passages were looked for."""
    used_up: bool = False
    """As in `Planned`."""
    minutes: float | None = None
    """As in `Planned`."""
    seconds: float = 0.0
    """From Enter to the last line."""
    training_seconds: float = 0.0
    """Of these, for steps and what stands between them."""
    tokens_per_second: float = 0.0
    skipped_steps: int = 0
    peak_memory_bytes: int | None = None
    """The most memory that the process, or torch on its graphics card, has held."""
    holds_text: bool = True
    """Whether the run folder has the text itself, as ids; a run on a prepared folder has its address."""
    out: str = ""
