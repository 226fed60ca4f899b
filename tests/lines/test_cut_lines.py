"""Content is cut into the same lines in whatever pieces it comes, and however small those are that are kept."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from spark_jobs.lines import cut_lines
from spark_jobs.lines.cut_lines import cut_at_lines
from tests.lines.test_read_lines import _oracle

SEED = int(os.environ.get("CLICKMILL_FAULT_SEED") or random.randrange(1 << 32))
LETTERS = [b"a", b"\r", b"\n", b"\0", b"\0" * 15, b"\xef\xbb\xbf", b"\xff", b"\0" * 16]


def _pieces(content: bytes, size: int) -> Iterator[bytes]:
    return (content[at : at + size] for at in range(0, len(content), size))


def _lines(content: bytes, size: int) -> list[bytes]:
    """The lines without their ends; each piece of whole lines but the last has an end, and so has a line in parts."""
    parts = list(cut_at_lines(_pieces(content, size)))
    assert all(part.endswith(b"\n") for part, is_whole in parts[:-1] if is_whole)
    lines = b"".join(part for part, _ in parts).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def test_lines_are_the_same_in_whatever_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED}")
    rng = random.Random(SEED)
    for _ in range(5000):
        monkeypatch.setattr(cut_lines, "PIECE_BYTES", rng.randrange(4, 40))
        letters = LETTERS[: rng.randrange(2, 1 + len(LETTERS))]
        content = b"".join(rng.choices(letters, k=rng.randrange(14)))
        assert _lines(content, rng.randrange(1, 40)) == _oracle(content), content


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_cut_as_utf_8_in_whatever_pieces(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"CLICKMILL_FAULT_SEED={SEED}")
    rng = random.Random(SEED)
    for _ in range(2000):
        monkeypatch.setattr(cut_lines, "PIECE_BYTES", rng.randrange(4, 40))
        text = "a line first" + "".join(
            rng.choices("abcdefgh.-/ \r\n\ufeff\u4e16\u00e9\U0001f600", k=rng.randrange(40))
        )
        mark = rng.choice(["", "\ufeff"])
        content = bytes(2 * rng.randrange(40)) + (mark + text).encode(encoding)
        if not mark and sum(character.isascii() for character in text) < max(17, 0.35 * len(text.encode(encoding))):
            continue  # too short, or not Latin: nobody could know
        assert _lines(content, rng.randrange(1, 40)) == _oracle(text.encode()), text


ONE, TWO = b"198.51.100.7 - - [01/Mar/2026:12:30:00 +0000]", b"2026-03-01 11:00:00 GET /b"
OBJECT = b'{"ts":1772368200}'


@pytest.mark.parametrize(
    ("line", "lines"),
    {
        "two lines": (ONE + b"\r" + TWO, [ONE, TWO]),
        "three": (b"\r".join([ONE, TWO, ONE]), [ONE, TWO, ONE]),
        "two, and a carriage return": (ONE + b"\r" + TWO + b"\r", [ONE, TWO]),
        "two carriage returns between": (ONE + b"\r\r" + TWO, [ONE, TWO]),
        "objects": (OBJECT + b"\r" + OBJECT, [OBJECT, OBJECT]),
        "fields of an object": (OBJECT[:-1] + b',\r"at":1772368200}', [OBJECT[:-1] + b',\r"at":1772368200}']),
        "text in a line": (ONE + b' "a\rb" 200', [ONE + b' "a\rb" 200']),
        "text in the first of two": (ONE + b' "a\rb"\r' + TWO, [ONE + b' "a\rb"', TWO]),
        "text in the second": (ONE + b"\r" + TWO + b"\rb", [ONE, TWO + b"\rb"]),
        "no line before it": (b"a\r" + ONE, [b"a\r" + ONE]),
        "more before the line feed": (ONE + b"\r\r", [ONE + b"\r"]),
    }.values(),
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_carriage_returns_between_lines_end_them_beside_line_feeds(
    line: bytes, lines: list[bytes], end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_lines, "PIECE_BYTES", 256)
    expected = [b"a", *lines, b"b", *lines, b"c", *lines]
    for size in (1, 7, 1000):
        content = [part.rstrip(b"\r") for part in _lines(end.join([b"a", line, b"b", line, b"c", line]), size)]
        assert content == [part.rstrip(b"\r") for part in expected]


def test_lines_of_carriage_returns_are_cut_though_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_lines, "PIECE_BYTES", 1 << 10)
    assert _lines(b"a\n" + b"\r".join([ONE] * 500), 100) == [b"a", *[ONE] * 500]
