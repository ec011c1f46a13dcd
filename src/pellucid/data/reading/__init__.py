"""Files as people have them → documents of plain text, read as a stream and unharmed by hostile ones.

    packed → encodings → decoding → reader → plain · lines · srt · html · archive · xml_stream · paragraphs ·
    docx · odt · epub · columns · csv · jsonl · parquet → kinds                                (reading order)

In: paths.  Out: a reader for each file.  Used by: sources.py, folders.py.  Read next: packed.py.
"""

from pellucid.data.reading.columns import UnclearColumn
from pellucid.data.reading.decoding import UnclearEncoding, plainly_utf_8
from pellucid.data.reading.jsonl import JsonLines
from pellucid.data.reading.kinds import SUFFIXES, Kind, Unreadable, kind_of_name, open_reader
from pellucid.data.reading.packed import byte_blocks
from pellucid.data.reading.reader import FileReader, ReadingOptions, told

__all__ = [
    "SUFFIXES",
    "FileReader",
    "JsonLines",
    "Kind",
    "ReadingOptions",
    "UnclearColumn",
    "UnclearEncoding",
    "Unreadable",
    "byte_blocks",
    "kind_of_name",
    "open_reader",
    "plainly_utf_8",
    "told",
]
