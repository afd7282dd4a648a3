"""A whole pipeline on one's own servers, with TLS and a login at each, and its secrets kept.

The role at the source has the rights of connectors/source.sql and no others. Every password is a
canary: it is looked for in whatever the pipeline and the servers have written, show and run as.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import psutil
import pytest
import yaml
from confluent_kafka import Consumer, KafkaError, TopicPartition

from cdc import http_client
from cdc.kafka.clients import producer
from cdc.kafka.offsets import end_offsets
from cdc.state.endpoints import REGISTRY_PASSWORD, password_reference, write_connector_secrets
from tests.e2e.installation import Installation
from tests.local_spark import QUICK
from tests.security.conftest import OwnServers
from tests.security.own_servers import (
    CONNECT_USER,
    HOST,
    KAFKA_USER,
    REGISTRY_USER,
    ROLE,
    STRANGER,
)

pytestmark = pytest.mark.e2e

CHANGES: Final = """
INSERT INTO public.orders SELECT i, i, 'later' FROM generate_series(1001, 1200) i;
UPDATE public.orders SET note = 'changed' WHERE id <= 50;
DELETE FROM public.orders WHERE id BETWEEN 51 AND 60;
"""


@dataclass(frozen=True, kw_only=True)
class Secured(Installation):
    """An installation whose passwords come by file and by environment."""

    own: OwnServers
    written: dict[str, Any]

    @property
    def source_url(self) -> str:
        """The superuser's URL."""
        return self.own.postgres.url

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands, with half of the passwords."""
        names = ("kafka", "registry")
        given = {f"WAL2LAKE_{n.upper()}__PASSWORD": self.own.secrets[n] for n in names}
        return super().environment | given


@pytest.fixture(scope="module")
def secured(own_servers: OwnServers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    written = configuration(own_servers, folder)
    (folder / "wal2lake.yaml").write_text(yaml.safe_dump(written))
    installed = Secured(folder=folder, servers={}, own=own_servers, written=written)
    try:
        yield installed
    finally:
        installed.run("down")


def configuration(own: OwnServers, folder: Path) -> dict[str, Any]:
    """Write the files of passwords; return the configuration that names them."""
    for name in ("source", "connect"):
        (own.trust.ours.folder / f"{name}.password").write_text(own.secrets[name] + "\n")
    registry_url = own.registry.url
    source = own.source_url.replace(f"{ROLE}@", f"{ROLE}:{quote(own.secrets['source'])}@")
    write_connector_secrets(own.state, source, registry_url)
    (folder / "events").mkdir()
    ca, files = str(own.trust.ours.certificate), own.trust.ours.folder
    return {
        "name": "wal2lake",
        "source": {
            "url": own.source_url,
            "password_file": str(files / "source.password"),
            "tables": ["public.customers", "public.orders"],
            "snapshot": "connector",  # so that the topics have every row
        },
        "lake": {"path": "lake"},
        "kafka": {
            "bootstrap_servers": f"{HOST}:{own.kafka.server.port}",
            "user": KAFKA_USER,
            "ca_file": ca,
        },
        "connect": {
            "url": f"https://{HOST}:{own.connect.port}",
            "user": CONNECT_USER,
            "password_file": str(files / "connect.password"),
            "ca_file": ca,
            "source_password": password_reference(own.state.root),
            "registry_password": password_reference(own.state.root, REGISTRY_PASSWORD),
        },
        "registry": {
            "url": http_client.without_login(registry_url),
            "user": REGISTRY_USER,
            "ca_file": ca,
        },
        "spark": {
            "master": "local[2]",
            "driver_memory": "2g",
            "conf": {
                **QUICK,
                "spark.eventLog.enabled": "true",
                "spark.eventLog.compress": "false",
                "spark.sql.debug.maxToStringFields": "1000",
                "spark.eventLog.dir": (folder / "events").as_uri(),
                "spark.sql.ui.explainMode": "extended",
            },
        },
        "job": {"local_events": 0},  # Spark reads and merges all events
    }


def test_the_lake_equals_the_source(secured: Secured) -> None:
    secured.run("check")
    secured.run("up", "--detach")
    secured.execute(CHANGES)

    secured.run("sync")
    secured.run("verify")
    assert secured.lake_query("public", "orders", "SELECT * FROM t") == _rows(secured)
    secured.run(
        "replay", "public.orders", "--from", "kafka", "--into", str(secured.folder / "again")
    )
    secured.run("resnapshot", "public.orders")
    secured.run("verify")
    assert _sessions(secured) == {(True,)}


def _rows(secured: Secured) -> Counter[tuple[Any, ...]]:
    with secured.connect() as connection:
        return Counter(connection.execute("SELECT * FROM public.orders").fetchall())


def _sessions(secured: Secured) -> set[tuple[bool]]:
    """Return whether the sessions of the pipeline's role at the source are encrypted."""
    query = "SELECT s.ssl FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE usename = %s"
    with secured.connect() as connection:
        return set(connection.execute(query, [ROLE]).fetchall())


def test_no_secret_is_written_shown_or_on_a_command_line(secured: Secured) -> None:
    own = secured.own
    canaries = [*own.secrets.values(), own.kafka.scram.password]
    logins = ((CONNECT_USER, "connect"), (REGISTRY_USER, "registry"))
    canaries += [
        base64.b64encode(f"{user}:{own.secrets[name]}".encode()).decode() for user, name in logins
    ]
    for place in (secured.folder, own.state.root):
        assert list(_files_with(place, canaries, but=own.state.secrets)) == []
    assert [p for p in psutil.process_iter() if _has(_command(p), canaries)] == []
    shown = _shown(secured)
    assert {name: text for name, text in shown.items() if _has(text, canaries)} == {}
    # The search sees what there is to see.
    assert "database.password" in shown["connectors"]
    assert list(_files_with(own.state.secrets, canaries, but=None))
    assert any(b"orders" in file.read_bytes() for file in _files(secured.folder / "events"))


def test_a_stranger_with_a_login_may_neither_read_nor_write(secured: Secured) -> None:
    kafka, topic = secured.own.kafka, "wal2lake.public.orders"
    stranger = replace(kafka.pipeline, user=STRANGER, password=kafka.server.passwords[STRANGER])
    answers = list[Any]()
    writer = producer(stranger, {})
    writer.produce(topic, b"value", b"key", on_delivery=lambda error, _: answers.append(error))
    writer.flush(30)
    reader = Consumer({**stranger.client_settings(), "group.id": "any"})
    reader.assign([TopicPartition(topic, 0, 0)])
    refused = reader.consume(1, timeout=30)[0].error()
    reader.close()

    assert [error.code() for error in answers] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert end_offsets(kafka.pipeline, [topic])[topic] > 0


def test_only_this_machine_reaches_it_and_no_jvm_is_open_to_tools(secured: Secured) -> None:
    """A JVM that listens for JMX or for a debugger runs whatever it is sent."""
    places = [str(secured.folder), str(secured.own.state.root)]
    ours = [p for p in psutil.process_iter() if _has(f"{_command(p)} {_environ(p)}", places)]
    tools = ("jmxremote", "jdwp", "attachListener")

    assert {"java", "postgres"} <= {p.name() for p in ours}
    assert [_command(p) for p in ours if _has(f"{_command(p)} {_environ(p)}", list(tools))] == []
    listening = {address for p in ours for address in _listening(p)}
    assert listening
    assert {address for address in listening if not ip_address(address).is_loopback} == set()


def _environ(process: psutil.Process) -> str:
    try:
        return " ".join(process.environ().values())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


def _listening(process: psutil.Process) -> set[str]:
    """Return the addresses at which a process listens; IPv4 ones also where it does by IPv6."""
    try:
        found = process.net_connections("inet")
    except psutil.NoSuchProcess:
        return set()
    open_ = [one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN]
    return {address.removeprefix("::ffff:") for address in open_}


def _files(place: Path) -> Iterator[Path]:
    yield from (path for path in place.rglob("*") if path.is_file())


def _files_with(place: Path, canaries: list[str], *, but: Path | None) -> Iterator[Path]:
    """Yield the files that hold one of the texts, whatever they are: topics, tables, logs."""
    for path in _files(place):
        if but is None or but not in path.parents:
            content = path.read_bytes()
            if any(text.encode() in content for text in canaries):
                yield path


def _has(text: str, canaries: list[str]) -> bool:
    return any(canary in text for canary in canaries)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def _shown(secured: Secured) -> dict[str, str]:
    """Return what the worker, the commands and the job's pages show."""
    url = secured.own.connect.url
    worker = {
        "connectors": "/connectors?expand=info&expand=status",
        "config": "/connectors/wal2lake/config",
        "tasks": "/connectors/wal2lake/tasks",
        "offsets": "/connectors/wal2lake/offsets",
    }
    answers = {
        name: http_client.get(url, path, timeout=60).raise_for_status().text
        for name, path in worker.items()
    }
    commands = {
        " ".join(words): secured.run(*words)
        for words in (["status"], ["status", "--json"], ["check", "--verbose"], ["plan"], ["cuts"])
    }
    page = json.loads((secured.state_dir / "monitor.json").read_text())["url"]
    pages = {
        path: httpx.get(f"{page}{path}", timeout=60).text for path in ("/metrics", "/status.json")
    }
    return answers | commands | pages


REFUSED: Final[dict[str, tuple[str, dict[str, str], str, str]]] = {
    "the source's password": (
        "source",
        {"password": "wrong", "password_file": ""},
        "refuses the connection",
        "password authentication failed",
    ),
    "the source's CA": (
        "source",
        {"url": "ours.crt>other.crt"},
        "presents a certificate that is not trusted",
        "certificate verify failed",
    ),
    "the source's host name": (
        "source",
        {"url": f"@{HOST}>@127.0.0.1"},
        "presents a certificate for another host name",
        "",
    ),
    "no TLS to the source": (
        "source",
        {"url": "sslmode=verify-full>sslmode=disable"},
        "refuses the connection",
        "no encryption",
    ),
    "the worker's password": (
        "connect",
        {"password": "wrong", "password_file": ""},
        "Kafka Connect at https://localhost",
        "refuses our credentials",
    ),
    "the worker's CA": (
        "connect",
        {"ca_file": "ours.crt>other.crt"},
        "presents a certificate that is not trusted",
        "unable to get local issuer certificate",
    ),
    "the registry's user": (
        "registry",
        {"user": f"{REGISTRY_USER}>stranger"},
        "the schema registry at https://localhost",
        "refuses our credentials",
    ),
    "the registry's host name": (
        "registry",
        {"url": f"{HOST}>127.0.0.1"},
        "presents a certificate that is not trusted",
        "IP address mismatch",
    ),
    "the user at Kafka": (
        "kafka",
        {"user": f"{KAFKA_USER}>stranger"},
        "Kafka at localhost",
        "refuses our credentials",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_setting_is_refused_by_name(
    own_servers: OwnServers, tmp_path: Path, case: str
) -> None:
    section, changes, message, detail = REFUSED[case]
    written = configuration(own_servers, tmp_path)
    for key, change in changes.items():
        before, arrow, after = change.partition(">")
        old = str(written[section].get(key, ""))
        written[section][key] = old.replace(before, after) if arrow else change
    written[section] = {key: text for key, text in written[section].items() if text}

    errors = _errors_of_check(own_servers, tmp_path, written)

    assert any(message in text and detail in text for text in errors), errors


def test_a_user_without_rights_at_kafka_is_told_so(own_servers: OwnServers, tmp_path: Path) -> None:
    written = configuration(own_servers, tmp_path)
    written["kafka"]["user"] = STRANGER
    written["kafka"]["password"] = own_servers.kafka.server.passwords[STRANGER]

    errors = _errors_of_check(own_servers, tmp_path, written)

    refused = "describing topic wal2lake.wal2lake.heartbeat is not permitted"
    assert any(refused in text for text in errors), errors


def _errors_of_check(own: OwnServers, folder: Path, written: dict[str, Any]) -> list[str]:
    """Return the errors that ``check`` finds with this configuration; none has a secret in it."""
    (folder / "wal2lake.yaml").write_text(yaml.safe_dump(written))
    installed = Secured(folder=folder, servers={}, own=own, written=written)

    done = installed.done("check", "--json")

    assert done.returncode != 0
    assert not _has(done.stdout + done.stderr, list(own.secrets.values()))
    found = json.loads(done.stdout)
    return [finding["message"] for finding in found if finding["level"] == "error"]
