"""Test which TLS parameters of source.url reach the connector, and which are refused."""

from pathlib import Path

import pytest

from cdc.config import Config, Connect, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.source.server.tls import tls

_EC = "MIGEAgEAMBAGByqGSM49AgEGBSuBBAAK"
PKCS8 = "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n"
EC = PKCS8.format(_EC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".postgresql").mkdir()
    return tmp_path


def tls_settings(query: str, connect: Connect | None = None) -> dict[str, str]:
    """Return the TLS settings that are not empty."""
    config = Config(
        source=Source(tables=["a.*"]), lake=Lake(path="/lake"), connect=connect or Connect()
    )
    parameters = tls(config, f"postgresql://u@h/d?{query}")
    return {name: value for name, value in parameters.items() if value}


def test_without_parameters_libpq_s_default_applies() -> None:
    assert tls_settings("") == {"sslmode": "prefer"}


def test_files_need_absolute_paths() -> None:
    given = {"sslmode": "verify-full", "sslrootcert": "/etc/ca.crt"}
    assert tls_settings("sslmode=verify-full&sslrootcert=/etc/ca.crt") == given
    with pytest.raises(CdcError, match=r"sslrootcert ca.crt is not an absolute path"):
        tls_settings("sslmode=verify-full&sslrootcert=ca.crt")


def test_require_with_an_authority_verifies_it_like_libpq(home: Path) -> None:
    assert tls_settings("sslmode=require") == {"sslmode": "require"}
    assert tls_settings("sslmode=require&sslrootcert=/ca.crt")["sslmode"] == "verify-ca"
    (home / ".postgresql" / "root.crt").touch()
    assert tls_settings("sslmode=require") == {
        "sslmode": "verify-ca",
        "sslrootcert": str(home / ".postgresql" / "root.crt"),
    }
    assert tls_settings("sslmode=disable") == {"sslmode": "disable"}


def test_libpq_s_environment_variables_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSSLMODE", "verify-full")
    monkeypatch.setenv("PGSSLROOTCERT", "/ca.crt")
    assert tls_settings("") == {"sslmode": "verify-full", "sslrootcert": "/ca.crt"}
    assert tls_settings("sslmode=verify-ca")["sslmode"] == "verify-ca"
    monkeypatch.setenv("PGSSLCRL", "/revoked")
    with pytest.raises(CdcError, match="sslcrl"):
        tls_settings("")


def test_the_client_s_default_certificate_is_used(home: Path) -> None:
    (home / ".postgresql" / "postgresql.key").write_text(EC)
    assert tls_settings("sslmode=require") == {"sslmode": "require"}
    (home / ".postgresql" / "postgresql.crt").touch()
    assert tls_settings("sslmode=require") == {
        "sslmode": "require",
        "sslcert": str(home / ".postgresql" / "postgresql.crt"),
        "sslkey": str(home / ".postgresql" / "postgresql.key"),
        "key_algorithm": "EC",
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.key", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"),
        ("a.key", "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----"),
        (
            "a.key",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIF\n-----END ENCRYPTED PRIVATE KEY-----",
        ),
        ("a.key", PKCS8.format("abcde")),
        ("a.key", ""),
        ("a.der", EC),
        ("a.p12", EC),
        ("a.PFX", EC),
    ],
)
def test_a_key_that_java_does_not_read_is_refused(home: Path, name: str, content: str) -> None:
    (home / name).write_text(content)
    with pytest.raises(CdcError) as caught:
        tls_settings(f"sslmode=require&sslcert=/a.crt&sslkey={home}/{name}")
    assert caught.value.kind is ErrorKind.CONFIG
    assert str(home / name) in caught.value.message
    assert "openssl pkcs8 -topk8" in caught.value.remedy


def test_a_key_that_is_not_there_is_refused() -> None:
    with pytest.raises(CdcError, match=r"sslkey .*none.key cannot be read"):
        tls_settings("sslmode=require&sslcert=/a.crt&sslkey=/none.key")


@pytest.mark.parametrize(
    "query",
    [
        "sslcrl=/revoked",
        "sslcrldir=/revoked",
        "ssl_min_protocol_version=TLSv1.3",
        "ssl_max_protocol_version=TLSv1.2",
        "sslnegotiation=direct",
        "sslcertmode=require",
        "sslsni=0",
        "channel_binding=require",
        "require_auth=scram-sha-256",
        "gssencmode=require",
        "requirepeer=postgres",
        "hostaddr=10.0.0.1",
        "service=mine",
        "sslrootcert=system",
    ],
)
def test_a_parameter_that_the_connector_cannot_obey_is_refused(query: str) -> None:
    name, _, value = query.partition("=")
    with pytest.raises(CdcError) as caught:
        tls_settings(query)
    assert caught.value.kind is ErrorKind.CONFIG
    assert name in caught.value.message
    assert value not in caught.value.message or value == "system"


@pytest.mark.parametrize(
    "query", ["channel_binding=prefer", "gssencmode=disable", "sslsni=1", "connect_timeout=3"]
)
def test_a_parameter_that_demands_nothing_is_accepted(query: str) -> None:
    assert tls_settings(query) == {"sslmode": "prefer"}


def test_file_names_for_an_external_worker_are_kept() -> None:
    url = (
        "postgresql://u@h/d?sslmode=verify-full&sslrootcert=ca&sslkey=k.p12&sslpassword=%24%7Bx%7D"
    )
    worker = Connect(url="http://connect:8083", source_url=url)
    assert tls_settings("sslmode=disable", worker) == {
        "sslmode": "verify-full",
        "sslrootcert": "ca",
        "sslkey": "k.p12",
        "sslpassword": "${x}",
    }
