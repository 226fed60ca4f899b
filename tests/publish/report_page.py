"""Data for the HTML report, and what a browser would make of the page."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

from spark_jobs.publish.report import AccountingRow, HourOfClicks, KeyCount, ReportData, Verdict

HOSTILE = "\"'><script>alert(1)</script><img src=//evil.example/x onerror=alert(1)>{{ 7*7 }}&amp;"
PASSED = Verdict(passed=True, critical_failures=[], warnings=[])
VOID_ELEMENTS = {"meta", "rect", "path", "br", "img", "link"}


class Page(HTMLParser):
    """What a browser would make of the page: its elements, their texts, and its tables as rows of cells."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._caption = ""
        self.feed(html)
        self.close()
        assert not self.open, f"elements left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)
        if tag == "caption":
            self._caption = ""
        elif tag == "tr":
            self.tables.setdefault(self._caption, []).append([])
        elif tag in ("th", "td"):
            self.tables[self._caption][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        self.texts.append((inside, data))
        if inside == "caption":
            self._caption += data
        elif {"th", "td"} & set(self.open):
            self.tables[self._caption][-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(text for inside, text in self.texts if inside != "style").split())

    def rows(self, caption: str) -> list[list[str]]:
        return [[cell.strip() for cell in row] for row in self.tables[caption]]

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.elements if name in (attributes.get("class") or "").split()]

    def charts(self, kind: str) -> list[dict[str, str | None]]:
        return [attributes for attributes in self.with_class("chart") if kind in (attributes["class"] or "").split()]


def an_accounting_row(**values: object) -> AccountingRow:
    row = AccountingRow(
        source="web",
        log_hour="2026-03-01T05",
        lines=1000,
        accepted=900,
        duplicates=60,
        quarantined=40,
        quarantined_by_reason={"not_json": 30, "bad_time": 10},
        late=7,
        out_of_order=8,
        files=2,
        bytes=123_456,
        is_closed=True,
        damaged_files=[],
    )
    return replace(row, **values)  # type: ignore[arg-type]


def some_data(**values: object) -> ReportData:
    data = ReportData(
        title="Clicks",
        generated_at=datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
        hours=[HourOfClicks("2026-03-01T04", 1_234, 34), HourOfClicks("2026-03-01T05", 2_000, 200)],
        urls=[
            KeyCount("https://a.example/", 3_000, 200, 1_111),
            KeyCount("https://b.example/x?y=1", 234, 34, 99),
        ],
        countries=[KeyCount("DE", 3_234, 234, 1_200)],
        accounting=[an_accounting_row()],
        verdict=PASSED,
    )
    return replace(data, **values)  # type: ignore[arg-type]


def hostile_data() -> ReportData:
    return some_data(
        title=HOSTILE,
        urls=[
            KeyCount(f"http://x.example/{HOSTILE}", 20, 1, 1),
            KeyCount("javascript:alert(1)", 10, 1, 1),
            KeyCount("http://x.example/\u202egpj.exe\x00\x1b[2J\udc80", 5, 0, 1),
        ],
        countries=[KeyCount(HOSTILE, 30, 2, 2), KeyCount("</title></svg><script>", 5, 0, 1)],
        accounting=[
            an_accounting_row(
                source=HOSTILE,
                quarantined_by_reason={HOSTILE: 40},
                damaged_files=[HOSTILE, "bad\udcff.gz"],
                is_closed=False,
            )
        ],
        verdict=Verdict(passed=False, critical_failures=[HOSTILE], warnings=[HOSTILE]),
    )
