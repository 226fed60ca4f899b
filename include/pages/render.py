"""HTML pages that need nothing else: no script, no other host; texts are escaped, and the style is the page's own."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from include.countries import country_name
from include.storage import write_whole
from include.texts import MAX_TEXT_CHARACTERS, as_count, as_printable, as_share, as_size, crop_middle, plural

#: What all pages have; a page's own template is beside its module.
_TEMPLATES = Path(__file__).resolve().parent / "templates"


def render_page(template: Path, *more_style_sheets: str, **values: object) -> str:
    """A template with our style sheet, more of them after it, and the policy that allows nothing else."""
    style_sheet = _style_sheet(template.parent, more_style_sheets)
    policy = f"default-src 'none'; style-src {_source_of(style_sheet)}; base-uri 'none'; form-action 'none'"
    return (
        _environment(template.parent)
        .get_template(template.name)
        .render(**values, style_sheet=Markup(style_sheet), policy=policy)
    )


def render_served_page(
    template: Path, scripts: Sequence[str], *more_style_sheets: str, may_act: bool = False, **values: object
) -> tuple[str, str]:
    """A page for a server to send, and the Content-Security-Policy to send with it.

    The policy allows the page its own style sheet, these scripts by their hash, forms and frames of its own origin, and
    requests to it where one ``may_act``.
    """
    style_sheet = _style_sheet(template.parent, more_style_sheets)
    script_text = "".join((template.parent / script).read_text(encoding="utf-8") for script in scripts)
    connect = "connect-src 'self'; " if may_act else ""
    policy = (
        f"default-src 'none'; style-src {_source_of(style_sheet)}; script-src {_source_of(script_text)}; {connect}"
        "base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
    )
    page = (
        _environment(template.parent)
        .get_template(template.name)
        .render(**values, style_sheet=Markup(style_sheet), script=Markup(script_text), policy=None, may_act=may_act)
    )
    return page, policy


def write_page(html: str, page: Path) -> Path:
    """Replace the page at once: a reader sees the old one or the new one, whole."""
    return write_whole(page, html.encode())


def _style_sheet(folder: Path, more: Sequence[str]) -> str:
    files = (_TEMPLATES / "page.css", *(folder / name for name in more))
    return "".join(file.read_text(encoding="utf-8") for file in files)


def _source_of(text: str) -> str:
    """How a Content-Security-Policy names this very text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _environment(folder: Path) -> Environment:
    """What renders the pages of this folder: all text is escaped, and what cannot be seen is written out."""
    environment = Environment(
        loader=FileSystemLoader([folder, _TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every text that the template puts out passes here, so none can be forgotten.
        finalize=lambda value: as_printable(value) if type(value) is str else value,
    )
    environment.filters |= {
        "count": as_count,
        "size": as_size,
        "crop": lambda text: crop_middle(text, MAX_TEXT_CHARACTERS),
        "country_name": country_name,
    }
    environment.globals |= {
        "share": as_share,
        "plural": plural,
    }
    return environment
