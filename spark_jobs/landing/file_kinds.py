"""What a file is that cannot be landed: by how it begins, and by what its lines look like."""

from __future__ import annotations

import json
import re
import stat
from contextlib import suppress

from spark_jobs.lines.headers import LOCAL_TIMES

#: So much of a file's beginning says what it is.
BEGINNING_BYTES = 1 << 20

LOCAL_TIMES_LOG = "a log of local times (#GMT-Offset:), which would be read as UTC"
#: How content begins that is not lines of text, by the formats' own specifications; also in a compressed file.
_BEGINNINGS = {
    "a file that is compressed twice": rb"\x1f\x8b\x08|\x28\xb5\x2f\xfd|BZh[1-9]1AY&SY|\xfd7zXZ\x00",
    "a zip archive (or an office document)": rb"PK(?:\x03\x04|\x05\x06|\x07\x08)",
    "a 7z archive": rb"7z\xbc\xaf\x27\x1c",
    "a rar archive": rb"Rar!\x1a\x07",
    "a tar archive": rb"(?s:.{257}ustar[\x00 ])",
    "a cpio archive": rb"07070[12][\da-fA-F]{104}|070707[0-7]{70}",
    "a file compressed with lz4": rb"\x04\x22\x4d\x18|\x02\x21\x4c\x18",
    "a file compressed with lzma": rb"\x5d\x00\x00[\x00-\x80]",
    "a file compressed with lzip": rb"LZIP\x01",
    "a file compressed with lzop": rb"\x89LZO\x00",
    "a file compressed with compress": rb"\x1f[\x9d\xa0]",
    "a file compressed with snappy": rb"\xff\x06\x00\x00sNaPpY",
    "a Parquet file": rb"PAR[1E][\x00-\x08\x0e-\x1f\x80-\xff]",
    "an ORC file": rb"ORC[\x00-\x08\x0e-\x1f\x80-\xff]",
    "an Avro file": rb"Obj\x01",
    "an Arrow file": rb"ARROW1\x00\x00",
    "a SQLite database": rb"SQLite format 3\x00",
    "a journal of systemd (journalctl -o json writes its lines)": rb"LPKSHHRH",
    "an event log of Windows": rb"ElfFile\x00",
    "a PDF document": rb"%PDF-",
    "an old office document": rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    "a picture": rb"\xff\xd8\xff|\x89PNG\r\n|GIF8[79]a|RIFF....WEBP|BM....\x00\x00\x00\x00",
    "a program": rb"\x7fELF|MZ[\x00-\xff]\x00",
    "a packet capture": rb"\xd4\xc3\xb2\xa1|\xa1\xb2[\xc3\x3c][\xd4\x4d]|\n\r\r\n.{4}(?:\x1a\x2b|\x4d\x3c)",
    "text in UTF-32": rb"\xff\xfe\x00\x00|\x00\x00\xfe\xff",
    "a page of HTML": rb"(?i:\s*<(?:!doctype html|html))",
    "XML": rb"\s*<\?xml",
    LOCAL_TIMES_LOG: rb"(?:\xef\xbb\xbf)?(?:#[^\n]*\n)*?" + LOCAL_TIMES.encode(),
}
_KINDS = {kind: re.compile(pattern, re.DOTALL) for kind, pattern in _BEGINNINGS.items()}

_ERROR_LOGS = {
    "an error log of nginx": re.compile(rb"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[[a-z]+\] \d+#\d+: "),
    "an error log of Apache": re.compile(rb"\[\w{3} \w{3} +\d+ \d\d:\d\d:\d\d(?:\.\d+)? \d{4}\] \[[\w:-]+\] "),
}
_ACCESS_LOG = re.compile(rb'\S+ .*\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "')
_ARRAY = re.compile(rb'\s*\[\s*(?:[{\[\]"]|$)')
#: A line that is an element of an array, with the comma after or before it.
_ELEMENT = re.compile(rb"\s*\[?\s*(?:(?:,\s*)?(\{.*\})\s*,|,\s*(\{.*\}))\s*")
_WITHOUT_COMMAS = "sed 's/^[[, \\t]*//; s/[], \\t\\r]*$//; /^$/d'"
_GOES_ON = (b"{", b"[", b",")
_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_NO_TEXT_SHARE = 0.02

_NO_FILES = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def no_file(mode: int) -> str | None:
    """What that is which is no file, by its ``st_mode``; None for a file."""
    return _NO_FILES.get(stat.S_IFMT(mode))


def kind_of(content: bytes) -> str | None:
    """What begins with these bytes, decompressed, that cannot be lines of a log; None for anything else."""
    return next((kind for kind, beginning in _KINDS.items() if beginning.match(content)), None)


def json_shape(text: bytes) -> tuple[str, str] | None:
    """How JSON is written that is not an object a line, by its first bytes; None for anything else.

    With the command that writes an object a line of it.
    """
    text = text.lstrip()
    first, _, others = text.partition(b"\n")
    elements = filter(None, map(_ELEMENT.fullmatch, (first, *others.split(b"\n", 2)[:2])))
    are_elements = any(_is_json(element[1] or element[2]) for element in elements)
    if _ARRAY.match(text):
        # jq reads none of an array without an end, as a log has that is still written.
        return ("a JSON array", _WITHOUT_COMMAS if are_elements else "jq -c '.[]'")
    if are_elements and (_is_json(first) or _ELEMENT.fullmatch(first)):
        return ("JSON objects with commas between them", _WITHOUT_COMMAS)
    if not first.startswith(b"{") or _is_json(first) or not others.strip():
        return None
    several = ("one JSON object over several lines", "jq -c .")
    with suppress(ValueError, RecursionError):
        json.JSONDecoder().raw_decode(text.decode("utf-8", "replace"))
        return several
    return several if first.rstrip().endswith(_GOES_ON) and not others.lstrip().startswith(b'{"') else None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True


def look_of(text: bytes) -> str | None:
    """What lines look like that are not of the format in which they were to be; None if nobody knows."""
    lines = [line for line in text[: 1 << 16].splitlines() if line.strip()][:20]
    for kind, line_of_it in _ERROR_LOGS.items():
        if any(map(line_of_it.match, lines)):
            return kind
    if len(_NO_TEXT.findall(text)) > _NO_TEXT_SHARE * len(text):
        return "a binary file"
    if any(map(_ACCESS_LOG.match, lines)):
        return "an access log"
    if any(line.lstrip().startswith(b"{") and _is_json(line) for line in lines):
        return "a log of JSON"
    return None
