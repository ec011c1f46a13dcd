"""A model at work: from a prompt to what comes next.

Read the files in this order: sampling, native, program, reading, guessing, decode, naive, whole_characters, stream,
conversation. Only the last two know text; the others know ids.

In: a model and prompts.  Out: ids, text.  Used by: load, train, serve, the command line.  Read next: sampling.py.
"""

from pellucid.generate.conversation import Continuation, Conversation, Turn
from pellucid.generate.decode import decode, fit_prompt, visible_from
from pellucid.generate.guessing import Guesser
from pellucid.generate.naive import generate_naively
from pellucid.generate.program import Program
from pellucid.generate.reading import Reading, decode_one, prefill
from pellucid.generate.sampling import draw, keep_min_p, keep_top_k, keep_top_p, likeliest, sample, with_temperature
from pellucid.generate.stream import (
    Completion,
    StopFinder,
    TextStream,
    Writing,
    complete,
    whole_characters,
    whole_text,
)
from pellucid.generate.whole_characters import CharacterStates, WholeCharacters
from pellucid.generation_config import GenerationConfig

__all__ = [
    "CharacterStates",
    "Completion",
    "Continuation",
    "Conversation",
    "GenerationConfig",
    "Guesser",
    "Program",
    "Reading",
    "StopFinder",
    "TextStream",
    "Turn",
    "WholeCharacters",
    "Writing",
    "complete",
    "decode",
    "decode_one",
    "draw",
    "fit_prompt",
    "generate_naively",
    "keep_min_p",
    "keep_top_k",
    "keep_top_p",
    "likeliest",
    "prefill",
    "sample",
    "visible_from",
    "whole_characters",
    "whole_text",
    "with_temperature",
]
