"""What a room exports: everything it lists is there, says what it is, and nothing is resolved by magic."""

import ast
import importlib
import inspect

from tests.house.source_tree import report, sources

ROOMS = [source for source in sources() if source.path.name == "__init__.py" and source.inside != "__init__.py"]


def _listed(source) -> list[str] | None:
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return None


def test_every_room_lists_what_it_exports():
    # The command line is called, not imported; ruff's RUF022 keeps the lists sorted.
    missing = [room.name for room in ROOMS if _listed(room) is None and not room.inside.startswith("cli/")]
    report("A room's __init__ has an __all__:", missing)


def test_every_exported_name_exists_and_has_a_first_line():
    wrong = []
    for room in ROOMS:
        try:
            module = importlib.import_module(room.module)
        except Exception as error:
            wrong.append(f"{room.name} cannot be imported: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        for name in _listed(room) or []:
            if not hasattr(module, name):
                wrong.append(f"{room.name}: {name} is not there")
                continue
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isroutine(thing)) and not (inspect.getdoc(thing) or "").partition(
                "\n"
            )[0].strip():
                wrong.append(f"{room.name}: {name} has no docstring")
    report("Every name in __all__ can be imported and says in one line what it is:", wrong)


def test_an_init_only_imports_and_lists():
    wrong = [
        f"{room.at(node)}: {type(node).__name__}"
        for room in ROOMS
        for node in room.tree.body[1:]
        if not isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "targets", [None])[0] is None
    ]
    report("A room's __init__ holds imports and __all__, no code and no __getattr__:", wrong)
