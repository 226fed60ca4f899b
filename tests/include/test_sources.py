from __future__ import annotations

from pathlib import Path

import pytest

from include.errors import UsageError
from include.settings import REPOSITORY, Settings
from include.sources import choose_sources, choose_streamed, load_sources


def _write(settings: Settings, text: str) -> Settings:
    settings.sources_file.write_text(text, encoding="utf-8")
    return settings


def test_every_error_is_in_one_message(settings: Settings) -> None:
    wrong = """
    [sources.one]
    format = "xml"
    [sources.two]
    format = "json"
    lateness_hours = -1
    lateness = 3
    [sources.two.fields]
    time = "a..b"
    time_format = "unix"
    [sources.three]
    format = "combined"
    base_url = "example.com"
    """
    with pytest.raises(UsageError) as raised:
        load_sources(_write(settings, wrong))
    message = str(raised.value)
    assert raised.value.exit_code == 2
    assert message.startswith(f"{settings.sources_file}: ")
    for place, got in {
        "sources.one.format": "'xml'",
        "sources.two.lateness_hours": "-1",
        "sources.two.lateness": "3",
        "sources.two.fields.time": "'a..b'",
        "sources.two.fields.url": "",
        "sources.two.fields.time_format": "'unix'",
        "sources.three.base_url": "'example.com'",
    }.items():
        assert f"{place}: " in message
        assert got in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[sources.a]\nformat = "json"', "a json source needs it"),
        ('[sources.a]\nformat = "combined"', "expected base_url ="),
        ('[sources.a]\nformat = "access"\nbase_url = "http://a"', "expected log_format = '$remote_addr - "),
        (
            '[sources.a]\nformat = "common"\nlog_format = "common"\nbase_url = "http://a"',
            "an access source needs log_format",
        ),
        (
            '[sources.a]\nformat = "access"\nlog_format = "combine"\nbase_url = "http://a"',
            "'combine' is no format: expected one of common, combined, combinedio",
        ),
        (
            '[sources.a]\nformat = "access"\nlog_format = "%J %h$"\nbase_url = "http://a"',
            "'%J' is no directive of httpd's LogFormat: expected one as %h, %>s or %{Referer}i; it has no time: "
            "expected $time_local, $time_iso8601, $msec, %t or %{…}t in it; it does not say what was asked for",
        ),
        (
            '[sources.a]\nformat = "access"\nlog_format = "[$time_local] $host$request"',
            "nothing separates $host and $request: expected a text between them",
        ),
        (
            '[sources.a]\nformat = "access"\nlog_format = "%{%F %T}t %r"\nbase_url = "http://a"',
            'have no offset: expected time_zone = "Europe/Berlin", or %z',
        ),
        (
            '[sources.a]\nformat = "access"\nlog_format = "%{%T}t %r"\nbase_url = "http://a"\ntime_zone = "UTC"',
            "log_format: '%H:%M:%S' has no year",
        ),
        (
            '[sources.a]\nformat = "common"\nbase_url = "http://a"\ntime_zone = "UTC"',
            "the times of log_format have their offset: expected no time_zone",
        ),
        ('[sources.a]\nformat = "access"\nlog_format = "main"', 'expected base_url = "https://shop.example.com"'),
        (
            '[sources.a]\nformat = "common"\nbase_url = "http://a"\ntrusted_proxies = ["::/1", "10.1.1.1/8", "web"]',
            '10.1.1.1/8, web: expected addresses and networks, such as ["10.0.0.0/8", "2001:db8::1"]',
        ),
        (
            '[sources.a]\nformat = "json"\ntrusted_proxies = ["::1"]\n[sources.a.fields]\ntime = "t"\nurl = "u"',
            "trusted_proxies belongs to a source whose lines have client addresses",
        ),
        (
            '[sources.a]\nformat = "common"\nbase_url = "http://a"\n[sources.a.fields]\ntime = "t"\nurl = "u"',
            "belongs to a json source",
        ),
        ('[sources.a]\nformat = "json"\n[sources.a.fields]\ntime = "t"\npath = "u"', 'host = "request.host"'),
        ('[sources.Web]\nformat = "common"\nbase_url = "http://a"', "source name 'Web': expected lower case"),
        ('[sources."../up"]\nformat = "common"\nbase_url = "http://a"', "source name '../up'"),
        ('[sources."web\\n"]\nformat = "common"\nbase_url = "http://a"', "source name 'web\\n': expected lower case"),
        ("[sources", "is not TOML"),
        ("", "sources: Field required"),
    ],
)
def test_wrong_file_is_refused(settings: Settings, text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_sources(_write(settings, text))
    assert message in str(raised.value)
    assert str(settings.sources_file) in str(raised.value)


def test_settings_that_do_not_fit_each_other_are_told_together(settings: Settings) -> None:
    text = (
        '[sources.a]\nformat = "json"\ncount = "page_views"\ntime_zone = "UTC"\ntrusted_proxies = ["10.0.0.0/8"]\n'
        '[sources.a.fields]\ntime = "t"\npath = "p"\n[sources.b]\nformat = "common"\nbase_ur = "http://a"\n'
    )
    with pytest.raises(UsageError) as raised:
        load_sources(_write(settings, text))
    for message in (
        "time_zone belongs to an access source",
        'addresses: expected their field, such as client_address = "ip"',
        'expected base_url = "https://shop.example.com", or the host',
        "count = page_views: method",
        "sources.b.base_ur: Extra inputs are not permitted: there is no such setting, expected base_url (got",
    ):
        assert message in str(raised.value)


@pytest.mark.parametrize(
    ("setting", "message", "unsaid"),
    [
        ('base_url = "https://ada:s3cret@a"', "expected scheme and host only, such as https://shop", "s3cret"),
        ('base_url = "https://a/b"', "expected scheme and host only, such as https://shop", "pattern"),
        ('base_url = "http://a"\nsockets.ports = [0]', "sockets.ports.0: ", "at least 1 item"),
        ('base_url = "http://a"\nkafka.options = { "sasl.password" = "s3cret" }', "kafka.topic: Field", "s3cret"),
        ('base_url = "http://a"\ndrop = [{ name = "x", agent = "y" }]', "user_agent", "Value error"),
        ("inside = '\"\"'\nbase_url = 'http://a'", "sources.a.inside: '\"\"': expected a field, such as", "None"),
    ],
)
def test_an_error_says_what_is_expected_and_no_more_than_that(
    settings: Settings, setting: str, message: str, unsaid: str
) -> None:
    with pytest.raises(UsageError) as raised:
        load_sources(_write(settings, f'[sources.a]\nformat = "common"\n{setting}'))
    assert message in str(raised.value)
    assert unsaid not in str(raised.value)


def test_absent_file_is_named(settings: Settings) -> None:
    settings.sources_file.unlink()
    with pytest.raises(UsageError, match=str(settings.sources_file)):
        load_sources(settings)


def test_all_means_the_scheduled_ones(settings: Settings) -> None:
    assert [source.name for source in choose_sources(settings, "all")] == ["web"]
    assert [source.name for source in choose_sources(settings, "access")] == ["access"]
    with pytest.raises(UsageError, match=r"no source 'nothing'.*expected one of access, web, or all"):
        choose_sources(settings, "nothing")


def test_dotted_paths_lead_into_nested_fields(settings: Settings) -> None:
    fields = load_sources(settings)["web"].fields
    assert fields is not None
    assert fields.paths()["country"] == ((("geo", "country"),),)
    assert "client_address" not in fields.paths()


def test_shipped_configuration_is_valid() -> None:
    shipped = Settings.from_environment({"CLICKMILL_HOME": str(Path("/nowhere"))})
    assert shipped.sources_file == REPOSITORY / "config" / "sources.toml"
    assert [source.name for source in choose_sources(shipped, "all")] == ["web"]
    assert shipped.pipeline.buckets >= 1


def test_a_source_has_bounds_and_checks_of_its_own(settings: Settings) -> None:
    settings.pipeline_file.write_text(
        "[thresholds]\nlate_share = {warning = 0.1, critical = 0.9}\n"
        "[[checks]]\nname = 'x'\nmetric = 'lines'\nlowest = 1\nreason = 'for all'\n"
        "[[checks]]\nname = 'y'\nmetric = 'lines'\nlowest = 2\nreason = 'for all'\n"
    )
    sources = load_sources(
        _write(
            settings,
            """
            [sources.a]
            format = "common"
            base_url = "http://a"
            thresholds.late_share = { critical = 0.4 }
            [[sources.a.checks]]
            name = "x"
            metric = "null_share"
            column = "referrer"
            highest = 0.25
            reason = "of its own"
            [sources.b]
            format = "common"
            base_url = "http://b"
            """,
        )
    )
    late = {name: source.threshold("late_share", settings.pipeline) for name, source in sources.items()}
    assert (late["a"].warning, late["a"].critical) == (0.1, 0.4)
    assert (late["b"].warning, late["b"].critical) == (0.1, 0.9)
    checks = {name: source.all_checks(settings.pipeline) for name, source in sources.items()}
    assert [(check.name, check.reason) for check in checks["a"]] == [("y", "for all"), ("x", "of its own")]
    assert [check.name for check in checks["b"]] == ["x", "y"]
    assert checks["a"][1].measured == "null_share(referrer)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thresholds.skew = {warning = 3}", "sources.a.thresholds: unknown threshold 'skew'"),
        (
            "thresholds.late_share = {critical = 0.2}",
            "sources.a.thresholds.late_share: critical = 0.2 is below warning = 0.25 (the bound that is left out",
        ),
        (
            "checks = [{name = 'x', metric = 'nulls', highest = 1, reason = 'r'}]",
            "unknown metric 'nulls'; expected one of",
        ),
        (
            "checks = [{name = 'x', metric = 'null_share', column = 'c', highest = 1, reason = 'r'}]",
            "unknown column 'c'",
        ),
    ],
)
def test_unknown_thresholds_and_checks_of_a_source_are_named(settings: Settings, text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_sources(_write(settings, f"[sources.a]\nformat = 'common'\nbase_url = 'http://a'\n{text}\n"))
    assert message in str(raised.value)


ACCESS = 'format = "combined"\nbase_url = "http://a"\n'


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ('[sources.a.files]\n[sources.a.kafka]\ntopic = "t"', "[kafka] is a topic; [files] and [sockets] belong to"),
        ('[sources.a.sockets]\n[sources.a.kafka]\ntopic = "t"', "[kafka] is a topic; [files] and [sockets] belong to"),
        ("[sources.a.sockets]\nports = [70000]", "sources.a.sockets.ports.0"),
        ("[sources.a.sockets]\nports = [1, 1]", "expected each port once"),
        ("[sources.a.sockets]\nports = []", "sources.a.sockets.ports"),
        ("[sources.a.files]\nmax_files_per_batch = 0", "sources.a.files.max_files_per_batch"),
        (
            f"[sources.a.sockets]\n[sources.b]\n{ACCESS}[sources.b.sockets]\nports = [9991]",
            "port 9991 is in [sockets] of a and of b",
        ),
    ],
)
def test_a_wrong_setting_of_files_or_sockets_is_named(settings: Settings, tables: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_sources(_write(settings, f"[sources.a]\n{ACCESS}{tables}"))
    assert message in str(raised.value)


def test_streamed_sources_are_chosen_by_names_or_all(settings: Settings) -> None:
    topic = '[sources.b.kafka]\ntopic = "t"'
    _write(
        settings,
        f"[sources.a]\n{ACCESS}[sources.a.files]\n[sources.b]\n{ACCESS}{topic}\n[sources.c]\n{ACCESS}"
        "[sources.c.sockets]\n",
    )

    def names(asked: str) -> list[str]:
        return [source.name for source in choose_streamed(settings, asked)]

    assert names("all") == ["a", "b"]
    assert names("b, a,b") == ["b", "a"]
    with pytest.raises(UsageError, match=r"source c is not streamed: expected a \[sources.c.kafka\] or \[sources.c.f"):
        names("a,c")
    with pytest.raises(UsageError, match="no source 'd'"):
        names("d")
    assert load_sources(settings)["c"].sockets.ports == (9990, 9991, 9992)  # type: ignore[union-attr]
    _write(settings, f"[sources.a]\n{ACCESS}")
    with pytest.raises(UsageError, match=r"no source in .* is streamed"):
        names("all")
