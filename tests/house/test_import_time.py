"""Nothing runs at import: no seed, switch, environment read or logging set-up, so that their order is free."""

import ast
from collections.abc import Iterator

from tests.house.source_tree import dotted, report, sources

ENVIRONMENT = ("os.environ", "os.getenv", "os.putenv", "environ", "getenv")
SWITCHES = (
    *("torch.set_", "torch.manual_seed", "torch.use_deterministic", "torch.backends"),
    *("random.seed", "np.random.seed", "numpy.random.seed"),
    *("logging.basicConfig", "warnings.filterwarnings", "warnings.simplefilter", "signal.signal"),
    *("sys.path", "sys.setrecursionlimit", "locale.setlocale", "faulthandler.enable"),
)


def _executed_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the file is imported: not function bodies, not a main guard."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ClassDef):
            yield from _executed_at_import(node.body)
            continue
        yield node


def _faults(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield f"calls {ast.unparse(node.value.func)}(...)"
    if isinstance(node, ast.For | ast.While | ast.With):
        yield f"runs a {type(node).__name__.lower()} statement"
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    yield from (f"sets {ast.unparse(t)}" for t in targets if isinstance(t, ast.Attribute | ast.Subscript))
    for inner in ast.walk(node):
        if isinstance(inner, ast.Lambda):
            continue
        name = dotted(inner)
        if name in ENVIRONMENT or name.startswith(SWITCHES):
            yield f"touches {name}"


def test_nothing_runs_at_import():
    wrong = [
        f"{source.at(node)} {fault}"
        for source in sources()
        for node in _executed_at_import(source.tree.body)
        for fault in _faults(node)
    ]
    report("Nothing runs at import:", dict.fromkeys(wrong))
