"""Clients of Kafka log in and trust as configured, and say why they are refused."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cdc.client.status.lag import lags
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.clients import producer
from cdc.kafka.offsets import end_offsets
from cdc.kafka.range_reader import RangeReader
from cdc.kafka.refusal import refusal
from cdc.kafka.topics import TopicSpec, ensure_topics
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.lock_file import KAFKA, jars
from cdc.stack.servers.jvm import java_command
from cdc.stack.servers.server import properties_text
from tests.security.conftest import Brokers, Trust

pytestmark = pytest.mark.integration

LOGINS = ("scram", "plain", "mutual")


@pytest.mark.parametrize("login", LOGINS)
def test_every_client_in_python_logs_in(kafka: Brokers, login: str) -> None:
    broker: Broker = getattr(kafka, login)
    ensure_topics(broker, [TopicSpec(login)])
    writer = producer(broker, {})
    writer.produce(login, b"value", b"key", partition=0)
    assert writer.flush(30) == 0

    assert end_offsets(broker, [login]) == {login: 1}
    assert lags(broker, {login: -1}) == {login: 1}
    reader = RangeReader(broker, group=login)
    try:
        found = reader.read({login: range(1)}, most_bytes=1000, seconds=30)
    finally:
        reader.close()
    assert [message.value() for message in found or ()] == [b"value"]


@pytest.mark.parametrize("login", LOGINS)
def test_a_client_in_a_jvm_logs_in(kafka: Brokers, login: str, tmp_path: Path) -> None:
    topic = f"seen-by-java-{login}"
    ensure_topics(kafka.scram, [TopicSpec(topic)])

    assert f"configs for topic {topic} are" in _asked_by_java(
        getattr(kafka, login), topic, tmp_path
    )


def test_java_is_refused_with_a_wrong_password(kafka: Brokers, tmp_path: Path) -> None:
    wrong = replace(kafka.scram, password="wrong")
    assert "SaslAuthenticationException" in _asked_by_java(wrong, "seen", tmp_path)


def _asked_by_java(broker: Broker, topic: str, folder: Path) -> str:
    """Return what Kafka's own program prints about the topic, or its error."""
    settings = folder / "client.properties"
    settings.write_text(properties_text(broker.java_settings()))
    place = ("--bootstrap-server", broker.bootstrap, "--command-config", str(settings))
    command = java_command(
        "128m",
        class_path=jars(KAFKA),
        main="kafka.admin.ConfigCommand",
        archive=class_archive.existing("kafka", jars(KAFKA)),
        arguments=(*place, "--describe", "--entity-type", "topics", "--entity-name", topic),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout + done.stderr


Change = Callable[[Brokers, Trust], Broker]
REFUSED: dict[str, tuple[Change, str, str]] = {
    "a wrong password": (
        lambda kafka, _: replace(kafka.scram, password="wrong"),
        "refuses our credentials",
        "Authentication failed",
    ),
    "an unknown user": (
        lambda kafka, _: replace(kafka.plain, user="nobody"),
        "refuses our credentials",
        "Authentication failed",
    ),
    "a wrong CA": (
        lambda kafka, trust: replace(kafka.scram, ca_file=trust.other.certificate),
        "presents a certificate that is not trusted",
        "unable to get local issuer certificate",
    ),
    "a wrong host name": (
        lambda kafka, _: replace(kafka.scram, bootstrap=f"127.0.0.1:{kafka.server.port}"),
        "presents a certificate that is not trusted",
        "IP address mismatch",
    ),
    "an expired certificate": (
        lambda kafka, _: replace(kafka.mutual, bootstrap=f"localhost:{kafka.server.expired_port}"),
        "presents a certificate that is not trusted",
        "certificate has expired",
    ),
    "no certificate of the client": (
        lambda kafka, _: replace(kafka.mutual, certificate_file=None, key_file=None),
        "and this client cannot agree on TLS",
        "alert bad certificate",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_named(kafka: Brokers, trust: Trust, case: str) -> None:
    change, message, detail = REFUSED[case]
    broker = change(kafka, trust)

    error = refusal(broker)

    assert error is not None
    assert error.kind is ErrorKind.CONFIG
    assert message in error.message
    assert detail in error.detail
    assert not broker.password or broker.password not in str(error)


@pytest.mark.parametrize("missing", ["TLS", "login"])
def test_a_client_without_what_the_port_requires_is_told(kafka: Brokers, missing: str) -> None:
    """The broker closes the connection without a word, as one does that is going down."""
    without = {
        "TLS": Broker(kafka.scram.bootstrap),
        "login": replace(kafka.scram, user="", password=""),
    }
    error = refusal(without[missing])
    assert error is not None
    assert error.kind is ErrorKind.UNREACHABLE
    assert error.detail == "it accepts connections and closes them"
    assert "kafka.ca_file (or kafka.tls) and kafka.user" in error.remedy


def test_a_client_that_is_refused_raises_the_reason(kafka: Brokers) -> None:
    with pytest.raises(CdcError) as caught:
        end_offsets(replace(kafka.scram, password="wrong"), ["t"])
    assert caught.value.kind is ErrorKind.CONFIG


def test_brokers_that_accept_a_client_or_are_away_refuse_nobody(kafka: Brokers) -> None:
    assert refusal(kafka.scram) is None
    assert refusal(Broker("127.0.0.1:1")) is None
