"""What the README says can be typed, and its Python runs, as does that of every page in docs/."""

import re
import subprocess
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from tests.house.source_tree import PACKAGE, ROOT, report

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]


def commands(page: Path) -> list[str]:
    """Lines of the page's ```sh blocks in order, continued lines joined, comments left out."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


def _make_targets(page: Path) -> set[tuple[str, str]]:
    """Targets in `make x` of the prose and in lines of blocks that begin with it."""
    return set(re.findall(r"^make ([\w-]+)|`make ([\w-]+)`", page.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_make_target_that_a_page_names_is_there():
    wrong = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in sorted({first or second for first, second in _make_targets(page)}):
            done = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, encoding="utf-8")
            if done.returncode:
                wrong.append(f"{page.relative_to(ROOT)}: make {target}: {done.stderr.strip().splitlines()[-1]}")
    report("Every `make` target that is written about exists:", wrong)


def test_every_verb_that_a_page_names_is_there():
    verbs = {path.stem.removesuffix("_model") for path in (PACKAGE / "cli").glob("*.py")}
    wrong = [
        f"{page.relative_to(ROOT)}: {command}"
        for page in PAGES
        for command in commands(page)
        if (match := re.match(r"pellucid ([a-z]\w*)", command)) and match[1] not in verbs
    ]
    report("Every `pellucid` verb in a command block has its file in cli/:", wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for example in Sybil([PythonCodeBlockParser()]).parse(page).examples():
        example.evaluate()


def test_no_link_of_a_page_leads_nowhere():
    wrong = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not target.startswith(("http:", "https:", "mailto:")) and not (page.parent / target).exists()
    ]
    report("Links between pages lead to files that exist:", wrong)
