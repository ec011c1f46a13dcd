"""The Modelfile beside a GGUF file: what `ollama create` is told of it.

Ollama writes chats by templates of its own kind. A model's template is in Jinja; where it writes a plain chat as one of
the kinds known here does, the kind's template is written, and else none: Ollama then looks for its own.

In: `Outgoing`, the name of a file.  Out: the text of a Modelfile.  Used by: export.  Read next: export.py.
"""

from dataclasses import dataclass

from pellucid.convert.outgoing import Outgoing
from pellucid.errors import ModelFileError
from pellucid.text.template_process import TemplateProcess

CONTINUES = "{{ .Prompt }}"
"""For a model that has learned no chat: it goes on from what it is given."""


@dataclass(frozen=True)
class ChatKind:
    """A way of writing chats."""

    turn: str
    """A turn, with ROLE and TEXT in it."""
    answer: str
    """How the model's turn begins."""
    ollama: str
    """The same in Ollama's words."""


_TURNS = "{{- range .Messages }}%s{{ end }}%s"
CHAT_KINDS: dict[str, ChatKind] = {
    "ChatML": ChatKind(
        "<|im_start|>ROLE\nTEXT<|im_end|>\n",
        "<|im_start|>assistant\n",
        _TURNS % ("<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n", "<|im_start|>assistant\n"),
    ),
    "Llama 3": ChatKind(
        "<|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>",
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        _TURNS
        % (
            "<|start_header_id|>{{ .Role }}<|end_header_id|>\n\n{{ .Content }}<|eot_id|>",
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
    ),
    "Gemma": ChatKind(
        "<start_of_turn>ROLE\nTEXT<end_of_turn>\n",
        "<start_of_turn>model\n",
        _TURNS
        % (
            '<start_of_turn>{{ if eq .Role "assistant" }}model{{ else }}user{{ end }}\n{{ .Content }}<end_of_turn>\n',
            "<start_of_turn>model\n",
        ),
    ),
}

_CHATS = (("user", "One?"), ("assistant", "Two."), ("user", "Three?"))


def modelfile(model: Outgoing, file_name: str) -> str:
    """The text of a Modelfile.

    Args:
        model: What the file holds.
        file_name: Its name; the Modelfile lies beside it.
    """
    lines = [f"FROM ./{file_name}"]
    if model.chat_template is None:
        lines.append(f'TEMPLATE """{CONTINUES}"""')
    elif (kind := kind_of_chat(model)) is not None:
        lines.append(f'TEMPLATE """{CHAT_KINDS[kind].ollama}"""')
    for one in model.end_ids:
        name = model.token(one)
        if name is not None and '"' not in name:
            lines.append(f'PARAMETER stop "{name}"')
    return "\n".join([*lines, f"PARAMETER num_ctx {model.config.context_length}", ""])


def kind_of_chat(model: Outgoing) -> str | None:
    """The kind of chats that a model's template writes, if it is one of `CHAT_KINDS`."""
    begin = model.token(model.tokenizer.start_id) or ""
    said = _rendered(model.chat_template or "", begin, model.tokenizer.end_of_text)
    for name, kind in CHAT_KINDS.items():
        role = {"assistant": "model"} if name == "Gemma" else {}
        turns = [kind.turn.replace("ROLE", role.get(who, who)).replace("TEXT", text) for who, text in _CHATS]
        if said is not None and said.removeprefix(begin).endswith("".join(turns) + kind.answer):
            return name
    return None


def _rendered(template: str, begin: str, end: str) -> str | None:
    chat = {
        "messages": [{"role": role, "content": text} for role, text in _CHATS],
        "add_generation_prompt": True,
        "bos_token": begin,
        "eos_token": end,
        "marks": ["", ""],
        "now": "2026-01-01",  # of no matter to a kind known here
    }
    try:
        (said,) = TemplateProcess(template).rendered([chat])
    except ModelFileError:
        return None
    return said if isinstance(said, str) else None
