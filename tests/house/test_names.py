"""One word per idea: whose names are used where, axis names, file names."""

import ast
import re

from pellucid.shapes import AXES
from tests.house.source_tree import ROOT, Source, dotted, report, sources

FOREIGN = ("n_embd", "hidden_size", "n_head", "block_size", "max_seq_len", "intermediate_size")
MAY_USE_FOREIGN = ("convert/names.py", "cs336.py")
FORBIDDEN_FILE_WORDS = {"utils", "util", "common", "helpers", "helper", "misc", "base", "core", "manager"}
JAXTYPING = {"BFloat16", "Bool", "Complex", "Float", "Float16", "Float32", "Float64", "Inexact", "Int", "Int8", "Int32"}
JAXTYPING |= {"Int64", "Integer", "Num", "Real", "Shaped", "UInt", "UInt8"}


def test_other_projects_names_stay_in_their_two_files():
    pattern = re.compile(rf"\b({'|'.join(FOREIGN)})\b")
    wrong = [
        f"{source.name}:{number}: {match[0]}"
        for source in sources()
        if source.inside not in MAY_USE_FOREIGN
        for number, line in enumerate(source.text.splitlines(), 1)
        for match in pattern.finditer(line)
    ]
    report(f"{' '.join(FOREIGN)} appear only in {' and '.join(MAY_USE_FOREIGN)}:", wrong)


def test_no_file_is_a_drawer_for_odds_and_ends():
    everywhere = [source for top in ("src", "tests", "benchmarks", "examples") for source in sources(ROOT / top)]
    wrong = [source.name for source in everywhere if FORBIDDEN_FILE_WORDS & set(source.path.stem.split("_"))]
    wrong += [
        f"{folder.relative_to(ROOT)}/"
        for folder in ROOT.joinpath("src").rglob("*/")
        if FORBIDDEN_FILE_WORDS & set(folder.name.split("_"))
    ]
    report("A file is named for the one thing in it, not utils, common, helpers, misc, base, core or manager:", wrong)


def _shape_strings(source: Source):
    """(node, string) of every jaxtyping annotation of a file: Float[Tensor, "batch position"]."""
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2):
            continue
        shape = node.slice.elts[1]
        if dotted(node.value).rpartition(".")[2] in JAXTYPING and isinstance(shape, ast.Constant):
            yield node, shape.value


def _axis_words(shape: str) -> set[str]:
    """The names in a shape string, without its marks (* # ? _), numbers, dots and arithmetic."""
    return set(re.findall(r"[A-Za-z]\w*", re.sub(r"\{[^}]*\}|_\b", " ", shape)))


def test_axis_names_come_from_the_legend():
    wrong = [
        f"{source.at(node)}: {', '.join(sorted(unknown))} in {shape!r}"
        for source in sources()
        for node, shape in _shape_strings(source)
        if (unknown := _axis_words(shape) - set(AXES))
    ]
    report("Axis names in shape annotations are words of shapes.AXES:", wrong)


def test_annotated_files_keep_their_annotations_alive():
    wrong = [
        source.name
        for source in sources()
        if any(_shape_strings(source)) and any(name == "__future__.annotations" for _, name in source.imports())
    ]
    report("Files with shape annotations do not import annotations from __future__ (they would become strings):", wrong)
