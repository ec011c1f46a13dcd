"""What the process does that renders a chat template: a stranger's program, run where it can do no harm.

A template comes with a model, from whoever made it, and Jinja is a language: it can loop for ever, fill the memory, and
try to break out of its sandbox. So it runs in a process of its own, which, before it looks at a template, gives up what
a renderer needs not: files, other processes, its environment, and time and memory beyond what a chat takes.

The file is run as it stands and imports nothing of pellucid, so that it starts in a tenth of a second. Frames go both
ways: eight bytes of length, then JSON.

In: templates and chats on standard input.  Out: texts on standard output.
Used by: template_process.py.  Read next: template_process.py.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import Any, BinaryIO

import jinja2
import jinja2.debug
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

try:
    import resource
except ImportError:  # Windows has no limits of this kind; there the other side's clock is the only one
    resource = None

LENGTH_BYTES = 8

MEMORY = 512 * 2**20
"""Bytes of address space. Python and Jinja take 40 MiB of them."""

SECONDS = 3
"""Of processor time for one request. A chat of a megabyte takes some hundredths."""


class Generation(jinja2.ext.Extension):
    """The block `{% generation %}`, by which a template tells what of a chat the assistant says.

    What is in it is rendered between two marks, if there are any.
    """

    tags = {"generation"}  # noqa: RUF012 (Jinja's own way to say it)
    marks: Sequence[str] = ("", "")

    def parse(self, parser: Any) -> jinja2.nodes.Node:
        """Make the block a call around its content."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_marked"), [], [], body).set_lineno(line)

    def _marked(self, caller: Any) -> str:
        return f"{self.marks[0]}{caller()}{self.marks[1]}"


class Dictionary:
    """Jinja's `dict`, without the class behind it."""

    def __call__(self, *pairs: Any, **items: Any) -> dict[Any, Any]:
        """A dictionary of these."""
        return dict(*pairs, **items)


class Namespace(jinja2.utils.Namespace):
    """Jinja's `namespace`, which takes no names that begin with an underscore: Python's insides have such names."""

    def __init__(*pairs: Any, **items: Any) -> None:
        attributes = dict(*pairs[1:], **items)
        for name in attributes:
            _check_name(name)
        jinja2.utils.Namespace.__init__(pairs[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)


class Raised(Exception):
    """The template itself refuses the chat."""


def rendered(template: str, chats: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Render some chats.

    Args:
        template: The template.
        chats: For each its variables, and beside them `marks`, two texts to put around what is generated, and `now`,
            the time in ISO's way.

    Returns:
        For each chat its `text`, or what went wrong: `refused`, in the template's own words, or `failed`, in Jinja's.
    """
    try:
        compiled = _compiled(template)
    except (jinja2.TemplateError, RecursionError, MemoryError, ValueError, SyntaxError) as error:
        return [{"failed": _said(error)} for _ in chats]
    return [_rendered(compiled, dict(chat)) for chat in chats]


def _rendered(compiled: jinja2.Template, chat: dict[str, Any]) -> dict[str, str]:
    Generation.marks = chat.pop("marks")
    now = datetime.fromisoformat(chat.pop("now"))
    try:
        return {"text": compiled.render(**chat, strftime_now=now.strftime)}
    except Raised as error:
        return {"refused": str(error)}
    except Exception as error:  # a template can fail in every way in which Python can
        return {"failed": _said(error)}


@lru_cache(maxsize=2)
def _compiled(template: str) -> jinja2.Template:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    given: dict[str, Any] = environment.globals
    given |= {"raise_exception": _refuse, "dict": Dictionary(), "namespace": Namespace}
    return environment.from_string(template)


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """JSON as it stands; Jinja's own filter writes it for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: Any) -> None:
    raise Raised(message)


def _check_name(name: Any) -> None:
    if str(name).startswith("_"):
        raise jinja2.sandbox.SecurityError(f"names in a namespace begin with a letter, unlike {name!r}")


def _said(error: BaseException) -> str:
    return "too much memory" if isinstance(error, MemoryError) else f"{error}" or type(error).__name__


def work() -> None:
    """Render until nothing comes any more."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the process)
    for example in ("{{ strftime_now('%Y') | trim }}", "{{ absent.absent }}", "{{ ('%s' % 1).format() }}", "{% if %}"):
        rendered(example, [{"now": "2026-01-01", "marks": ("", "")}])  # what Python and Jinja import late comes now
    os.environ.clear()
    _limit("RLIMIT_AS", MEMORY)
    _limit("RLIMIT_FSIZE", 0)
    _limit("RLIMIT_NPROC", 0)
    _limit("RLIMIT_NOFILE", 0)
    while (request := _receive(incoming)) is not None:
        if resource is not None:
            used = resource.getrusage(resource.RUSAGE_SELF)
            _limit("RLIMIT_CPU", int(used.ru_utime + used.ru_stime) + SECONDS, soft_only=True)
        answer = json.dumps(rendered(request["template"], request["chats"])).encode("ascii")
        outgoing.write(len(answer).to_bytes(LENGTH_BYTES, "little") + answer)
        outgoing.flush()


def _limit(name: str, value: int, *, soft_only: bool = False) -> None:
    if resource is not None and hasattr(resource, name):
        which = getattr(resource, name)
        with suppress(OSError, ValueError):  # a system may not have the limit, or keep a lower one already
            resource.setrlimit(which, (value, resource.getrlimit(which)[1] if soft_only else value))


def _receive(stream: BinaryIO) -> Any:
    length = int.from_bytes(stream.read(LENGTH_BYTES), "little")
    content = stream.read(length)
    return json.loads(content) if content and len(content) == length else None


if __name__ == "__main__":
    work()
