"""A file begins by saying what it is, what comes in, what goes out, who uses it, and where to read on."""

import re

from tests.house.source_tree import PACKAGE, report, sources

PARTS = ("In:", "Out:", "Used by:", "Read next:")


def test_every_file_says_what_it_is_and_where_to_read_next():
    wrong = [
        f"{source.name}: " + (f"no {', '.join(missing)}" if source.docstring else "no docstring")
        for source in sources()
        if source.path.name not in ("__init__.py", "__main__.py")
        for missing in [[part for part in PARTS if part not in source.docstring]]
        if missing
    ]
    report(f"A module docstring has a first line and {' '.join(PARTS)}", wrong)


def test_every_files_first_line_stands_alone():
    wrong = [source.name for source in sources() if len(lines := source.docstring.split("\n")) > 1 and lines[1].strip()]
    report("A module docstring's first line says it all, and a blank line follows:", wrong)


def test_read_next_names_a_file_that_is_there():
    wrong = []
    for source in sources():
        following = source.docstring.partition("Read next:")[2]
        for name in re.findall(r"[\w./]+\.py\b", following):
            if not any((start / name).exists() for start in (source.path.parent, PACKAGE, PACKAGE.parent)):
                wrong.append(f"{source.name}: {name}")
    report("Read next names files that exist, from the file's folder, src/pellucid or src:", wrong)
