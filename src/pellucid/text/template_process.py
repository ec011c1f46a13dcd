"""Has a chat template rendered by a process of its own, and waits no longer than a chat takes.

The process is started with the first request and lives as long as its `TemplateProcess`. It is in a group of its own,
so that Ctrl-C does not reach it, and it ends when its input does. If it dies of what a template does, that template is
refused, and the next request finds a new process.

In: a template, chats.  Out: texts.  Used by: chat.py.  Read next: chat.py.
"""

import json
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Timer
from typing import Any, cast

from pellucid.errors import ModelFileError, TokenizerError

LENGTH_BYTES = 8
"""As in template_worker.py, which is a program of its own."""

WORKER = Path(__file__).with_name("template_worker.py")

PATIENCE = 60.0
"""Seconds until a process is given up that has no clock of its own, or that was kept waiting by a busy machine."""

LONGEST_REASON = 300
"""Characters that are passed on of what a stranger's template says."""

LONGEST = 256 * 2**20
"""Bytes of an answer; its process has not much more memory."""


class TemplateProcess:
    """A chat template, and the process that renders it.

    Args:
        template: The template.

    Example:
        >>> process = TemplateProcess("{% for one in messages %}{{ one.content | trim }}; {% endfor %}")
        >>> process.rendered([{"messages": [{"content": "to be "}], "now": "2026-01-01", "marks": ["", ""]}])
        ['to be; ']
    """

    def __init__(self, template: str) -> None:
        self._template = template
        self._worker: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def rendered(self, chats: Sequence[Mapping[str, Any]]) -> list[str | TokenizerError]:
        """Render some chats.

        Args:
            chats: Their variables, and `marks` and `now` (see template_worker.py).

        Returns:
            For each its text, or what the template itself says against it.

        Raises:
            ModelFileError: if the template cannot be rendered, or takes more time or memory than a chat needs.
        """
        if find_spec("jinja2") is None:
            raise ModelFileError(
                "the package jinja2, in whose language chat templates are written",
                came="none",
                remedy="install it: pip install jinja2",
            )
        with self._lock:
            answers = self._ask({"template": self._template, "chats": list(chats)})
        return [_text_of(answer) for answer in answers]

    def _ask(self, request: Mapping[str, Any]) -> list[dict[str, str]]:
        worker = self._worker = self._worker or self._started()
        clock = Timer(PATIENCE, worker.kill)
        clock.start()
        answers = None
        try:
            content = json.dumps(request).encode("ascii")
            stream = cast(Any, worker.stdin)
            stream.write(len(content).to_bytes(LENGTH_BYTES, "little") + content)
            stream.flush()
            length = int.from_bytes(cast(Any, worker.stdout).read(LENGTH_BYTES), "little")
            if 0 < length <= LONGEST:
                answers = json.loads(cast(Any, worker.stdout).read(length))
        except (OSError, ValueError):
            pass
        finally:
            clock.cancel()
            if answers is None:  # it died, or we were interrupted: what it says now would answer another request
                self._worker = None
                _end(worker)
        if answers is None:
            raise ModelFileError(
                "a chat template that is rendered at once",
                came="one that takes more time or memory than any chat needs",
                remedy="use another file of the same model",
            )
        return answers

    def _started(self) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [sys.executable, "-P", str(WORKER)],  # -P: the folder of the file is no place to import from
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        weakref.finalize(self, _end, worker)
        return worker


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.kill()
    worker.wait()
    for stream in (worker.stdin, worker.stdout):
        with suppress(OSError):  # what was not yet written is not wanted
            cast(Any, stream).close()


def _text_of(answer: Mapping[str, str]) -> str | TokenizerError:
    if "failed" in answer:
        raise ModelFileError(
            "a chat template that can be rendered",
            came=f"one that fails: {_cropped(answer['failed'])}",
            remedy="use another file of the same model",
        )
    if "refused" in answer:
        return TokenizerError(
            "a chat that the model's template takes",
            came=f"its refusal: {_cropped(answer['refused'])}",
            remedy="change the messages, or their order",
        )
    return answer["text"]


def _cropped(reason: str) -> str:
    return " ".join(reason.split())[:LONGEST_REASON].rstrip(".")
