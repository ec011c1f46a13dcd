import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pellucid.errors import ModelFileError, TokenizerError
from pellucid.text.template_process import TemplateProcess

CHAT = {"messages": [{"role": "user", "content": "a"}], "now": "2026-02-01T10:00:00", "marks": ["<", ">"]}


def rendered(template, **variables):
    return TemplateProcess(template).rendered([{**CHAT, **variables}])[0]


def test_templates_have_what_transformers_gives_them():
    assert rendered("{{ strftime_now('%d %b %Y') }}") == "01 Feb 2026"
    assert rendered("{{ messages | tojson(indent=0) }}") == '[\n{\n"role": "user",\n"content": "a"\n}\n]'
    assert rendered("{{ '<é>' | tojson }}") == '"<é>"'
    assert rendered("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "01"
    assert rendered("  {% if true %}\n  a\n  {% endif %}\n") == "  a\n"
    assert rendered("{% set n = namespace(a=1) %}{% for i in [1] %}{% set n.a = 2 %}{% endfor %}{{ n.a }}") == "2"
    assert rendered("{{ dict(a=1).a }}{{ absent }}{{ bos_token }}", bos_token="<s>") == "1<s>"
    assert rendered("a{% generation %}b{% endgeneration %}c") == "a<b>c"


def test_what_a_template_raises_is_its_own_refusal():
    refusal = rendered("{{ raise_exception('no such\n role') }}")
    assert isinstance(refusal, TokenizerError)
    assert "its refusal: no such role:" in str(refusal)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' * 10**10 }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ 'a' | center(10**10) }}",
        "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ messages.append(1) }}",
        "{{ namespace(__class__=1) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ absent.absent }}",
        "{% nonsense %}",
        "{{ 1",
    ],
)
def test_a_template_that_does_harm_or_cannot_be_rendered_is_refused(template):
    with pytest.raises(ModelFileError, match=r"^Expected a chat template .* use another file of the same model\.$"):
        rendered(template)


@pytest.mark.slow
def test_endless_templates_end():
    begun = time.perf_counter()
    loop = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(ModelFileError, match="more time or memory"):
        rendered(loop)
    with pytest.raises(ModelFileError, match="more time or memory"):
        rendered(
            "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}"
        )
    assert time.perf_counter() - begun < 60


def test_the_next_chat_finds_a_new_process():
    process = TemplateProcess("{{ messages[0].content }}")
    assert process.rendered([CHAT]) == ["a"]
    os.kill(process._worker.pid, signal.SIGKILL)
    with pytest.raises(ModelFileError, match="more time or memory"):
        process.rendered([CHAT])
    assert process.rendered([CHAT, CHAT]) == ["a", "a"]


def test_a_process_ends_with_its_owner():
    process = TemplateProcess("")
    process.rendered([CHAT])
    worker = process._worker
    del process
    assert worker.poll() is not None
    script = (
        "import os; from pellucid.text.template_process import TemplateProcess\n"
        f"process = TemplateProcess(''); process.rendered([{json.dumps(CHAT)}])\n"
        "print(process._worker.pid, flush=True); os._exit(0)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(int(said), 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("the process outlived its owner")


def test_importing_the_room_does_not_import_jinja():
    script = "import sys, pellucid.text; print('jinja2' in sys.modules, 'torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "False False\n"


def test_without_jinja_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr("pellucid.text.template_process.find_spec", lambda _: None)
    with pytest.raises(ModelFileError, match="pip install jinja2"):
        rendered("")
