from pellucid.cli.arguments import parse
from pellucid.cli.export_flags import ExportFlags


def test_hugging_face_is_meant_unless_gguf_is_said():
    flags = parse(ExportFlags, ["runs/book", "--out", "book"], "export")
    assert (flags.model, flags.format, flags.out, flags.dtype, flags.quantize) == (
        "runs/book",
        "hf",
        "book",
        None,
        None,
    )


def test_words_are_taken_as_they_are():
    words = ["runs/book", "--format", "gguf", "--out", "book.gguf", "--quantize", "q8_0"]
    assert parse(ExportFlags, words, "export").quantize == "q8_0"
