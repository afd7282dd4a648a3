"""What clients of Kafka are told to do follows from the configuration, and shows no secret."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from cdc.config import Kafka
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.state.endpoints import configured_broker

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n"
SECRET = "hunter2"


@pytest.fixture
def pem(tmp_path: Path) -> dict[str, Path]:
    for name, text in {"ca": CERTIFICATE, "own": CERTIFICATE, "key": KEY}.items():
        (tmp_path / name).write_text(text)
    return {
        "ca_file": tmp_path / "ca",
        "certificate_file": tmp_path / "own",
        "key_file": tmp_path / "key",
    }


@pytest.mark.parametrize(
    ("given", "files", "protocol"),
    [
        ({}, (), "PLAINTEXT"),
        ({"tls": True}, (), "SSL"),
        ({}, ("ca_file",), "SSL"),
        ({}, ("certificate_file", "key_file"), "SSL"),
        ({"user": "u", "password": SECRET}, (), "SASL_PLAINTEXT"),
        ({"user": "u", "password": SECRET}, ("ca_file",), "SASL_SSL"),
        ({"user": "u", "password": SECRET, "sasl_mechanism": "PLAIN", "tls": True}, (), "SASL_SSL"),
    ],
)
def test_the_protocol_follows(
    pem: dict[str, Path], given: dict[str, Any], files: tuple[str, ...], protocol: str
) -> None:
    kafka = Kafka.model_validate(
        {"bootstrap_servers": "k:1", **given, **{f: pem[f] for f in files}}
    )
    broker = configured_broker(kafka)

    assert broker is not None
    assert broker.client_settings()["security.protocol"] == protocol
    assert broker.java_settings()["security.protocol"] == protocol
    assert SECRET not in f"{broker} {broker!r} {kafka!r}"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"user": "u"}, "user and password (or password_file) go together"),
        ({"password": SECRET}, "user and password (or password_file) go together"),
        (
            {"user": "u", "password": SECRET, "password_file": "f"},
            "the password is given more than once",
        ),
        ({"certificate_file": "c"}, "certificate_file and key_file go together"),
        ({"key_file": "k"}, "certificate_file and key_file go together"),
        (
            {"user": "u", "password": SECRET, "sasl_mechanism": "PLAIN"},
            "PLAIN sends the password as it is",
        ),
        ({"bootstrap_servers": None, "tls": True}, "kafka.bootstrap_servers, which is not set"),
        ({"bootstrap_servers": None, "ca_file": "c"}, "kafka.bootstrap_servers, which is not set"),
        (
            {"bootstrap_servers": None, "user": "u", "password": SECRET},
            "kafka.bootstrap_servers, which is not set",
        ),
    ],
)
def test_what_is_given_by_half_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Kafka.model_validate({"bootstrap_servers": "k:1", **given})
    assert error in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("key", ["ca_file", "certificate_file", "key_file"])
@pytest.mark.parametrize("content", [None, "no PEM"])
def test_an_unfit_file_is_named(pem: dict[str, Path], key: str, content: str | None) -> None:
    pem[key].unlink() if content is None else pem[key].write_text(content)
    with pytest.raises(CdcError, match=f"kafka.{key}: {pem[key]}") as caught:
        configured_broker(Kafka.model_validate({"bootstrap_servers": "k:1", **pem}))
    assert caught.value.kind is ErrorKind.CONFIG


def test_java_gets_certificates_and_key_as_text(pem: dict[str, Path]) -> None:
    broker = Broker(
        "k:1",
        tls=True,
        ca_file=pem["ca_file"],
        certificate_file=pem["certificate_file"],
        key_file=pem["key_file"],
    )
    assert broker.java_settings() == {
        "bootstrap.servers": "k:1",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": CERTIFICATE,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": CERTIFICATE,
        "ssl.keystore.key": KEY,
    }


def test_a_password_cannot_end_its_quotes_or_name_a_provider() -> None:
    broker = Broker("k:1", user='a"b', password='${env:HOME}"\\\n')
    login = broker.java_settings()["sasl.jaas.config"]
    assert login == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        r'username="a\"b" password="\044{env:HOME}\"\\\n";'
    )


def test_the_password_comes_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "login").write_text(f"{SECRET}\n")
    kafka = Kafka(bootstrap_servers="k:1", user="u", password_file=tmp_path / "login")
    same = Kafka(bootstrap_servers="k:1", user="u", password=SecretStr(SECRET))
    assert configured_broker(kafka) == configured_broker(same)
