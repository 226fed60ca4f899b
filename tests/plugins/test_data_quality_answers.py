"""The pages on data quality: what they answer, and where Airflow leads to them."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, date, datetime
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from include.errors import ClickmillError
from include.holds import Failure, event_row
from include.hours import Hour, HourRange
from include.journal import BACKFILL, Act, journal_row
from include.landing import as_landed_files, hour_folder
from include.locks import locks_of
from include.pages.render import write_page
from include.settings import Settings
from include.storage import entries
from include.stored_rows import arrow_schema
from include.tables import INGEST_ACCOUNTING, REPLAY_OUTCOMES
from plugins.data_quality.listings import LISTINGS
from plugins.data_quality_plugin import PREFIX, DataQualityPlugin
from spark_jobs.lake.declared import as_arrow
from spark_jobs.lake.journal import append_events, signed_act
from spark_jobs.lake.lake import Lake
from tests.plugins.quality_pages import EVIL, HOUR, dag_run
from tests.support.quality_rows import Row, append, event, validated_hours
from tests.support.waiting import wait_until

# --- what they answer -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["", f"hours/{HOUR}", "metric?suite=clicks&check=no_event_id_twice&series=web", *LISTINGS]
)
def test_pages_need_nothing_from_elsewhere_and_allow_nothing_else(
    client: TestClient, settings: Settings, path: str
) -> None:
    append(settings.lake, [Row(outcome="fail"), Row(hour="2026-03-01T04", partition="web 2026-03-01T04")])
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; base-uri 'none'; "
        r"form-action 'self'; frame-ancestors 'self'",
        policy,
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    addresses = re.findall(r"(?:href|src|action)=\"([^\"]*)\"", answer.text)
    assert addresses
    assert all(address.startswith(("/", "#")) and not address.startswith("//") for address in addresses), addresses
    assert not re.search(r"https?://|@import|url\(|style=|\son[a-z]+=", answer.text)


def test_an_empty_lake_says_what_to_do(client: TestClient) -> None:
    answer = client.get("")
    assert answer.status_code == 200
    assert "Nothing has been validated yet" in answer.text


def test_the_overview_says_which_job_waits_for_which(client: TestClient, settings: Settings) -> None:
    assert "waits for" not in client.get("").text
    locks = locks_of(settings)

    def wait() -> None:
        with locks.held("lake"):
            pass

    thread = Thread(target=wait)
    with locks.held("lake"):
        thread.start()
        wait_until(locks.waiters, "the other one waits", 10)
        text = client.get("").text
    thread.join()
    assert "1 job waiting" in text
    assert text.count(f"(process {os.getpid()} of ") == 2


def test_files_that_landed_late_are_named_also_if_nothing_was_validated(client: TestClient, settings: Settings) -> None:
    hour = Hour.parse(HOUR)
    folder = hour_folder(settings.landing, "web", hour)
    folder.mkdir(parents=True)
    for name in ("_SUCCESS", "a.json", "<b>.json"):
        (folder / name).touch()
    read = [file for file in as_landed_files(entries(folder)) if file["name"] == "a.json"]
    account = dict.fromkeys(INGEST_ACCOUNTING.column_names) | {
        "source": "web", "log_date": hour.day, "log_hour": hour.hour, "landed_files": read,
        "ingested_at": datetime.now(UTC),
    }  # fmt: skip
    write_deltalake(settings.lake / INGEST_ACCOUNTING.name, as_arrow(INGEST_ACCOUNTING, [account]))
    plan = "/data-quality/plan?source=web&amp;from=2026-03-01T05&amp;to=2026-03-01T06"
    late = f'web <a href="{plan}" class="hour">{HOUR}</a>: &lt;b&gt;.json</li>'
    assert "1 log hour with files that nobody has read." in client.get("").text
    assert late in client.get("").text
    append(settings.lake, [*validated_hours(Hour.parse("2026-03-01T00"), 5, seed=3)[0]])
    assert late in client.get("").text
    (folder / "<b>.json").unlink()
    assert "nobody has read" not in client.get("").text


def test_the_overview_lists_what_is_held_before_the_grid(client: TestClient, settings: Settings) -> None:
    append(settings.lake, [*validated_hours(Hour.parse("2026-03-01T00"), 5, seed=3)[0]])
    append(
        settings.lake,
        [Row(outcome="fail", observed="duplicate_event_ids = 7"), event(HOUR, "held", "ids are there twice")],
    )
    text = client.get("").text
    assert text.index("1 click hour held") < text.index("ids are there twice") < text.index('id="hours"')
    assert "required_actions?response_received=false" in text
    assert re.search(r'<td role="cell" class="fail"><a href="[^"]*/hours/2026-03-01T05#suite-clicks"', text)
    # Between the first and the last hour that is known there is nothing about these.
    assert "2026-03-01T01 to 2026-03-01T04" in text


def test_urls_that_are_nearly_all_different_are_named_until_they_are_not(
    client: TestClient, settings: Settings
) -> None:
    def say(hour: str, outcome: str, observed: str) -> None:
        check = {"check_id": "distinct_url_share", "severity": "warning", "outcome": outcome, "observed": observed}
        append(settings.lake, [Row(hour=hour, partition=f"web {hour}", **check)])  # type: ignore[arg-type]

    cause = "because of the parameter <b>: [sources.web.pages] drop_parameters = ..."
    say("2026-03-01T05", "fail", cause)
    text = client.get("").text
    assert "URLs of web are nearly all different</strong>" in text
    assert "because of the parameter &lt;b&gt;: [sources.web.pages] drop_parameters" in text
    assert "nearly all different" not in client.get("?source=shop").text
    say("2026-03-01T06", "pass", "distinct_url_share = 0.1")
    assert "nearly all different" not in client.get("").text


def test_every_bad_hour_is_listed_once_held_before_failing_before_warning(
    client: TestClient, settings: Settings
) -> None:
    hours = [f"2026-03-01T{number:02d}" for number in range(24)]
    for number, hour in enumerate(hours):
        severity = "warning" if number >= 22 else "critical"
        failed = Row(hour=hour, partition=f"web {hour}", outcome="fail", severity=severity)
        append(settings.lake, [failed, event(hour, "held" if number < 3 else "published", f"why {number}")])
    text = client.get("").text
    assert "3 click hours held" in text
    assert "19 hours with critical failures" in text
    assert "2 hours with warnings only" in text
    listed = re.findall(r'class="concern (\w+)">\s*<h3><a href="[^"]*/hours/([^"]*)"', text)
    # Of those that fail at most twelve, newest first.
    assert listed == [("held", hour) for hour in hours[2::-1]] + [("fail", hour) for hour in hours[21:9:-1]]
    assert "and 7 earlier failing hours" in text


def test_filters_keep_their_choice_and_change_the_grid(client: TestClient, settings: Settings) -> None:
    append(
        settings.lake, [Row(outcome="fail"), Row(source="shop", partition=f"shop {HOUR}", suite="volume", check_id="v")]
    )
    of_shop = client.get("", params={"source": "shop", "first": "2026-03-01", "last": "2026-03-01"}).text
    assert "<option selected>shop</option>" in of_shop
    assert 'class="fail"' not in of_shop
    assert 'class="fail"' in client.get("", params={"source": "web"}).text
    assert "No hour of these days was validated" in client.get("", params={"first": "2027-01-01"}).text


def test_of_many_days_there_is_a_row_each_with_the_worst_of_every_hour(client: TestClient, settings: Settings) -> None:
    rows: list[Any] = []
    for day, hour in (("01", "05"), ("02", "00"), ("09", "23")):
        name = f"2026-03-{day}T{hour}"
        rows += [Row(hour=name, partition=f"{of} {name}", source=of) for of in ("web", "shop")]
        rows += [Row(hour=name, suite="aggregates", partition=name, source=None), event(name, "published")]
    warned = {"outcome": "fail", "severity": "warning"}
    rows.append(Row(hour="2026-03-02T00", partition="shop 2026-03-02T00", source="shop", suite="volume", **warned))
    rows += [Row(hour="2026-03-09T23", partition="2026-03-09T23", source=None, suite="layout", outcome="fail")]
    append(settings.lake, rows)
    text = client.get("", params={"first": "2026-03-01", "last": "2026-03-09"}).text
    by_day, by_source = re.findall(r'<table class="squares">.*?</table>', text, re.DOTALL)
    assert re.findall(r'<th scope="row"><a href="[^"]*first=([^&]*)&amp;last=\1#hours">\1</a>', by_day) == [
        f"2026-03-0{day}" for day in range(9, 0, -1)
    ]
    states = [re.findall(r'<td(?: class="(\w+)")?>', row) for row in re.findall(r"<tr>.*?</tr>", by_day)[1:]]
    assert [len(of_day) for of_day in states] == [24] * 9
    assert (states[0][23], states[7][0], states[8][5]) == ("fail", "warning", "pass")
    assert set(states[1]) == {"missing"}
    assert states[8][:5] == [""] * 5, "nothing is known from before the first hour"
    of_shop, of_web = re.findall(r"<tr>.*?</tr>", by_source)[1:]
    absent = ["missing"] * 6
    assert re.findall(r'<td class="(\w+)">', of_shop) == ["pass", "warning", *absent, "pass"]
    assert re.findall(r'<td class="(\w+)">', of_web) == ["pass", "pass", *absent, "pass"]
    assert "source=shop" in of_shop
    alone = client.get("", params={"first": "2026-03-01", "last": "2026-03-09", "source": "web"}).text
    assert alone.count('<table class="squares">') == 1


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"first": "yesterday"}, "expected a day such as 2026-03-01"),
        ({"first": "2026-03-02", "last": "2026-03-01"}, "is after last day"),
        ({"last": "0001-01-01"}, "expected a day"),
    ],
)
def test_a_wrong_day_is_a_sentence(
    client: TestClient, settings: Settings, query: dict[str, str], sentence: str
) -> None:
    append(settings.lake, [Row()])
    answer = client.get("", params=query)
    assert answer.status_code == 400
    assert sentence in answer.text


def moment(minute: int) -> datetime:
    return datetime(2026, 3, 1, 7, minute, tzinfo=UTC)


def failed(minute: int, value: float, check_id: str = "no_event_id_twice") -> list[Row]:
    """A run that finds this in the log hour, and nothing in the click hour."""
    of_run: dict[str, Any] = {"run_id": f"run-{minute}", "validated_at": moment(minute)}
    observed = f"ids = {value}"
    return [
        Row(**of_run, outcome="fail", observed=observed, observed_value=value, check_id=check_id),
        Row(**of_run, suite="aggregates", partition=HOUR, source=None),
    ]


def shown(value: float) -> list[Failure]:
    return [Failure("web 2026-03-01T05", "no_event_id_twice", "", "clicks", f"ids = {value}", value, 0, 0)]


def test_what_a_person_decided_on_needs_no_attention(client: TestClient, settings: Settings) -> None:
    decided = event(
        HOUR, "published_anyway", "known fault", "ada",
        at=moment(20), answered_at=moment(15), findings=shown(7),
    )  # fmt: skip
    append(settings.lake, [*failed(10, 7), event(HOUR, "held", "ids", at=moment(11)), decided])
    text = client.get("").text
    assert "Nothing is held, nothing fails" in text
    assert "1 click hour decided by a person" in text
    assert re.search(r"published anyway.* by <strong>ada</strong> 2026-03-01 07:15: known fault", text)
    assert "also for the counts of 2026-03-01 07:20" in text
    of_hour = client.get(f"hours/{HOUR}").text
    assert "Counted again since: published as decided, 2026-03-01 07:20." in of_hour
    # Another check fails now, of a log hour without clicks: nobody has seen that.
    append(settings.lake, failed(30, 7, "other"))
    text = client.get("").text
    assert "1 hour</strong> with critical failures" in text or "1 hour with critical failures" in text


def test_a_hold_is_since_its_beginning_and_says_what_readers_see(client: TestClient, settings: Settings) -> None:
    append(settings.lake, [*failed(10, 7), event(HOUR, "held", "ids", at=moment(11))])
    assert "Readers see nothing of this hour yet." in client.get("").text
    append(settings.lake, [*failed(20, 7), *failed(30, 8)])
    refused = event(HOUR, "held", "ids", at=moment(31), note="the answer of ada was not carried out")
    append(settings.lake, [refused])
    for text in (client.get("").text, client.get(f"hours/{HOUR}").text):
        assert "2026-03-01 07:11" in text
        assert "Checked again 2 times since. Readers see nothing of this hour yet. the answer of ada" in text


def test_a_dropped_hour_says_how_it_comes_back(client: TestClient, settings: Settings) -> None:
    before = event(HOUR, "published", "fine", at=moment(1))
    dropped = event(HOUR, "dropped", "wrong", "ada", at=moment(12), answered_at=moment(12))
    append(settings.lake, [before, *failed(10, 7), dropped])
    text = client.get(f"hours/{HOUR}").text
    assert "Readers see what was published before. It stays so" in text
    assert f"clickmill decide --hour {HOUR} --decision release" in text


def test_an_hour_shows_what_rules_have_left_out_by_source_and_rule(client: TestClient, settings: Settings) -> None:
    append(settings.lake, failed(10, 7))
    assert "Left out" not in client.get(f"hours/{HOUR}").text
    columns = ["source", "log_date", "log_hour", "left_out_by_rule"]
    counts = [("shop", {"static_file": 12, "other_status": 3000}), ("web", None), ("app", {})]
    of_hour = {"log_date": date(2026, 3, 1), "log_hour": 5}
    rows = [{"source": source, "left_out_by_rule": of_rules, **of_hour} for source, of_rules in counts]
    accounts = pa.Table.from_pylist(rows, arrow_schema(INGEST_ACCOUNTING, columns))
    write_deltalake(settings.lake / "ingest_accounting", accounts, partition_by=columns[:3])
    text = client.get(f"hours/{HOUR}").text
    listed = re.findall(r'<li>(\w+): ([\d,]+ lines) <span class="code">(\w+)</span></li>', text)
    assert listed == [("shop", "3,000 lines", "other_status"), ("shop", "12 lines", "static_file")]
    assert "Left out" not in client.get(f"hours/{HOUR}?source=web").text


def test_an_hour_shows_found_and_expected_the_decision_and_where_to_go_on(
    client: TestClient, settings: Settings, session: Session
) -> None:
    dag_run(session, "scheduled__1", HOUR)
    dag_run(session, "other_hour", "2026-03-01T06")
    append(
        settings.lake,
        [
            Row(outcome="fail", observed="duplicate_event_ids = 7", observed_value=7, examples=["id-1", "id-2"]),
            Row(hour="2026-03-01T04", partition="web 2026-03-01T04"),
            event(HOUR, "held", "ids are there twice"),
            event(HOUR, "published_anyway", "known fault", "ada", at=datetime(2026, 3, 2, tzinfo=UTC)),
        ],
    )
    text = client.get(f"hours/{HOUR}").text
    for shown in (
        "Published anyway",
        "by <strong>ada</strong>: known fault",
        "ids are there twice",
        "duplicate_event_ids = 7",
        "exactly 0",
        "id-2",
        'href="/dags/clicks_hourly/runs/scheduled__1" data-airflow',
        "/dags/clicks_hourly/runs?partition_key_pattern=2026-03-01T05",
        "/data-quality/docs/run-1/log_hours.html",
        "over the last 7 days",
        "/data-quality/metric?suite=clicks&amp;check=no_event_id_twice&amp;series=web",
    ):
        assert shown in text, shown
    assert "other_hour" not in text


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("hours/2026-03-01T09", 404, "no run has validated it yet"),
        ("hours/now", 400, "expected UTC such as 2026-03-01T05"),
        ("metric?suite=clicks&check=none", 404, "There is no result of the check none"),
        ("nowhere", 404, "There is no such page"),
        ("run?dag_id=clicks_hourly&run_id=none", 404, "Airflow has no run none"),
    ],
)
def test_what_is_not_there_is_a_sentence(
    client: TestClient, settings: Settings, path: str, status: int, sentence: str
) -> None:
    append(settings.lake, [Row()])
    answer = client.get(path)
    assert answer.status_code == status
    assert sentence in answer.text
    assert "<h1>" in answer.text


def test_a_metric_shows_values_with_the_bounds_of_their_time(client: TestClient, settings: Settings) -> None:
    for number in range(4):
        hour = f"2026-03-01T0{number}"
        append(
            settings.lake,
            [
                Row(
                    hour=hour,
                    partition=f"web {hour}",
                    observed_value=100 + number,
                    lowest=number,
                    highest=200 + number,
                    outcome="fail" if number == 2 else "pass",
                )
            ],
        )
    text = client.get("metric", params={"suite": "clicks", "check": "no_event_id_twice", "series": "web"}).text
    rows = re.findall(r"T0(\d)</a></th><td>.*?</td><td[^>]*>(\d+)</td><td[^>]*>(\d+)</td><td[^>]*>(\d+)</td>", text)
    assert rows == [(str(n), str(100 + n), str(n), str(200 + n)) for n in (3, 2, 1, 0)]
    assert text.count("<circle") == 2  # the one that failed, in the wide and in the narrow chart


def test_backfills_say_who_decided_what_to_do_next_and_show_the_comparison(
    client: TestClient, settings: Settings
) -> None:
    assert "There has been no backfill" in client.get("backfills").text
    lake, backfill_id = Lake(None, settings), "20260302T000000-ab12"
    hours = HourRange(Hour.parse("2026-03-01T00"), Hour.parse("2026-03-02T00"))

    def say(event: str, minute: int, actor: str | None = None, because: str = EVIL, **details: Any) -> None:
        at = datetime(2026, 3, 2, 0, minute, tzinfo=UTC)
        row = journal_row(
            Act(backfill_id, "backfill_clicks"), BACKFILL, backfill_id, event, at,
            hours=hours, source="web", actor=actor, because=because, details=details,
        )  # fmt: skip
        append_events(lake, [row])

    say("begun", 0, chunk_hours=5, is_staged=True)
    say("compared", 1, counts="c1")
    page = client.get("backfills").text
    assert "waits for a decision" in page
    assert "clickmill decide-backfill 20260302T000000-ab12" in page
    assert "<script>alert" not in page
    assert client.get("backfills/20260302T000000-ab12").status_code == 404
    write_page("old against new", settings.reports / "backfills" / "20260302T000000-ab12.html")
    comparison = client.get("backfills/20260302T000000-ab12")
    assert comparison.text == "old against new"
    assert "script-src" not in comparison.headers["content-security-policy"]
    assert comparison.headers["content-security-policy"].startswith("default-src 'none'")
    for nowhere in ("backfills/..%2Freport", "backfills/none"):
        assert client.get(nowhere).status_code == 404
    say("approved", 2, actor="Ada", because="agrees")
    say("publishing", 3, versions={}, click_hours=["2026-03-01T00"])
    say("swapping", 4, table="published_clicks_by_url_hourly")
    assert "Tables that have it: published_clicks_by_url_hourly." in client.get("backfills").text
    say("swapped", 5)
    page = client.get("backfills").text
    assert "Approved by Ada, 2026-03-02 00:02 UTC" in page
    assert "Possible until 2026-04-01 00:03 UTC at least" in page


def test_the_audit_says_who_had_what_done_why_and_what_became_of_it(client: TestClient, settings: Settings) -> None:
    assert "Nobody has decided or changed anything yet" in client.get("audit").text
    lake = Lake(None, settings)
    with signed_act(lake, "decide_held", "2026-03-01T05: publish", "Ada", EVIL) as signed:
        hour = Hour.parse(HOUR)
        signed.decide([event_row(signed.act, datetime.now(UTC), hour, "dropped", EVIL, actor=signed.act.actor)])
        killed = client.get("audit").text
        signed.details["rows"] = "7"
    with suppress(ClickmillError), signed_act(lake, "undo_backfill", "20260302T000000-ab12", "Ben", "wrong files"):
        raise ClickmillError("others have published since")
    with signed_act(lake, "erase_visitor", "1 request", "Eve", "asked to") as signed:
        signed.begin()
        page = client.get("audit").text
    assert "Decide held 2026-03-01T05: dropped: begun, not ended" in re.sub(r"<[^>]*>", "", killed)
    sections = [re.sub(r"<[^>]*>", "", part) for part in page.split("<section")[1:]]
    headings = [
        "Erase visitor 1 request: begun",
        "Undo backfill 20260302T000000-ab12: failed",
        "Decide held 2026-03-01T05",
    ]
    assert [heading in section for heading, section in zip(headings, sections, strict=True)] == [True] * 3
    assert "By Ben, " in sections[1]
    assert "error ClickmillError: others have published since" in sections[1]
    assert "rows 7" in sections[2]
    assert "<script>alert" not in page
    assert "Erase visitor 1 request: completed" in re.sub(r"<[^>]*>", "", client.get("audit").text)


def test_the_audit_has_the_words_for_a_dropped_backfill_as_they_were_given(
    client: TestClient, settings: Settings
) -> None:
    lake, backfill_id = Lake(None, settings), "20260302T000000-ab12"
    with signed_act(lake, "decide_backfill", f"{backfill_id}: drop", "Ada", "wrong files") as signed:
        act, hour = signed.act, Hour.parse(HOUR)
        because = f"backfill {backfill_id} of web {HOUR}: {act.because}"
        signed.decide([event_row(act, datetime.now(UTC), hour, "dropped", because, actor=act.actor)])
        signed.decide(
            [
                journal_row(
                    act, BACKFILL, backfill_id, "dropped", datetime.now(UTC),
                    hours=HourRange.single(hour), source="web", actor=act.actor, because=act.because, details={},
                )
            ]
        )  # fmt: skip
        killed = re.sub(r"<[^>]*>", "", client.get("audit").text)
    ended = re.sub(r"<[^>]*>", "", client.get("audit").text)
    assert f"Decide backfill {backfill_id}: dropped: begun, not ended" in killed
    assert f"Decide backfill {backfill_id}: drop: completed" in ended
    for page in (killed, ended):
        assert re.search(r"UTC\s+wrong files\s", page)
        assert "of web" not in page


def test_the_index_that_cannot_be_read_is_a_sentence(client: TestClient, settings: Settings) -> None:
    append(settings.lake, [Row()])
    settings.quality_index.mkdir(parents=True)
    answer = client.get("")
    assert answer.status_code == 503
    assert "remove that file" in answer.text


# --- the tab of a run -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition_key", "conf", "leads_to"),
    [
        (HOUR, {}, f"/data-quality/hours/{HOUR}"),
        (None, {"hour": HOUR}, f"/data-quality/hours/{HOUR}"),
        (None, {"from": "2026-03-01T05:00:00Z", "to": "2026-03-01T06:00:00Z"}, f"/data-quality/hours/{HOUR}"),
        (
            None,
            {"from": "2026-03-01T05:00:00Z", "to": "2026-03-03T00:00:00Z"},
            "/data-quality/?first=2026-03-01&last=2026-03-02#hours",
        ),
    ],
)
def test_the_tab_of_a_run_leads_to_its_hours(
    client: TestClient, session: Session, partition_key: str | None, conf: dict[str, str], leads_to: str
) -> None:
    dag_run(session, "manual__2026-03-01T05:00:00+00:00", partition_key, conf=conf)
    answer = client.get(
        "run",
        params={"dag_id": "clicks_hourly", "run_id": "manual__2026-03-01T05:00:00+00:00"},
        follow_redirects=False,
    )
    assert (answer.status_code, answer.headers["location"]) == (303, leads_to)


@pytest.mark.parametrize(
    ("key", "conf"),
    [(None, {}), ("customer-7", {}), ("//evil.example", {}), (None, {"hour": 5}), (None, {"from": [1]})],
)
def test_a_run_without_an_hour_says_so(
    client: TestClient, session: Session, key: str | None, conf: dict[str, Any]
) -> None:
    dag_run(session, "run", key, dag_id="other", conf=conf)
    answer = client.get("run", params={"dag_id": "other", "run_id": "run"}, follow_redirects=False)
    assert answer.status_code == 200
    assert "has no partition that Clickmill knows" in answer.text


# --- the plugin -----------------------------------------------------------------------------------


def test_the_plugin_offers_an_entry_and_a_tab() -> None:
    nav, tab = DataQualityPlugin.external_views
    assert (nav["name"], nav["destination"], nav["nav_top_level"]) == ("Data quality", "nav", True)
    assert (tab["destination"], tab["href"]) == ("dag_run", "data-quality/run?dag_id={DAG_ID}&run_id={RUN_ID}")
    assert DataQualityPlugin.fastapi_apps[0]["url_prefix"] == PREFIX


@pytest.mark.parametrize(
    ("replay_id", "sentence"),
    [
        (None, "a replay would recover 6 clicks and 1 duplicate; 0 lines would stay (as of 2026-03-02 07:30)."),
        ("r-<1", "replay r-&lt;1 recovered 6 clicks and 1 duplicate; 0 lines stayed (as of 2026-03-02 07:30)."),
    ],
)
def test_an_hour_says_what_a_replay_recovers(
    client: TestClient, settings: Settings, replay_id: str | None, sentence: str
) -> None:
    append(settings.lake, [Row()])
    hour = Hour.parse(HOUR)
    row = {
        "source": "web", "log_date": hour.day, "log_hour": hour.hour, "reason": "missing_url", "clicks": 6,
        "duplicates": 1, "stay": 0, "replay_id": replay_id, "at": datetime(2026, 3, 2, 7, 30, tzinfo=UTC),
    }  # fmt: skip
    schema = arrow_schema(REPLAY_OUTCOMES, REPLAY_OUTCOMES.column_names)
    write_deltalake(settings.lake / REPLAY_OUTCOMES.name, pa.Table.from_pylist([row], schema))
    text = " ".join(re.sub(r"<[^>]+>", "", client.get(f"hours/{HOUR}").text).split())
    assert sentence in text
