"""The TLS demands of source.url apply to the connector's sessions too.

The server accepts no session without TLS and a client certificate.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from cdc.capture.bootstrap import establish
from cdc.config import Config
from cdc.errors import CdcError
from cdc.kafka.broker import Broker
from cdc.source.connector import worker_rest
from cdc.source.server import slot
from cdc.source.server.connection import connect
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.waiting import until
from tests.servers.process import ProcessServer
from tests.servers.process import servers as processes
from tests.source.authority import EC, RSA, Authority, authority, openssl
from tests.source.conftest import Maker, open_schema

pytestmark = pytest.mark.integration

NAME = "localhost"
NAMES = ("postgres", "kafka", "registry", "connect")
SESSIONS = """
SELECT a.backend_type, s.ssl, s.client_dn FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid)
 WHERE a.application_name LIKE 'Debezium %' AND a.datname = current_database()
"""


@dataclass(frozen=True)
class Secured:
    """A chain whose Postgres is called localhost, with the certificates of server and clients."""

    endpoints: Endpoints
    ours: Authority
    other: Authority

    def url(self, mode: str, given: dict[str, Path] | None = None, host: str = NAME) -> str:
        files = {"sslrootcert": self.ours.certificate, **self.client("rsa"), **(given or {})}
        parts = urlsplit(self.endpoints.source_url)
        netloc = parts.netloc.replace(str(parts.hostname), host)
        query = "&".join(f"{name}={quote(str(file))}" for name, file in files.items())
        return parts._replace(netloc=netloc, query=f"sslmode={mode}&{query}").geturl()

    def client(self, kind: str) -> dict[str, Path]:
        certificate = self.ours.folder / f"{kind}.crt"
        return {"sslcert": certificate, "sslkey": certificate.with_suffix(".key")}

    def at(self, url: str) -> Endpoints:
        return replace(self.endpoints, source_url=url)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("authorities")
    ours, other = authority(folder, "ours"), authority(folder, "other")
    ours.signed("rsa", key=RSA)
    ours.signed("ec", key=EC)
    made = processes(tmp_path_factory.mktemp("chain"))
    servers = {name: made[name]() for name in NAMES}
    try:
        addresses = {name: server.start() for name, server in servers.items()}
        postgres = servers["postgres"]
        assert isinstance(postgres, ProcessServer)
        _secure(postgres, ours)
        endpoints = Endpoints(
            source_url=addresses["postgres"],
            kafka=Broker(addresses["kafka"]),
            registry=addresses["registry"],
            connect=addresses["connect"],
        )
        yield Secured(endpoints, ours, other)
    finally:
        for server in reversed(servers.values()):
            server.kill()


def _secure(server: ProcessServer, ours: Authority) -> None:
    data = server.state.data("postgres")
    certificate = ours.signed("server", alternative=f"DNS:{NAME}")
    for file in (certificate, certificate.with_suffix(".key"), ours.certificate):
        shutil.copy(file, data)
        (data / file.name).chmod(0o600)
        if os.geteuid() == 0:
            os.chown(data / file.name, data.stat().st_uid, data.stat().st_gid)
    with connect(server.address) as connection:
        connection.execute("ALTER SYSTEM SET ssl_ca_file = 'ours.crt'")
        connection.execute("ALTER SYSTEM SET ssl = on")
        (data / "pg_hba.conf").write_text("hostssl all all all scram-sha-256 clientcert=verify-ca")
        connection.execute("SELECT pg_reload_conf()")

    def refuses_plain() -> bool:
        try:
            connect(server.address).close()
        except CdcError:
            return True
        return False

    until(refuses_plain, 30, "the server goes on to take anybody")


@pytest.fixture
def config(secured: Secured, make_config: Maker, schema: str) -> Iterator[Config]:
    config = make_config(secured.endpoints)
    with open_schema(secured.url("verify-full"), schema) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1)")
        yield config
        worker_rest.delete(secured.endpoints.connect, schema)
        until(lambda: not slot.is_read(connection, schema), 60, f"slot {schema} stays in use")
        slot.drop(connection, schema)


def test_the_connector_uses_the_certificates_of_source_url(
    secured: Secured, config: Config
) -> None:
    for kind in ("rsa", "ec"):
        url = secured.url("verify-full", secured.client(kind))
        establish(Pipeline(config, secured.at(url)))
        wanted = {(session, True, f"/CN={kind}") for session in ("client backend", "walsender")}
        until(
            partial(_has_sessions, url, wanted), 60, f"the connector has not both sessions: {kind}"
        )


def _has_sessions(url: str, wanted: set[tuple[str, bool, str]]) -> bool:
    with connect(url) as connection:
        return set(connection.execute(SESSIONS).fetchall()) == wanted


@pytest.mark.parametrize(
    ("mode", "host", "why"),
    [
        ("verify-full", "127.0.0.1", "the certificate is of localhost"),
        ("verify-ca", NAME, "the authority is another one"),
        ("require", NAME, "with an authority, libpq verifies here too"),
    ],
)
def test_the_connector_refuses_a_server_that_our_sessions_refuse(
    secured: Secured, config: Config, mode: str, host: str, why: str
) -> None:
    trusted = secured.ours if host == "127.0.0.1" else secured.other
    refused = secured.url(mode, {"sslrootcert": trusted.certificate}, host)
    with pytest.raises(CdcError):
        connect(refused)
    worker = config.connect.model_copy(update={"source_url": refused})
    config = config.model_copy(update={"connect": worker})
    with pytest.raises(CdcError) as caught:
        establish(Pipeline(config, secured.at(secured.url("verify-full"))))
    assert "connector" in str(caught.value), why


def test_a_key_as_bytes_reaches_the_connector_too(secured: Secured, config: Config) -> None:
    key = secured.ours.folder / "rsa.pk8"
    pem = str(secured.client("rsa")["sslkey"])
    openssl("pkcs8", "-topk8", "-nocrypt", "-in", pem, "-outform", "DER", "-out", str(key))
    key.chmod(0o600)
    url = secured.url("verify-full", {"sslkey": key})
    establish(Pipeline(config, secured.at(url)))
