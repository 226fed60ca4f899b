"""How to reach the broker of a streamed source: from Spark, and by Kafka's own client library."""

from __future__ import annotations

import re
from collections.abc import Mapping

from include.errors import ClickmillError, UsageError
from include.settings import Settings
from include.sources import KafkaTopic, Source

_FROM_ENVIRONMENT = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


def topic_of(source: Source) -> KafkaTopic:
    """The source's topic.

    Raises:
        UsageError: if the source has none.
    """
    if source.kafka is None:
        raise UsageError(
            f"source {source.name} has no topic: expected a [sources.{source.name}.kafka] table in its sources file"
        )
    return source.kafka


def bootstrap_servers(topic: KafkaTopic, settings: Settings) -> str:
    """The source's broker, or that of ``CLICKMILL_KAFKA``, or the embedded one of this home.

    Raises:
        ClickmillError: if none is configured and the embedded one has not been started.
    """
    configured = topic.bootstrap_servers or settings.kafka
    if configured:
        return configured
    file = settings.broker_file  # written by ops/broker.py
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise ClickmillError(
            f"topic {topic.topic} names no bootstrap_servers, and the embedded broker does not run ({file} is absent); "
            "start it with: make stream, or name your broker, there or in CLICKMILL_KAFKA"
        ) from None


def spark_options(topic: KafkaTopic, settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """What Kafka's Java client is configured with, secrets filled in from the environment: not to be printed.

    Raises:
        UsageError: naming every variable that an option asks for and that is not set.
    """
    return _with_brokers(topic, settings, topic.options, environment)


def librdkafka_options(topic: KafkaTopic, settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """What librdkafka is configured with, which knows other names than the Java client: as ``spark_options``.

    Raises:
        UsageError: as above.
    """
    return _with_brokers(topic, settings, topic.librdkafka_options, environment)


def _with_brokers(
    topic: KafkaTopic, settings: Settings, options: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    asked = {name for value in options.values() for name in _FROM_ENVIRONMENT.findall(value)}
    absent = sorted(name for name in asked if name not in environment)
    if absent:
        raise UsageError(f"options of topic {topic.topic} need {', '.join(absent)}: set it in the environment")
    filled = {
        name: _FROM_ENVIRONMENT.sub(lambda reference: environment[reference[1]], value)
        for name, value in options.items()
    }
    return {"bootstrap.servers": bootstrap_servers(topic, settings)} | filled
