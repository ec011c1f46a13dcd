"""Who may import whom. The rows of floors are import-linter's (pyproject.toml); here is what it does not say."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.house.source_tree import PACKAGE, ROOT, Source, permitted, report, sources

# What a room must never import, and the files in it that may (README, the flow).
NEVER = [
    ("nn", ("tokenizers", "transformers", "pathlib", "os", "io", "json", "msgspec", "torch.distributed"), ()),
    ("ladder", ("tokenizers", "transformers", "pathlib", "os", "torch.distributed"), ()),
    ("text", ("torch",), ()),
    ("data", ("pellucid.nn", "pellucid.ladder", "pellucid.presets"), ()),
    ("train", ("rich", "pellucid.cli"), ()),
    ("generate", ("pellucid.text",), ("generate/stream.py", "generate/conversation.py")),
]
# Rooms that must not know the terminal: rich and tyro belong to the command line (and run_config's flags).
TERMINAL = ("rich", "tyro")
TERMINAL_ROOMS = ("cli", "run_config.py", "doctor", "doctor.py", "bench", "bench.py", "compare.py")


def _is_in(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def test_no_floor_imports_a_higher_one():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-logo"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    report("Imports point down (lint-imports):", [done.stdout + done.stderr] if done.returncode else [])


def test_every_room_has_a_floor():
    floors = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][
        0
    ]
    known = {cell.strip("() ") for row in floors["layers"] for cell in row.split("|")} | {"__init__", "__main__"}
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    report("Every room stands on a floor of the first contract in pyproject.toml:", sorted(rooms - known))


def test_a_room_never_knows_what_is_not_its_business():
    wrong = [
        f"{source.at(node)} imports {name}; {room}/ must not know {forbidden}"
        for room, forbidden, may in NEVER
        for source in sources()
        if source.inside.split("/")[0] in (room, f"{room}.py") and source.inside not in may
        for node, name in source.imports()
        if _is_in(name, forbidden)
    ]
    report("A room never imports what is not its business:", wrong)


def test_only_the_command_line_knows_the_terminal():
    wrong = [
        f"{source.at(node)} imports {name}"
        for source in sources()
        if source.inside.split("/")[0] not in TERMINAL_ROOMS
        for node, name in source.imports()
        if _is_in(name, TERMINAL)
    ]
    report(f"Only {', '.join(TERMINAL_ROOMS)} import {' or '.join(TERMINAL)}:", wrong)


def _edges_within_rooms() -> dict[str, dict[str, str]]:
    """{file's module: {module of the same room that it imports: where}}, hidden imports included."""
    modules = {source.module: source for source in sources()}
    edges: dict[str, dict[str, str]] = {}
    for module, source in modules.items():
        for node, name in source.imports():
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module and _room(modules[target]) == _room(source):
                edges.setdefault(module, {})[target] = source.at(node)
    return edges


def _room(source: Source) -> str:
    return source.inside.rpartition("/")[0]


def test_the_files_of_a_room_make_no_cycle():
    edges, done, wrong = _edges_within_rooms(), set(), []

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            cycle = [*path[path.index(module) :], module]
            wrong.append(" -> ".join(cycle) + f" ({edges[path[-1]][module]})")
        elif module not in done:
            for target in edges.get(module, {}):
                visit(target, [*path, module])
            done.add(module)

    for module in sorted(edges):
        visit(module, [])
    report("The files of a room import each other without a cycle (their own __init__ included):", wrong)


def test_a_file_does_not_import_through_its_own_rooms_front_door():
    wrong = []
    for source in sources():
        room, front_door = source.module.rpartition(".")[0], source.path.with_name("__init__.py")
        if source.path == front_door or "/" not in source.inside or not front_door.exists():
            continue
        listed = re.findall(r'"(\w+)"', front_door.read_text(encoding="utf-8").partition("__all__")[2])
        files = {path.stem for path in source.path.parent.iterdir()} - set(listed)
        for node in ast.walk(source.tree):
            asked = node.names if isinstance(node, ast.ImportFrom) and node.module == room else []
            if any(alias.name not in files for alias in asked):
                wrong.append(f"{source.at(node)}: {ast.unparse(node)}")
    report("Inside a room, files import from files, not what the room's __init__ gives:", wrong)


def test_imports_of_ours_stand_at_the_top_of_a_file():
    wrong = [
        f"{source.at(node)} hides {name} in a function"
        for source in sources()
        if source.inside.split("/")[0] not in ("cli", "__init__.py") and not permitted("hidden-import", source.name)
        for function in ast.walk(source.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node, name in source.imports()
        if name.startswith("pellucid") and function.lineno < node.lineno <= (function.end_lineno or 0)
    ]
    report("Only the command line imports rooms inside functions (so that --help is quick):", sorted(set(wrong)))


def test_no_import_is_relative():
    wrong = [
        source.at(node)
        for source in sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    report("Imports are absolute, so that a file can be found by its name:", wrong)
