import pytest

from pellucid.errors import TokenizerError
from pellucid.text.chat_rendering import ChatRenderer, Message, Stretch

LOOP = "{% for one in messages %}"


def render(template, *messages, **how):
    return ChatRenderer(template, {}, **how).render([Message(*one) for one in messages], begin_answer=False)


def said(chat):
    return [(chat.text[one.start : one.end], one.message) for one in chat.stretches]


def test_every_character_is_the_templates_or_a_messages():
    chat = render(LOOP + "<{{ one.role }}>{{ one.content }}{% endfor %}", ("user", " a "), ("stranger", "user"))
    assert said(chat) == [("<user> ", None), ("a", 0), (" <", None), ("stranger", 1), (">", None), ("user", 1)]
    assert chat.text == "<user> a <stranger>user"


def test_white_space_is_marked_too_where_it_matters():
    chat = render(LOOP + "<{{ one.content }}>{% endfor %}", ("user", " a "), ("user", " "), keep_white_space=False)
    assert said(chat) == [("<", None), (" a ", 0), ("><", None), (" ", 1), (">", None)]


def test_a_text_may_come_twice_or_not_at_all():
    chat = render("{{ messages[0].content }}{{ messages[0].content }}", ("user", "ab"), ("user", "c"))
    assert chat.stretches == [Stretch(0, 2, 0), Stretch(2, 4, 0)]


def test_what_a_template_takes_away_of_the_ends_of_a_text_is_away():
    assert render(LOOP + "[{{ one.content | trim }}]{% endfor %}", ("user", "\n a b\n ")).text == "[a b]"
    assert render(LOOP + "[{{ one.content.strip('\n') }}]{% endfor %}", ("user", "\n a b\n ")).text == "[ a b\n ]"


@pytest.mark.parametrize(
    "template",
    [
        LOOP + "{{ one.content | upper }}{% endfor %}",
        LOOP + "{{ one.content[:2] }}{% endfor %}",
        LOOP + "{{ one.content | length }}{% endfor %}",
        LOOP + "{{ one.content | replace('b', 'c') }}{% endfor %}",
        LOOP + "{% if 'b' in one.content %}<{% endif %}{{ one.content }}{% endfor %}",
        LOOP + "{{ one.content.split('b')[0] }}{% endfor %}",
        "{{ messages | tojson }}",
    ],
)
def test_a_template_that_does_more_to_a_text_than_trim_it_is_refused(template):
    with pytest.raises(TokenizerError, match="rewrite"):
        render(template, ("user", 'a b "'))


def test_a_template_that_looks_for_a_role_finds_it_and_no_strangers_name():
    template = LOOP + "{% if one.role == 'user' %}U{% elif one.role == 'pirate' %}P{% endif %}{% endfor %}"
    assert render(template, ("user", "a")).text == "U"
    with pytest.raises(TokenizerError, match="rewrite"):
        render(template, ("pirate", "a"))


def test_thoughts_are_given_apart_or_left_out_as_the_template_does_it():
    thinking = ("assistant", "<think>\nhm\n</think>\n\nhello")
    split = LOOP + "{{ one.content.split('</think>')[-1] if '</think>' in one.content else one.content }}{% endfor %}"
    assert said(render(split, thinking)) == [("\n\n", None), ("hello", 0)]
    apart = (
        LOOP + "{% set thoughts = one.reasoning_content %}{% set content = one.content %}"
        "{% if '</think>' in content %}"
        "{% set thoughts = content.split('</think>')[0].split('<think>')[-1].strip('\n') %}"
        "{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
        "({{ thoughts }}){{ content }}{% endfor %}"
    )
    assert said(render(apart, thinking)) == [("(", None), ("hm", 0), (")", None), ("hello", 0)]


def test_a_text_that_has_the_mark_is_given_another(monkeypatch):
    drawn = iter([*([1] * 16), *([2] * 16), *([3] * 16)])
    monkeypatch.setattr("pellucid.text.chat_rendering.secrets.randbelow", lambda _: next(drawn))
    forged = "\ue001" * 16 + "\ue400" * 6
    chat = render(LOOP + "<{{ one.content }}>{% endfor %}", ("user", forged), ("user", "a"))
    assert said(chat) == [("<", None), (forged, 0), ("><", None), ("a", 1), (">", None)]
