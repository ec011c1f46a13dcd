"""The repository as the house rules see it: parsed files, counted lines, and the exceptions that decisions grant.

In: the working tree.  Out: `Source`, `sources`, `code_lines`, `granted`, `report`.  Used by: every test of this folder.
Read next: test_floors.py.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "pellucid"
DECISIONS = ROOT / "docs" / "decisions"
SILENT_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Source:
    """One Python file, read and parsed once."""

    path: Path

    @property
    def name(self) -> str:
        """Its path from the repository's root, as messages print it."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def inside(self) -> str:
        """Its path from src/pellucid, or its whole name if it lies elsewhere."""
        return self.path.relative_to(PACKAGE).as_posix() if self.path.is_relative_to(PACKAGE) else self.name

    @property
    def module(self) -> str:
        """Its dotted name: pellucid.nn.rope."""
        parts = self.path.relative_to(PACKAGE.parent).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def code(self) -> frozenset[int]:
        return code_lines(self.text, self.tree)

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.tree) or ""

    @property
    def first_line(self) -> str:
        return self.docstring.partition("\n")[0]

    def at(self, node: ast.AST) -> str:
        """`file:line`, for messages."""
        return f"{self.name}:{getattr(node, 'lineno', 1)}"

    def imports(self) -> Iterator[tuple[ast.stmt, str]]:
        """Every import, hidden ones too, as (statement, dotted name); `from a import b` gives a.b."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                yield from ((node, f"{base}.{alias.name}") for alias in node.names)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.module.split(".") if self.path.name == "__init__.py" else self.module.split(".")[:-1]
        anchor = package[: len(package) - node.level + 1]
        return ".".join([*anchor, node.module] if node.module else anchor)


@cache
def sources(folder: Path = PACKAGE) -> tuple[Source, ...]:
    """The Python files under a folder, in order of their paths."""
    return tuple(Source(path) for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


def code_lines(text: str, tree: ast.AST) -> frozenset[int]:
    """Numbers of the lines that hold code: no docstring (a field's counts as one), comment or blank line."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT_TOKENS:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """Every call with its dotted name ("torch.load"); a call on something else than names has only its last word."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, dotted(node.func)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute; `.c` if what stands before the dot is not a name; "" otherwise."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before and not before.startswith(".") else f".{node.attr}"
    return ""


def exceptions_in(note: str) -> dict[tuple[str, str], str]:
    """What a note permits, as {(rule, path): the rest of the line}, from lines of this form, with a reason:

    Exception: file-lines src/pellucid/convert/names.py 400, because it is a table.
    """
    lines = re.finditer(r"^Exception: (\S+) (\S+?),? (.*because .*)", note, re.MULTILINE)
    return {(line[1], line[2]): line[3] for line in lines}


@cache
def granted() -> dict[tuple[str, str], str]:
    """What all notes of docs/decisions/ permit."""
    return exceptions_in("\n".join(note.read_text(encoding="utf-8") for note in sorted(DECISIONS.glob("*.md"))))


def permitted(rule: str, path: str) -> bool:
    """Whether a decision lets this path off this rule."""
    return (rule, path) in granted()


def limit(rule: str, path: str, default: int) -> int:
    """The budget of a path: the number a decision gives, or the default."""
    number = re.match(r"\d+", granted().get((rule, path), ""))
    return int(number[0]) if number else default


def tracked_files() -> list[Path]:
    """What git tracks; of a tree without git, every file that is not hidden or built."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        names = [name for name in listed.decode("utf-8").split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        tops = [path for path in ROOT.iterdir() if path.name in ("src", "tests", "docs") or path.is_file()]
        return [path for top in tops for path in (top, *top.rglob("*")) if path.is_file()]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def report(rule: str, violations: Iterable[str]) -> None:
    """Fail with the rule as a sentence and every place that breaks it, one a line."""
    if places := list(violations):
        pytest.fail(f"{rule}\n" + "\n".join(f"  {place}" for place in places), pytrace=False)
