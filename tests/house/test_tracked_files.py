"""What is committed works on any machine: no paths of one machine, no registry hosts, no data, no built files."""

import re

from tests.house.source_tree import ROOT, report, tracked_files

HOST_ENDS = ("pypi" + r"\.org", "python" + r"hosted\.org", "npmjs" + r"\.(?:org|com)", "download" + r"\.pytorch\.org")
MACHINE = (r"/(?:work|root|home|Users|opt|mnt|srv)" + r"/\w", r"[A-Z]:" + r"\\\\?Users\b", r"/tmp" + r"/\w+/")
PATTERN = re.compile("|".join((*HOST_ENDS, *(rf"(?<![\w.~-]){path}" for path in MACHINE))))
LARGEST_BYTES = 300_000  # nothing a person wrote is longer; data and built files are
BUILT = (".pyc", ".so", ".pt", ".pth", ".pkl", ".safetensors", ".gguf", ".bin", ".whl", ".egg-info")


def test_no_file_names_one_machine_or_a_registry():
    wrong = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            wrong += [f"{path.relative_to(ROOT)}:{number}: {match[0]}" for match in PATTERN.finditer(line)]
    report("No tracked file names a path of one machine or a package registry's host:", wrong)


def test_no_data_and_nothing_built_is_committed():
    wrong = [
        f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes"
        for path in tracked_files()
        if path.suffix in BUILT or path.stat().st_size > LARGEST_BYTES
    ]
    report("No data, weights or built files are committed:", wrong)
