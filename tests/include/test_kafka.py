"""How a streamed source's broker is found, and what its client is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.errors import ClickmillError, UsageError
from include.settings import Settings
from include.sources import Source, load_sources
from include.streams.kafka import bootstrap_servers, librdkafka_options, spark_options, topic_of
from tests.support.temporary_lake import SOURCES, make_settings


def streamed(home: Path, kafka: str) -> tuple[Settings, Source]:
    settings = make_settings(home)
    settings.sources_file.write_text(f"{SOURCES}\n[sources.web.kafka]\n{kafka}\n", encoding="utf-8")
    return settings, load_sources(settings)["web"]


def test_secrets_come_from_the_environment_and_a_missing_one_is_named(tmp_path: Path) -> None:
    kafka = """topic = "t"
bootstrap_servers = "b:1"
options = { "sasl.password" = "${SASL_PASSWORD}", "sasl.username" = "u-${SASL_USER}" }
librdkafka_options = { "ssl.ca.location" = "/etc/${SASL_USER}.pem" }"""
    settings, source = streamed(tmp_path, kafka)
    topic = topic_of(source)
    environment = {"SASL_PASSWORD": "s3cret", "SASL_USER": "me"}
    assert spark_options(topic, settings, environment) == {
        "bootstrap.servers": "b:1",
        "sasl.password": "s3cret",
        "sasl.username": "u-me",
    }
    told = librdkafka_options(topic, settings, environment)
    assert told == {"bootstrap.servers": "b:1", "ssl.ca.location": "/etc/me.pem"}, "the other client has other names"
    with pytest.raises(UsageError, match="need SASL_PASSWORD, SASL_USER: set it in the environment"):
        spark_options(topic, settings, {})


def test_without_brokers_it_is_the_embedded_one_which_must_run(tmp_path: Path) -> None:
    settings, source = streamed(tmp_path, 'topic = "t"')
    topic = topic_of(source)
    with pytest.raises(ClickmillError, match=r"the embedded broker does not run .* make stream"):
        bootstrap_servers(topic, settings)
    file = settings.home / "run" / "kafka_bootstrap_servers"
    file.parent.mkdir()
    file.write_text("127.0.0.1:9\n", encoding="utf-8")
    assert bootstrap_servers(topic, settings) == "127.0.0.1:9"


def test_brokers_of_the_environment_are_those_of_sources_that_name_none(tmp_path: Path) -> None:
    _, source = streamed(tmp_path, 'topic = "t"')
    settings = Settings.from_environment({"CLICKMILL_HOME": str(tmp_path), "CLICKMILL_KAFKA": "kafka:9092"})
    topic = topic_of(source)
    assert bootstrap_servers(topic, settings) == "kafka:9092"
    assert bootstrap_servers(topic.model_copy(update={"bootstrap_servers": "b:1"}), settings) == "b:1"
    unset = Settings.from_environment({"CLICKMILL_HOME": str(tmp_path), "CLICKMILL_KAFKA": ""})
    assert unset.kafka is None


@pytest.mark.parametrize(
    ("kafka", "message"),
    [
        ('topic = "a b"', "sources.web.kafka.topic"),
        ('topic = "t"\noptions = { "group.id" = "x" }', "group.id: expected options of Kafka's client"),
        ('topic = "t"\nmax_rows_per_batch = 0', "max_rows_per_batch"),
        ('topic = "t"\nstarting_offsets = "now"', "starting_offsets"),
    ],
)
def test_a_wrong_setting_of_a_topic_is_named(tmp_path: Path, kafka: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        streamed(tmp_path, kafka)


def test_a_source_without_a_topic_is_reported(tmp_path: Path) -> None:
    source = load_sources(make_settings(tmp_path))["web"]
    with pytest.raises(UsageError, match=r"source web has no topic: expected a \[sources.web.kafka\]"):
        topic_of(source)
