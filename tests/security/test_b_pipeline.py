"""A whole pipeline runs on one's own servers, with TLS and a login at each, and keeps its secrets.

The role at the source has the rights of connectors/source.sql and no others. Every password is a
canary: it is looked for in whatever the pipeline and the servers have written, show and run as.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pytest
import yaml
from confluent_kafka import KafkaError, TopicPartition

from cdc import http_client
from cdc.kafka.broker import Broker
from cdc.kafka.clients import producer, reading_consumer
from cdc.kafka.offsets import end_offsets
from tests.security.conftest import OwnServers
from tests.security.own_servers import CONNECT_USER, REGISTRY_USER, ROLE, STRANGER
from tests.security.secured import Secured, configuration, has

pytestmark = pytest.mark.e2e

CHANGES: Final = """
INSERT INTO public.orders SELECT i, i, 'later' FROM generate_series(1001, 1200) i;
UPDATE public.orders SET note = 'changed' WHERE id <= 50;
DELETE FROM public.orders WHERE id BETWEEN 51 AND 60;
"""


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
    assert [p for p in psutil.process_iter() if has(_command(p), canaries)] == []
    shown = _shown(secured)
    assert {name: text for name, text in shown.items() if has(text, canaries)} == {}
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
    refused = _first_error(stranger, topic)

    assert [error.code() for error in answers] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert refused is not None
    assert refused.code() in {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,  # the client asks for the group's broker first
    }
    assert _first_error(kafka.pipeline, topic) is None
    assert end_offsets(kafka.pipeline, [topic])[topic] > 0


def _first_error(broker: Broker, topic: str) -> KafkaError | None:
    """Read the topic's first record as the job does; return the error in its place, if any."""
    reader = reading_consumer(broker, "wal2lake.landing")
    reader.assign([TopicPartition(topic, 0, 0)])
    try:
        return reader.consume(1, timeout=30)[0].error()
    finally:
        reader.close()


def test_only_this_machine_reaches_it_and_no_jvm_is_open_to_tools(secured: Secured) -> None:
    """A JVM that listens for JMX or for a debugger runs whatever it is sent."""
    places = [str(secured.folder), str(secured.own.state.root)]
    ours = [p for p in psutil.process_iter() if has(f"{_command(p)} {_environ(p)}", places)]
    tools = ("jmxremote", "jdwp", "attachListener")

    assert {"java", "postgres"} <= {p.name() for p in ours}
    assert [_command(p) for p in ours if has(f"{_command(p)} {_environ(p)}", list(tools))] == []
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
