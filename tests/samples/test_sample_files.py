"""The files of sample logs: the same bytes each time, numbered, compressed; and the arguments that ask for them."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from include.command import exit_with
from include.errors import UsageError
from include.hours import Hour
from samples.__main__ import main
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from tests.samples.reading import LONG, SMALL, data_files, digests, hours_in, lines_of

REPOSITORY = Path(__file__).resolve().parents[2]


def test_same_spec_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    spec = replace(SMALL, clicks_per_hour=100)
    make_sample(spec, tmp_path / "here" / "landing").write(tmp_path / "here" / "web_truth.json")
    arguments = cli_arguments(tmp_path / "there" / "landing", **{"--from": str(spec.start), "--clicks-per-hour": "100"})
    done = subprocess.run(
        [sys.executable, "-m", "samples", *arguments],
        cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""  # no progress bar where stderr is no terminal
    assert digests(tmp_path / "here") == digests(tmp_path / "there")


def test_an_hour_is_the_same_however_many_come_after(tmp_path: Path) -> None:
    clean = replace(LONG, is_clean=True)
    make_sample(clean, tmp_path / "nine")
    make_sample(replace(clean, hours=2), tmp_path / "two")
    nine, two = digests(tmp_path / "nine"), digests(tmp_path / "two")
    assert two.items() < nine.items()


def test_files_are_numbered_renamed_into_place_and_closed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves: list[tuple[str, str, bool]] = []
    move = os.replace

    def watched(source: Path, target: Path) -> None:
        moves.append((source.name, target.name, (target.parent / "_SUCCESS").exists()))
        move(source, target)

    monkeypatch.setattr(os, "replace", watched)
    closed: list[tuple[Hour, int]] = []
    make_sample(replace(SMALL, hours=3), tmp_path)
    make_sample(replace(SMALL, hours=3), tmp_path, lambda hour, lines: closed.append((hour, lines)))
    folder = tmp_path / "web" / "log_date=2026-03-01" / "log_hour=12"
    assert sorted(file.name for file in folder.iterdir()) == sorted(
        ["_SUCCESS", *SMALL.file_names(Hour.parse("2026-03-01T12"))]
    )
    assert (folder / "_SUCCESS").read_bytes() == b""
    assert len(moves) == 18
    for source, target, was_closed in moves:
        assert source.startswith(".")
        assert re.fullmatch(r"part-\d{5}\.json(\.gz|\.zst)?", target)
        assert not was_closed
    assert [str(hour) for hour, _ in closed] == ["2026-03-01T10", "2026-03-01T11", "2026-03-01T12"]
    assert all(lines > 0 for _, lines in closed)


def test_compression_does_not_change_the_lines(tmp_path: Path) -> None:
    for name in ("none", "mixed"):
        make_sample(replace(SMALL, clicks_per_hour=200, compression=name), tmp_path / name)
    plain, mixed = (
        [lines_of(file) for _, folder in hours_in(tmp_path / name) for file in data_files(folder)]
        for name in ("none", "mixed")
    )
    assert plain == mixed


def test_running_again_gives_the_same_files_and_other_data_is_left_alone(tmp_path: Path) -> None:
    spec = replace(SMALL, clicks_per_hour=50)
    make_sample(spec, tmp_path)
    before = digests(tmp_path)
    make_sample(spec, tmp_path)
    assert digests(tmp_path) == before
    with pytest.raises(UsageError, match=r"log_hour=10 already holds part-00001.json.zst.*\(\d such\); expected"):
        make_sample(replace(spec, compression="gzip"), tmp_path)
    assert digests(tmp_path) == before


BAD_ARGUMENTS = [
    pytest.param({"--hours": "0"}, "hours 0: expected 1 to 87600", id="no hours"),
    pytest.param({"--hours": "x"}, "argument --hours: invalid int value: 'x'", id="hours no number"),
    pytest.param({"--clicks-per-hour": "-1"}, "clicks_per_hour -1: expected 1 to", id="clicks"),
    pytest.param({"--files-per-hour": "0"}, "files_per_hour 0: expected 1 to", id="files"),
    pytest.param({"--seed": "-3"}, "seed -3: expected 0 to", id="seed"),
    pytest.param({"--broken": "2026-03-01T08"}, "expected an hour and a share, such as", id="broken without a share"),
    pytest.param({"--broken": "2026-02-01T08=0.5"}, "broken 2026-02-01T08=0.5: expected a log hour of", id="broken"),
    pytest.param({"--from": "2026-03-01"}, "not an hour: '2026-03-01'; expected UTC such as 2026-03-01T05", id="from"),
    pytest.param({"--from": "1970-06-01T00"}, "start 1970-06-01T00: expected hours within 1971", id="year"),
    pytest.param({"--source": "Web/.."}, "source 'Web/..': expected lower case letters", id="source"),
    pytest.param({"--compression": "lz4"}, "argument --compression: invalid choice: 'lz4'", id="compression"),
    pytest.param({"--colour": "red"}, "unrecognized arguments: --colour red", id="unknown argument"),
    pytest.param({"--landing": __file__}, "is a file; expected a folder", id="landing is a file"),
    pytest.param({"--landing": __file__ + "/deep/er"}, "is a file; expected a folder", id="landing in a file"),
    pytest.param({"--truth": str(REPOSITORY)}, "is a folder; expected a file's name", id="truth is a folder"),
]


def cli_arguments(landing: Path, **options: str) -> list[str]:
    values = {"--landing": str(landing), "--source": "web", "--from": "2026-03-01T00", "--hours": "2",
              "--clicks-per-hour": "40", "--seed": "7"} | options  # fmt: skip
    return [text for pair in values.items() for text in pair]


@pytest.mark.parametrize(("wrong", "message"), BAD_ARGUMENTS)
def test_bad_arguments_are_one_line_and_exit_code_2(
    wrong: dict[str, str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exited:
        exit_with(lambda: main(cli_arguments(tmp_path / "landing", **wrong)))
    output = capsys.readouterr()
    assert exited.value.code == 2
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert message in output.err
    assert list(tmp_path.iterdir()) == []


def test_all_wrong_values_are_named_at_once() -> None:
    with pytest.raises(UsageError, match=r"hours 0: .*; seed -1: .*; source 'A': .*; compression 'zip': "):
        SampleSpec(SMALL.start, source="A", hours=0, seed=-1, compression="zip")  # type: ignore[arg-type]


def test_truth_lands_beside_the_landing_zone_or_where_it_is_asked_to(tmp_path: Path) -> None:
    main(cli_arguments(tmp_path / "landing"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["landing", "web_truth.json"]
    main([*cli_arguments(tmp_path / "landing"), "--truth", str(tmp_path / "deep" / "truth.json")])
    assert (tmp_path / "deep" / "truth.json").read_bytes() == (tmp_path / "web_truth.json").read_bytes()


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EIO, r"failed: cannot write .*: Input/output error; .*\n"),
        (errno.ENOSPC, r"failed: a disk is full: No space left on device .*/part-00000.json; make room .*\n"),
    ],
)
def test_a_file_that_cannot_be_written_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, expected: str
) -> None:
    def refuse(fresh: Path, file: Path) -> None:
        raise OSError(number, os.strerror(number), str(file))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(SystemExit) as exited:
        exit_with(lambda: main(cli_arguments(tmp_path / "landing")))
    assert exited.value.code == 1
    assert re.fullmatch(expected, capsys.readouterr().err)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
