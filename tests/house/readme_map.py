"""The map in the README, drawn from the tree: floors from the lowest up, each clause its file's own first line.

In: the working tree.  Out: `drawn_map`, `written_map`; run as a program it rewrites the README (`make map`).
Used by: test_map.py, the Makefile.  Read next: source_tree.py.
"""

import re
import sys
import tomllib
from pathlib import Path

from tests.house.source_tree import PACKAGE, ROOT, Source, sources

README = ROOT / "README.md"
FENCE = re.compile(r"(?<=<!-- map: written by `make map` -->\n```text\n).*?(?=```\n)", re.DOTALL)
# What is not Python says what it is here; only what exists is drawn.
CLAUSES = {
    "README.md": "this page",
    "CONTRIBUTING.md": "how the house works: rules, checks, how to add a part",
    "CHANGELOG.md": "what changed, for those who use it",
    "LICENSE": "Apache-2.0",
    "pyproject.toml": "the package, its dependencies, its linters",
    "constraints.txt": "every version it is tested with",
    "conftest.py": "tells every test run what checks annotations",
    "Makefile": "demo, test, check and what else there is to do",
    ".ci/run": "what runs before a change lands",
    "docs/decisions/": "why things are as they are, a short note each",
    "docs/log.md": "what was tried and what it did, failures included",
    "docs/": "pages to read; their Python runs as tests",
    "recipes/": "runs worth repeating, as TOML",
    "examples/": "small programs that use pellucid",
    "benchmarks/": "measurements, each with the command that made it",
    "src/pellucid/": "the package, from the lowest floor to the highest: a line uses only lines above it",
    "tests/": "mirrors src/pellucid path for path, and besides:",
    "tests/whole/": "behaviour across rooms",
    "tests/house/": "the rules of this house",
}
WIDTH = 38  # columns of the tree; clauses start behind it
CLAUSE_LENGTH = 82  # with the tree's columns, what fits beside each other on a page
TOO_SHORT = 20  # "xz" says nothing: rather the whole line


def drawn_map() -> str:
    """The map as the tree has it."""
    lines = [_line(0, name) for name in CLAUSES if "/" not in name and (ROOT / name).is_file()]
    lines += [_line(0, ".ci/run")] if (ROOT / ".ci/run").exists() else []
    lines += [_line(0, "src/pellucid/"), *_package_lines()]
    lines += [_line(0, "tests/")] + [
        _line(1, name) for name in ("tests/whole/", "tests/house/") if (ROOT / name).exists()
    ]
    for folder in ("docs/", "recipes/", "examples/", "benchmarks/"):
        if (ROOT / folder).exists():
            lines.append(_line(0, folder))
            lines += [
                _line(1, name)
                for name in CLAUSES
                if name.startswith(folder) and name != folder
                if (ROOT / name).exists()
            ]
    return "\n".join(lines) + "\n"


def written_map(readme: str) -> str:
    """The map as the README has it; "" if it has none."""
    found = FENCE.search(readme)
    return found[0] if found else ""


def _line(depth: int, name: str, clause: str | None = None) -> str:
    short = name.removeprefix("tests/").removeprefix("docs/") if depth else name
    return f"{'    ' * depth + short:<{WIDTH - 2}}  {clause or CLAUSES[name]}"


def _package_lines() -> list[str]:
    """Rooms and files from the lowest floor up; in a room, a file after those it imports."""
    lines = []
    for cell in _floors():
        if (PACKAGE / f"{cell}.py").exists():
            lines.append(_line(1, f"{cell}.py", _clause(Source(PACKAGE / f"{cell}.py"))))
        elif (PACKAGE / cell / "__init__.py").exists():
            lines.append(_line(1, f"{cell}/", _clause(Source(PACKAGE / cell / "__init__.py"))))
            lines += [_line(2, source.path.name, _clause(source)) for source in _reading_order(PACKAGE / cell)]
    return lines


def _floors() -> list[str]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    return [cell.strip("() ") for row in reversed(contracts[0]["layers"]) for cell in row.split("|")]


def _reading_order(room: Path) -> list[Source]:
    """As the files say themselves ("Read next: x.py"), except that none comes before one that it imports."""
    waiting = {source.path.name: source for source in sources(room) if source.path.name != "__init__.py"}
    placed: list[Source] = []
    latest = Source(room / "__init__.py")
    while waiting:
        free = [
            source for source in waiting.values() if not _imported_files(source) & (waiting.keys() - {source.path.name})
        ]
        following = re.search(r"Read next:\s+(\w+\.py)", latest.docstring)
        named = [source for source in free if following and source.path.name == following[1]]
        latest = (named or free or list(waiting.values()))[0]
        placed.append(waiting.pop(latest.path.name))
    return placed


def _imported_files(source: Source) -> set[str]:
    room = source.module.rpartition(".")[0] + "."
    return {f"{name.removeprefix(room).split('.')[0]}.py" for _, name in source.imports() if name.startswith(room)}


def _clause(source: Source) -> str:
    """The first line of a file, cut where a pause allows it if it is long."""
    line = source.first_line.strip().rstrip(".") or "(no docstring)"
    pauses = [
        match.start() for match in re.finditer(r"[,:;.] | \(", line) if TOO_SHORT < match.start() <= CLAUSE_LENGTH
    ]
    return line if len(line) <= CLAUSE_LENGTH or not pauses else line[: pauses[-1]]


if __name__ == "__main__":
    before = README.read_text(encoding="utf-8")
    if not FENCE.search(before):
        sys.exit("README.md has no map: it needs the line <!-- map: written by `make map` --> and a ```text block.")
    README.write_text(FENCE.sub(lambda _: drawn_map(), before), encoding="utf-8")
