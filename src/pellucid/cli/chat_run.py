"""`pellucid chat`, carried out: opens the model, and lets it talk on the terminal or line by line.

In: `ChatFlags`.  Out: answers on standard output; what is to be said of them on standard error.  Used by: chat.py.
Read next: chat_terminal.py.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pellucid
from pellucid.cli.arguments import text_argument
from pellucid.cli.chat_terminal import Talk, Terminal, told_before, told_ids, written
from pellucid.cli.printable import printable, printable_json
from pellucid.errors import UserError
from pellucid.generate import Continuation, Conversation, Turn
from pellucid.generation_config import GenerationConfig
from pellucid.loading import Loaded
from pellucid.text import ChatTemplate

ONLY_CONTINUES = "This model has no chat template: it does not answer, it only continues what you write."


def carry_out(flags: Any, config: GenerationConfig) -> int:
    """Talk until there is nothing more to say; the exit code."""
    loaded = pellucid.load(flags.model, own_code=flags.own_code, precision=flags.precision)
    for sentence in loaded.notes:
        print(printable(sentence), file=sys.stderr)
    talk = begun(loaded, config)
    if flags.system is not None:
        talk.set_system(text_argument(flags.system))
    if isinstance(talk, Continuation):
        print(ONLY_CONTINUES, file=sys.stderr)
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and not flags.json:
        return Terminal(talk, name=Path(flags.model).name or flags.model, show_ids=flags.show_ids).run()
    if flags.seed is None and flags.temperature > 0 and not flags.json:
        print(f"[seed {talk.config.seed}]", file=sys.stderr)
    for message in _lines():
        turn = talk.ask(message)
        if flags.json:
            for _ in turn.writing:
                pass
            print(printable_json(as_json(turn, show_ids=flags.show_ids)), flush=True)
        else:
            for sentence in [*told_before(turn), *(told_ids(turn) if flags.show_ids else [])]:
                print(printable(sentence), file=sys.stderr, flush=True)
            for text in written(turn):
                print(text, end="", flush=True)
            print(flush=True)
        talk.keep(turn)
    return 0


def begun(loaded: Loaded, config: GenerationConfig) -> Talk:
    """A conversation with a model; with one that has no template, continuations."""
    if loaded.chat_template is None:
        return Continuation(loaded.model, loaded.tokenizer, config, loaded.end_ids)
    template = ChatTemplate(loaded.chat_template, loaded.tokenizer)
    return Conversation(loaded.model, loaded.tokenizer, template, config, loaded.end_ids)


def as_json(turn: Turn, *, show_ids: bool) -> dict[str, Any]:
    """What --json says of an answer."""
    answer = turn.answer
    said = {
        "message": turn.question.content,
        "answer": answer.text,
        "seed": answer.seed,
        "finish_reason": answer.finish_reason,
        "prompt_tokens": len(answer.prompt_ids),
        "completion_tokens": len(answer.token_ids),
        "forgotten_turns": turn.num_forgotten,
    }
    return said | ({"prompt_ids": answer.prompt_ids, "completion_ids": answer.token_ids} if show_ids else {})


def _lines() -> Iterator[str]:
    """The messages on standard input: its lines, but for empty ones, in UTF-8 whatever the locale says.

    Raises:
        UserError: if a line is in another encoding.
    """
    if sys.stdin is None:
        raise UserError("messages on standard input", came="none: it is closed", remedy="pipe them in, one a line")
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            came = f"the byte 0x{error.object[error.start]:02X} in line {number:,}"
            raise UserError("UTF-8 on standard input", came=came, remedy="convert it, say with iconv") from error
        if text.strip():
            yield text
