"""What a flag's value may be: a whole number, a number, text, or one of several words; and how it is refused.

A field that is None unless it is set is the same flag, only that it need not be given: None is not a word to say.

In: a type.  Out: how the parser makes a value of it out of a word.  Used by: arguments, verbs.
Read next: train_flags.py.
"""

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from pellucid.model_config import is_own_part

VALUES = ConstructorRegistry()
"""How the command line reads a value."""

KINDS = {
    int: ("N", "a whole number"),
    float: ("X", "a number"),
    bool: ("True|False", "True or False"),
    str: ("TEXT", "text"),
}


@VALUES.primitive_rule
def value_rule(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec | None:
    """The values of a type, if it is one of `KINDS` or a choice of words, or None beside these."""
    kind = without_none(info.type)
    if words := words_or_own_part(kind):
        expected = " or ".join([*words, "FILE.py:NAME"])
        return _spec(
            "|".join([*words, "FILE.py:NAME"]),
            expected,
            lambda word: word if is_own_part(word) else _one_of(word, words),
        )
    if get_origin(kind) is Literal and all(isinstance(word, str) for word in get_args(kind)):
        words = get_args(kind)
        return _spec("|".join(words), " or ".join(words), lambda word: _one_of(word, words))
    if kind is bool and kind is not info.type:
        return _spec(*KINDS[bool], {"true": True, "false": False}.__getitem__, str.lower)
    if kind in (int, float, str):
        return _spec(*KINDS[kind], kind)
    return None  # a switch without a value, or several values: the parser knows these


def words_or_own_part(hint: Any) -> tuple[str, ...]:
    """The words that a part of a model may be named by, where it may also be a class of one's own; else nothing.

    Example:
        >>> words_or_own_part(Literal["rms", "none"] | str | None), words_or_own_part(str | None)
        (('rms', 'none'), ())
    """
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return get_args(kinds[0]) if kinds[1:] == [str] and get_origin(kinds[0]) is Literal else ()


def _one_of(word: str, words: tuple[str, ...]) -> str:
    return words[words.index(word)]


def without_none(hint: Any) -> Any:
    """`int` of `int | None`; other types as they are.

    Example:
        >>> without_none(int | None), without_none(str)
        (<class 'int'>, <class 'str'>)
    """
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else hint


def _spec(
    metavar: str, expected: str, make: Callable[[str], Any], clean: Callable[[str], str] = str
) -> PrimitiveConstructorSpec:
    def from_words(words: list[str]) -> Any:
        try:
            return make(clean(words[0]))
        except (ValueError, KeyError):
            raise ValueError(f"expected {expected}, but got {words[0]!r}") from None

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=from_words,
        is_instance=lambda value: True,
        str_from_instance=lambda value: ["none" if value is None else str(value)],
    )


def unset(hint: Any, help_text: str = "", default: Any = None) -> Any:
    """The type of a flag that need not be given; its help tells `default`, and never None."""
    told = "" if default in (None, "") else f"(default: {default})"
    how = tyro.conf.arg(help=help_text or None, help_behavior_hint=told)
    return Annotated[hint if get_origin(hint) is tuple else hint | None, how]


if TYPE_CHECKING:
    Text, WholeNumber = str | None, int | None
else:
    Text, WholeNumber = unset(str), unset(int)
