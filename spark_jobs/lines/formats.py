"""The formats of lines: which module takes a source's lines apart."""

from __future__ import annotations

from include.source_fields import field_path
from include.sources import Source
from spark_jobs.lines import access_log_lines, delimited_lines, json_lines
from spark_jobs.lines.extraction import Extraction
from spark_jobs.lines.wrapped_lines import inside_of


def extraction_of(source: Source, header: str | None = None) -> Extraction:
    """How the lines of a source are taken apart, which have this header before them in their file."""
    return _unwrapped(_of_format(source, header), source)


def _unwrapped(extraction: Extraction, source: Source) -> Extraction:
    return inside_of(extraction, source.wrapper) if source.wrapper else extraction


def _of_format(source: Source, header: str | None) -> Extraction:
    if source.delimited is not None:
        return delimited_lines.extraction(source.delimited, header, source.tested_fields)
    if source.fields is not None:
        only_tested = {role: ((field_path(name),),) for role, name in source.tested_fields.items()}
        return json_lines.extraction(source.fields.paths() | only_tested)
    return access_log_lines.extraction(source.access_format, tested=tuple(source.tested_fields.items()))


def time_extraction_of(source: Source, header: str | None = None) -> Extraction:
    """The same for whoever needs the role ``time`` alone; the others may be missing."""
    return _unwrapped(_time_of_format(source, header), source)


def _time_of_format(source: Source, header: str | None) -> Extraction:
    if source.delimited is not None:
        return delimited_lines.extraction(source.delimited, header, only_time=True)
    if source.fields is not None:
        return json_lines.extraction({"time": source.fields.paths()["time"]})
    return access_log_lines.extraction(source.access_format, frozenset({"time"}))
