"""The README's map is the tree."""

from tests.house.readme_map import README, drawn_map, written_map
from tests.house.source_tree import ROOT, report, tracked_files


def test_the_readmes_map_equals_the_tree():
    written, drawn = written_map(README.read_text(encoding="utf-8")).splitlines(), drawn_map().splitlines()
    wrong = [f"- {line}" for line in written if line not in drawn] + [
        f"+ {line}" for line in drawn if line not in written
    ]
    report("The README's map equals the tree; write it anew with `make map`:", wrong)
    assert written == drawn, "the lines of the README's map stand in another order than the tree's: `make map`"


def test_the_map_leaves_out_nothing_at_the_top():
    drawn = {line.split()[0].split("/")[0] for line in drawn_map().splitlines() if line[0] != " "}
    tops = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    report(
        "Everything at the top of the repository has a clause in readme_map.py:", sorted(tops - drawn - {".gitignore"})
    )
