"""The test for a file is where you would look for it: src/pellucid/nn/rope.py -> tests/nn/test_rope.py."""

from tests.house.source_tree import PACKAGE, ROOT, permitted, report, sources

TESTS = ROOT / "tests"
OWN_ROOMS = ("whole", "house")  # behaviour across rooms; the rules of the house


def _mirrored() -> dict[str, str]:
    """{src/pellucid/nn/rope.py: tests/nn/test_rope.py} for every file that has code of its own."""
    files = [source for source in sources() if source.path.name not in ("__init__.py", "__main__.py")]
    return {
        source.name: str((TESTS / source.inside).with_name(f"test_{source.path.name}").relative_to(ROOT))
        for source in files
    }


def test_every_test_file_has_its_source_file():
    expected = set(_mirrored().values())
    wrong = [
        source.name
        for source in sources(TESTS)
        if source.path.name.startswith("test_")
        and source.path.relative_to(TESTS).parts[0] not in OWN_ROOMS
        and source.name not in expected
    ]
    report(f"A test file mirrors a file of {PACKAGE.relative_to(ROOT)}, or lies in tests/whole or tests/house:", wrong)


def test_every_source_file_has_its_test_file():
    wrong = [
        f"{source} has no {test}"
        for source, test in _mirrored().items()
        if not (ROOT / test).exists() and not permitted("no-own-test", source)
    ]
    report("Every file has a test file of its own (or a decision says where it is tested):", wrong)
