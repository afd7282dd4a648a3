"""Servers of one's own, as a company would run them: TLS everywhere, and a login at each.

They are the embedded ones with other settings. Each has a certificate of ``localhost``, so that
``127.0.0.1`` is a wrong host name.
"""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psycopg
from psycopg.sql import quote as quoted

from cdc import http_client
from cdc.kafka.broker import Broker
from cdc.stack.artifacts.class_archive import ClassArchive
from cdc.stack.servers.connect import ConnectServer
from cdc.stack.servers.kafka import KafkaServer
from cdc.stack.servers.postgres import PostgresServer
from cdc.stack.servers.registry import RegistryServer
from cdc.stack.servers.server import LOOPBACK
from cdc.state.atomic_file import write_private
from tests.source.authority import Authority, openssl
from tests.waiting import until

HOST: Final = "localhost"
KAFKA_USER: Final = "pipeline"
"""The user of wal2lake itself, who has the rights that the documents name, and no others."""
SERVERS_USER: Final = "servers"
STRANGER: Final = "stranger"
PLAIN_USER: Final = "plain"
ROLE: Final = "wal2lake"
REGISTRY_USER: Final = "reader"
CONNECT_USER: Final = "wal2lake"
_BROKER_USER: Final = "broker"
_MAY_ALL: Final = (_BROKER_USER, SERVERS_USER, PLAIN_USER, "CN=client", "ANONYMOUS")
"""Who may do everything: nobody has a name at the controller, which is on the loopback."""
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SOURCE_SQL: Final = Path(__file__).resolve().parents[2] / "connectors" / "source.sql"
TABLES_SQL: Final = """
CREATE TABLE customers (id int PRIMARY KEY, name text);
CREATE TABLE orders (id int PRIMARY KEY, amount numeric(10,2), note text);
INSERT INTO customers SELECT i, 'customer ' || i FROM generate_series(1, 20) i;
INSERT INTO orders SELECT i, i * 1.25, 'order ' || i FROM generate_series(1, 500) i;
"""


@dataclass(frozen=True, kw_only=True)
class SecureKafka(KafkaServer):
    """A broker that asks for SCRAM or PLAIN over TLS at one port, for a certificate at another.

    The certificate of a third port has expired.
    """

    certificate: Path
    expired: Path
    ca: Path
    passwords: dict[str, str] = field(repr=False)
    mutual_port: int
    expired_port: int

    @property
    def broker(self) -> Broker:
        """Return the address for clients that log in by SCRAM."""
        return Broker(
            f"{HOST}:{self.port}",
            tls=True,
            ca_file=self.ca,
            user=_BROKER_USER,
            password=self.passwords[_BROKER_USER],
        )

    def _settings(self) -> dict[str, str | int]:
        login = self.broker.java_settings()["sasl.jaas.config"]
        plain = self.passwords[PLAIN_USER].replace("\\", "\\\\").replace('"', '\\"')
        listeners = {
            "SASL_SSL": self.port,
            "SSL": self.mutual_port,
            "EXPIRED": self.expired_port,
        }
        controller = f"CONTROLLER://{LOOPBACK}:{self.controller_port}"
        return super()._settings() | {
            "listeners": ",".join(
                [*(f"{name}://{LOOPBACK}:{port}" for name, port in listeners.items()), controller]
            ),
            "advertised.listeners": ",".join(
                f"{name}://{HOST}:{port}" for name, port in listeners.items()
            ),
            "listener.security.protocol.map": (
                "SASL_SSL:SASL_SSL,SSL:SSL,EXPIRED:SSL,CONTROLLER:PLAINTEXT"
            ),
            "inter.broker.listener.name": "SASL_SSL",
            "authorizer.class.name": _AUTHORIZER,
            "super.users": ";".join(f"User:{name}" for name in _MAY_ALL),
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": login,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f'{_PLAIN} required user_{PLAIN_USER}="{plain}";'
            ),
            "listener.name.ssl.ssl.client.auth": "required",
            **_keystore("", self.certificate),
            **_keystore("listener.name.expired.", self.expired),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.ca.read_text(),
        }

    def _java(
        self, main: str, arguments: tuple[str, ...], archive: ClassArchive
    ) -> tuple[str, ...]:
        """Give the users to the program that formats the storage."""
        users = {name: text for name, text in self.passwords.items() if name != PLAIN_USER}
        more = [
            f"--add-scram=SCRAM-SHA-512=[name={name},password={text}]"
            for name, text in users.items()
        ]
        formats = main == "kafka.tools.StorageTool"
        return super()._java(main, (*arguments, *(more if formats else ())), archive)


@dataclass(frozen=True, kw_only=True)
class SecureConnect(ConnectServer):
    """A worker that answers by https only, and whose converters trust the registry's CA."""

    certificate: Path
    ca: Path

    @property
    def url(self) -> str:
        """Return the worker's URL with login and CA."""
        return http_client.with_ca(super().url, self.ca)

    @property
    def _listener(self) -> str:
        return f"https://{HOST}:{self.port}"

    def prepare(self) -> None:
        """Write the keystore too: Jetty reads no PEM."""
        super().prepare()
        files = ["-in", str(self.certificate), "-inkey", str(self.certificate.with_suffix(".key"))]
        store = ["-out", str(self._store), "-passout", "pass:keystore"]
        openssl("pkcs12", "-export", *files, *store)

    @property
    def _store(self) -> Path:
        return self.state.data(self.name) / "keystore.p12"

    def _settings(self) -> dict[str, str | int]:
        store = {"location": self._store, "type": "PKCS12", "password": "keystore"}
        keys = {f"listeners.https.ssl.keystore.{key}": str(text) for key, text in store.items()}
        key = {"listeners.https.ssl.key.password": "keystore"}
        return super()._settings() | keys | key | {"rest.advertised.host.name": HOST}


@dataclass(frozen=True, kw_only=True)
class SecureRegistry(RegistryServer):
    """A registry that answers by https only, to whoever has a login."""

    certificate: Path
    ca: Path
    password: str = field(repr=False)

    @property
    def url(self) -> str:
        """Return the URL of the registry, with login and CA."""
        url = f"https://{HOST}:{self.port}"
        return http_client.with_ca(
            http_client.with_login(url, REGISTRY_USER, self.password), self.ca
        )

    def _security(self) -> dict[str, str]:
        users = "quarkus.security.users.embedded"
        return super()._security() | {
            f"{users}.plain-text": "true",
            f"{users}.users.{REGISTRY_USER}": self.password,
            f"{users}.roles.{REGISTRY_USER}": "sr-admin",
        }

    def properties(self) -> dict[str, str]:
        """Return the Java properties that configure the registry."""
        everything = "quarkus.http.auth.permission.everything"
        return super().properties() | {
            "quarkus.http.ssl-port": str(self.port),
            "quarkus.http.port": "0",
            "quarkus.http.insecure-requests": "disabled",
            "quarkus.http.ssl.certificate.files": str(self.certificate),
            "quarkus.http.ssl.certificate.key-files": str(self.certificate.with_suffix(".key")),
            "quarkus.http.auth.basic": "true",
            f"{everything}.paths": "/*",
            f"{everything}.policy": "authenticated",
        }


def _keystore(prefix: str, certificate: Path) -> dict[str, str | int]:
    return {
        f"{prefix}ssl.keystore.type": "PEM",
        f"{prefix}ssl.keystore.certificate.chain": certificate.read_text(),
        f"{prefix}ssl.keystore.key": certificate.with_suffix(".key").read_text(),
    }


def secure_postgres(server: PostgresServer, ours: Authority, certificate: Path, secret: str) -> str:
    """Let the running Postgres take TLS alone; make tables, and what a DBA makes for the pipeline.

    Returns the URL of the pipeline's role, without its password.
    """
    data = server.state.data("postgres")
    for file in (certificate, certificate.with_suffix(".key")):
        shutil.copy(file, data)
        (data / file.name).chmod(0o600)
        if os.geteuid() == 0:
            os.chown(data / file.name, data.stat().st_uid, data.stat().st_gid)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(TABLES_SQL.encode())
        connection.execute(SOURCE_SQL.read_bytes())
        connection.execute(f"ALTER ROLE {ROLE} PASSWORD {quoted(secret)}".encode())
        for name, value in {
            "ssl_cert_file": certificate.name,
            "ssl_key_file": certificate.with_suffix(".key").name,
            "ssl": "on",
        }.items():
            connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        (data / "pg_hba.conf").write_text("hostssl all all all scram-sha-256\n")
        connection.execute("SELECT pg_reload_conf()")
    until(lambda: _refuses_plain(server.url))
    return (
        f"postgresql://{quote(ROLE)}@{HOST}:{server.port}/app"
        f"?sslmode=verify-full&sslrootcert={quote(str(ours.certificate))}"
    )


def _refuses_plain(url: str) -> bool:
    try:
        psycopg.connect(f"{url}?sslmode=disable").close()
    except psycopg.OperationalError:
        return True
    return False


def keep_secret(folder: Path, name: str, text: str) -> None:
    """Make the text the secret of this name, before a server makes one of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / name, text)
