"""A topic behind TLS and a password, as docs/guides/streaming.md configures it; the password is written nowhere."""

from __future__ import annotations

import ipaddress
import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from include.errors import ClickmillError
from include.hours import Hour
from include.streams.kafka import topic_of
from include.tables import CLICKS
from spark_jobs.stream.topic import partitions_of
from tests.stream.kafka_broker import KafkaBroker, Record
from tests.stream.streamed_lake import StreamedLake
from tests.support.ports import claimed_port
from tests.support.spark_server import UsedSpark
from tests.support.temporary_lake import click, make_settings
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = Hour.parse("2026-03-01T08")
USER, PASSWORD = "shop", f"hush-{uuid4().hex}"
JAAS = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";'
# Sources: Apache Kafka 4.1, "Authentication using SASL/SCRAM" and "Encryption and Authentication using SSL".
SECURED = """
listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secured_port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secured_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={module} required;
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
"""


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1: the file with its key, for the broker, and the one without."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    keystore, truststore = folder / "keystore.pem", folder / "truststore.pem"
    keystore.write_bytes(private + public)
    truststore.write_bytes(public)
    return keystore, truststore


@pytest.fixture(scope="module")
def secured_broker() -> Iterator[tuple[KafkaBroker, str, Path]]:
    """A broker that answers without a password too, where it answers with one, and whom to trust."""
    with tempfile.TemporaryDirectory(prefix="cm-kafka-") as name:
        folder, secured_port = Path(name), claimed_port(19292, "Kafka with TLS")
        keystore, truststore = write_certificate(folder)
        broker = KafkaBroker.in_folder(folder / "broker")
        broker.settings = SECURED.format(
            port=broker.port,
            controller_port=broker.controller_port,
            secured_port=secured_port,
            module=JAAS.partition(" ")[0],
            keystore=keystore,
        )
        broker.start()
        try:
            mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
            user = UserScramCredentialUpsertion(USER, mechanism, PASSWORD.encode())
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            for done in admin.alter_user_scram_credentials([user]).values():
                done.result(30)
            yield broker, f"127.0.0.1:{secured_port}", truststore
        finally:
            broker.stop()


@pytest.fixture
def secured(
    tmp_path: Path,
    spark: SparkSession,
    secured_broker: tuple[KafkaBroker, str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> StreamedLake:
    """A lake whose topic is reached by TLS and password only; both are named, not written, in its configuration."""
    broker, bootstrap_servers, truststore = secured_broker
    lake = StreamedLake(spark, make_settings(tmp_path / "secured"), broker, f"clicks-{uuid4()}")
    common = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512"}
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(truststore)}
    named = {"sasl.username": USER, "sasl.password": "${SHOP_PASSWORD}"}
    lake.configure(
        bootstrap_servers=bootstrap_servers,
        options=common | trusted | {"sasl.jaas.config": "${SHOP_JAAS}"},
        librdkafka_options=common | named | {"ssl.ca.location": str(truststore)},
    )
    monkeypatch.setenv("SHOP_JAAS", JAAS)
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    broker.create_topic(lake.topic, 2)
    moment = int(HOUR.start.timestamp() * 1000)
    broker.produce(
        lake.topic,
        [Record(number % 2, moment, click(f"e{number}", HOUR.start.isoformat())) for number in range(20)],
    )
    return lake


@pytest.mark.slow
def test_a_secured_topic_is_streamed_and_finalised_and_its_password_is_nowhere(
    secured: StreamedLake, capfd: pytest.CaptureFixture[str], used_spark: UsedSpark
) -> None:
    secured.read_all()
    assert sorted(row["event_id"] for row in secured.rows(CLICKS)) == sorted(f"e{number}" for number in range(20))
    # By Kafka's other client.
    assert partitions_of(topic_of(secured.source), secured.settings) == [0, 1]
    secured.run("ingest", str(HOUR))
    assert secured.accounting()[str(HOUR)]["accepted"] == 20

    told = capfd.readouterr()
    pages = spark_pages(secured)
    assert any("KafkaScan" in text for text in pages.values()), "they tell of streams"
    files = texts_under(secured.settings.home)
    if used_spark.logs is not None:
        logs = texts_under(used_spark.logs)
        assert any("spark-connect" in name for name in logs), "the Spark server's is among them"
        files |= logs
    places = {"stdout": told.out, "stderr": told.err, **pages, **files}
    assert [name for name, text in places.items() if PASSWORD in text] == []


def test_a_wrong_password_is_reported_in_one_line_without_it(
    secured: StreamedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = f"{PASSWORD}-wrong"
    monkeypatch.setenv("SHOP_JAAS", JAAS.replace(PASSWORD, wrong))
    monkeypatch.setenv("SHOP_PASSWORD", wrong)
    with pytest.raises(ClickmillError) as failure:
        secured.read_all()
    message = str(failure.value)
    assert "uthentication" in message
    assert PASSWORD not in message
    assert "\n" not in message
    assert secured.rows(CLICKS) == []


def spark_pages(lake: StreamedLake) -> dict[str, str]:
    """What Spark's UI and REST API say, by address."""
    ui = f"http://localhost:{lake.spark.conf.get('spark.ui.port')}"
    application, *_ = json.loads(page(f"{ui}/api/v1/applications"))
    api = f"{ui}/api/v1/applications/{application['id']}"
    addresses = (
        f"{api}/sql?details=true&planDescription=true&length=100000",
        f"{api}/environment",
        f"{ui}/StreamingQuery/",
        f"{ui}/connect/",
    )
    return {address: page(address) for address in addresses}


def texts_under(folder: Path) -> dict[str, str]:
    """Its files, whatever they are, as text."""
    return {str(file): file.read_text("utf-8", "replace") for file in folder.rglob("*") if file.is_file()}


def page(address: str) -> str:
    """Its text. Spark answers 404 when it forgets one of its oldest queries while it lists them: asked again."""

    def answer() -> str:
        response = httpx.get(address, timeout=60, follow_redirects=True)
        return "" if response.status_code == httpx.codes.NOT_FOUND else response.raise_for_status().text

    return wait_until(answer, f"{address} is there", seconds=60)
