"""What is imported is declared, what is declared is explained and pinned."""

import re
import sys
import tomllib

from tests.house.source_tree import DECISIONS, ROOT, report, sources

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED_AS = {"import-linter": "importlinter", "llama-cpp-python": "llama_cpp"}  # where the two names differ


def _names(requirements: list[str]) -> list[str]:
    return [re.match(r"[\w.-]+", requirement)[0].lower() for requirement in requirements]


RUNTIME = _names(PROJECT["dependencies"])
OPTIONAL = [
    name for group, listed in PROJECT["optional-dependencies"].items() if group != "dev" for name in _names(listed)
]
DEVELOPMENT = _names(PROJECT["optional-dependencies"]["dev"])


def test_the_package_imports_only_what_it_declares():
    declared = {IMPORTED_AS.get(name, name).replace("-", "_") for name in RUNTIME + OPTIONAL} | {"pellucid"}
    wrong = [
        f"{source.at(node)}: {name}"
        for source in sources()
        for node, name in source.imports()
        if (top := name.split(".")[0]) not in sys.stdlib_module_names and top not in declared
    ]
    report("src/ imports only declared dependencies (test libraries are oracles, not parts):", wrong)


def test_every_dependency_has_its_line_in_the_decisions():
    text = "\n".join(note.read_text(encoding="utf-8") for note in DECISIONS.glob("*.md"))
    unexplained = [
        name for name in RUNTIME + OPTIONAL + DEVELOPMENT if not re.search(rf"^- `{name}`", text, re.MULTILINE)
    ]
    report("A dependency has a line in docs/decisions/ (what it replaces, its upkeep, its licence):", unexplained)


def test_every_dependency_is_pinned():
    pins = dict(
        re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8").lower(), re.MULTILINE)
    )
    report("constraints.txt pins every dependency:", [name for name in RUNTIME + DEVELOPMENT if name not in pins])
    assert pins["torch"] == "2.13.0"
