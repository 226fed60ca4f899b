"""Every relative link in the documentation leads to a file that is there, and to a heading in it."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

from include.home import REPOSITORY

_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of a page's headings as GitHub makes them: of equal ones, the later ones are numbered."""
    counts: dict[str, int] = {}
    names = set()
    for heading in re.findall(
        r"^#{1,6} (.*)", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE
    ):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).translate(str.maketrans("", "", "`*")).strip().lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        names.add(f"{name}-{counts[name]}" if name in counts else name)
        counts[name] = counts.get(name, 0) + 1
    return frozenset(names)


def test_links_lead_somewhere() -> None:
    pages = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split()
    broken, links = [], 0
    for page in map(REPOSITORY.joinpath, pages):
        for link in re.findall(r"\]\(([^)\s]+)\)", _CODE.sub("", page.read_text())):
            if re.match(r"[a-z]+:", link):
                continue
            links += 1
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(REPOSITORY)}: {link}")
    assert not broken
    assert links > 300
