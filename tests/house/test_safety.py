"""No code from files, no guessed encodings, no printing outside the command line."""

import ast

from tests.house.source_tree import ROOT, calls, permitted, report, sources

UNSAFE_MODULES = ("pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib")
TEXT_METHODS = {"read_text": 0, "write_text": 1}  # {method: place of encoding among its positional arguments}
BYTES_OPENERS = ("os", "gzip", "lzma", "bz2", "zipfile", "tarfile", "mmap", "webbrowser", "safetensors")
FOR_USERS = [source for top in ("src", "benchmarks", "examples") for source in sources(ROOT / top)]


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def test_no_file_can_carry_code():
    wrong = [
        f"{source.at(node)} imports {name}"
        for source in sources()
        if not permitted("unsafe", source.name)
        for node, name in source.imports()
        if name.split(".")[0] in UNSAFE_MODULES
    ]
    for source in sources():
        for call, name in calls(source.tree):
            if permitted("unsafe", source.name):
                continue
            if name in ("eval", "exec", "__import__", "torch.save"):
                wrong.append(f"{source.at(call)} calls {name}")
            if name == "torch.load" and not source.inside.startswith("convert/"):
                wrong.append(f"{source.at(call)} calls torch.load; foreign weights are read in convert/ alone")
            if name == "torch.load" and getattr(_keyword(call, "weights_only"), "value", None) is not True:
                wrong.append(f"{source.at(call)} calls torch.load without weights_only=True")
            if getattr(_keyword(call, "allow_pickle"), "value", False) or getattr(
                _keyword(call, "shell"), "value", False
            ):
                wrong.append(f"{source.at(call)} passes allow_pickle or shell")
    report("No pickle, eval, exec, torch.save; torch.load(weights_only=True) in convert/ alone:", wrong)


def _opens_text_in_an_unsaid_encoding(call: ast.Call, name: str) -> bool:
    if any(keyword.arg is None for keyword in call.keywords) or _keyword(call, "encoding"):
        return False
    before, _, method = name.rpartition(".")
    if method in TEXT_METHODS:
        return len(call.args) <= TEXT_METHODS[method]
    if method != "open" or before.split(".")[0] in BYTES_OPENERS or before.rpartition(".")[2][:1].isupper():
        return False
    place = 1 if before in ("", "io") and not name.startswith(".") else 0  # open(path, mode); path.open(mode)
    mode = _keyword(call, "mode") or (call.args[place] if len(call.args) > place else None)
    return mode is None or (isinstance(mode, ast.Constant) and "b" not in str(mode.value))


def test_text_is_opened_with_its_encoding():
    wrong = [
        f"{source.at(call)}: {name}"
        for source in FOR_USERS
        for call, name in calls(source.tree)
        if _opens_text_in_an_unsaid_encoding(call, name)
    ]
    report("Text files are opened with encoding= (the platform's default differs):", wrong)


def test_only_the_command_line_prints():
    wrong = [
        f"{source.at(call)}: {name}"
        for source in sources()
        if not source.inside.startswith("cli/") and not permitted("prints", source.name)
        for call, name in calls(source.tree)
        if name in ("print", "pprint", "sys.stdout.write", "sys.stderr.write", "os.write", "input")
    ]
    report("Rooms return or emit events; only cli/ prints:", wrong)
