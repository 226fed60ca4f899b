"""What a log file is, before anything is landed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clickmill.options import AsJson, option
from clickmill.work import print_json
from include.errors import UsageError

if TYPE_CHECKING:
    from spark_jobs.inspection.readings import Site


def inspect(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="log files, compressed or not; or folders")],
    source: Annotated[
        str, option("NAME", "the name of the new source; default: made of the file's", show_default=False)
    ] = "",
    base_url: Annotated[
        str | None, option("URL", "the site, such as https://shop.example.com, where the lines have paths alone")
    ] = None,
    time_zone: Annotated[
        str | None, option("ZONE", "of times that have no offset, such as Europe/Berlin", show_default="UTC")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="add the source to config/sources.toml")] = False,
    as_json: AsJson = False,
) -> int:
    """Say what log files are: their format, the settings to write, and how their lines would be read.

    A sample of each is read: some 5,000 lines of its beginning, and of its end where it is not compressed. No service
    runs, and nothing is landed. A source of that name that is declared, and fits, is kept. Exit code 1 if it is not
    sure what the files are, or they are of several formats.
    """
    from rich.console import Console

    from include.documents.terminal import print_document, print_line
    from include.settings import Settings
    from include.sources import source_name_of
    from spark_jobs.inspection.inspection import common_settings
    from spark_jobs.inspection.inspection import inspect as look_at
    from spark_jobs.inspection.shown_inspection import inspection_document
    from spark_jobs.inspection.source_toml import add_source, as_toml, require_name
    from spark_jobs.landing.given_files import given_files

    settings = Settings.from_environment()
    _ = settings.pipeline
    name = source or source_name_of(files[0])
    require_name(name)
    readable = [file for file in given_files(files) if file.same_as is None and file.left_out is None]
    site = _site(base_url, time_zone)
    inspections = [look_at(file.path, settings, name, site) for file in readable]
    if not as_json:
        for inspection in inspections:
            print_document(Console(), inspection_document(inspection, name))
    common = common_settings(inspections)
    is_new = common is not None and not any(inspection.is_declared for inspection in inspections)
    if write and common is None:
        raise UsageError("--write: expected files that are surely of one format; inspect them by themselves")
    if write and is_new and common is not None:
        add_source(settings, name, as_toml(name, common))
        print_line(Console(stderr=as_json), f"[sources.{name}] is added to {settings.sources_file}")
    elif write:
        print_line(Console(stderr=as_json), f"[sources.{name}] is in {settings.sources_file} already, and fits")
    if as_json:
        print_json({"source": name, "is_sure": common is not None, "is_new": is_new, "files": inspections})
    return 0 if common is not None else 1


def _site(base_url: str | None, time_zone: str | None) -> Site:
    from include.sources import SITE
    from include.time_formats import require_zone
    from spark_jobs.inspection.readings import Site

    try:
        require_zone(time_zone or "UTC")
    except ValueError as error:
        raise UsageError(f"--time-zone {time_zone!r}: {error}") from None
    site = base_url if base_url is None else base_url.removesuffix("/")
    if site is not None and not SITE.fullmatch(site):
        raise UsageError(f"--base-url {base_url!r}: expected a site without a path, such as https://shop.example.com")
    return Site(site, time_zone)
