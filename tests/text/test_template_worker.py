import subprocess
import sys

from pellucid.text import template_process, template_worker

CHAT = {"messages": [], "now": "2026-02-01", "marks": ["", ""]}


def test_chats_are_rendered_one_by_one():
    chats = [CHAT, {**CHAT, "a": 1}, CHAT]
    assert template_worker.rendered("{{ 1 / a }}", chats[1:2]) == [{"text": "1.0"}]
    assert template_worker.rendered("{% if a %}{{ raise_exception('b') }}{% endif %}", chats) == [
        {"text": ""},
        {"refused": "b"},
        {"text": ""},
    ]
    assert "failed" in template_worker.rendered("{{ 1 / a }}", [{**CHAT, "a": 0}])[0]


def test_the_program_imports_nothing_of_ours():
    script = f"import sys, runpy; runpy.run_path({str(template_process.WORKER)!r}); print('pellucid' in sys.modules)"
    said = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"


def test_both_sides_speak_alike():
    assert template_worker.LENGTH_BYTES == template_process.LENGTH_BYTES


def test_the_process_opens_no_file_and_starts_no_process():
    script = (
        "import sys, runpy, io\n"
        f"worker = runpy.run_path({str(template_process.WORKER)!r})\n"
        "sys.stdin = io.TextIOWrapper(io.BytesIO())\n"
        "said = sys.stderr\n"
        "worker['work']()\n"
        "import os\n"
        "for act in (lambda: os.open('/dev/null', os.O_RDONLY), lambda: os.pipe()):\n"
        "    try:\n"
        "        act()\n"
        "        said.write('open')\n"
        "    except OSError as error:\n"
        "        said.write(f'{error.errno} ')\n"
        "said.write(repr(dict(os.environ)))\n"
    )
    ran = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stderr == "24 24 {}"
