"""What pages and messages tell people to type is there: the command and its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from clickmill.app import make_app
from include.settings import REPOSITORY

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs" / "guides").glob("*.md"))]
#: Where messages, forms and comments stand.
PLACES = ("clickmill", "config", "dags", "docs", "expectations", "include", "ops", "plugins", "spark_jobs")
KINDS = {".conf", ".html", ".md", ".py", ".toml", ".yml"}
#: A command, perhaps an argument, and an option.
MENTIONED = re.compile(r"\bclickmill (?!clickmill)([a-z]+(?:-[a-z]+)*) (?:[^\s-]\S* )?(--[a-z-]+)")


def options_of_commands() -> dict[str, set[str]]:
    commands = get_command(make_app()).commands  # type: ignore[attr-defined]
    return {
        name: {"--help", *(option for parameter in command.params for option in parameter.opts)}
        for name, command in commands.items()
    }


def typed_lines(page: Path) -> Iterator[list[str]]:
    """The words of each line of a shell in which clickmill is typed, from the command on."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for block in re.findall(r"^ *```(?:sh|text)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if re.match(r"[$ ]*(docker compose exec (-\S+ )*[^\s-]\S* )?clickmill ", line):
                words = shlex.split(line.lstrip("$ "), comments=True)
                yield words[len(words) - words[::-1].index("clickmill") :]


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_what_a_guide_types_is_declared(page: Path) -> None:
    declared = options_of_commands()
    for name, *words in typed_lines(page):
        if name == "$job" or name.startswith("--"):
            continue
        assert name in declared, (name, *words)
        assert {word for word in words if word.startswith("--")} <= declared[name], (name, *words)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name) for page in PAGES])
def test_a_guide_needs_no_module_and_no_environment(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert ".venv/bin/python -m" not in text
    assert 'eval "$(' not in text
    # A task, or a command of before, is not typed.
    assert not re.findall(r"`[a-z]+_[a-z_]+ --[a-z-]+", text)


def test_what_messages_name_is_declared() -> None:
    declared = options_of_commands()
    count = 0
    files = [file for place in PLACES for file in (REPOSITORY / place).rglob("*.*") if file.suffix in KINDS]
    for file in files:
        text = file.read_text(encoding="utf-8")
        for command, option in re.findall(MENTIONED, text):
            count += 1
            assert option in declared.get(command, ()), (file, command, option)
    assert count > 30
