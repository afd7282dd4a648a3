"""Runs a pipeline up to Kafka, with the tools of an experiment: sessions, signals, restarts."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import httpx

from cdc.capture import bootstrap
from cdc.capture.bootstrap import establish, placeholder
from cdc.capture.continuity import marker_topic
from cdc.config import Config, Connect, Kafka, Lake, Registry, Source
from cdc.kafka.broker import Broker
from cdc.kafka.offsets import end_offsets
from cdc.kafka.topics import TopicSpec, ensure_topics
from cdc.source.connector import worker_rest
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect
from cdc.state import pipeline
from cdc.state.endpoints import Endpoints
from cdc.waiting import until
from tests.experiments.labels import Label, Reader
from tests.servers.server import Server

_SECONDS: Final = 60
SIGNALS: Final = "wal2lake.signal"
_SIGNALS: Final = f"{SIGNALS} (id text PRIMARY KEY, type text NOT NULL, data text)"
_settings: Final = bootstrap.connector_settings


@dataclass(kw_only=True)
class Stack:
    """Holds the servers of an experiment."""

    servers: Mapping[str, Server]
    worker: Mapping[str, str]

    @property
    def endpoints(self) -> Endpoints:
        """Return the servers' addresses."""
        return Endpoints(
            source_url=self.servers["postgres"].address,
            kafka=Broker(self.servers["kafka"].address),
            registry=self.servers["registry"].address,
            connect=self.servers["connect"].address,
        )


@dataclass(kw_only=True)
class Pipeline:
    """A pipeline whose ``name`` is also that of its schema, publication, slot and connector."""

    stack: Stack
    name: str
    folder: Path
    source: Connection = field(init=False)
    reader: Reader = field(init=False)
    ends: int = 0

    def __post_init__(self) -> None:
        self.endpoints = self.stack.endpoints
        self.source = self.session()
        self.run(f"CREATE SCHEMA {self.name}")
        self.reader = Reader(endpoints=self.endpoints)

    @property
    def config(self) -> Config:
        """Return the pipeline's configuration."""
        return Config(
            name=self.name,
            source=Source(tables=[f"{self.name}.*"], snapshot="connector"),
            lake=Lake(path=str(self.folder / "lake")),
            state_dir=self.folder,
            kafka=Kafka(bootstrap_servers=self.endpoints.kafka.bootstrap),
            connect=Connect.model_validate({"url": self.endpoints.connect, **self.stack.worker}),
            registry=Registry(url=self.endpoints.registry),
        )

    @property
    def given(self) -> pipeline.Pipeline:
        """Return what the functions of the project take."""
        return pipeline.Pipeline(self.config, self.endpoints)

    def session(self) -> Connection:
        """Open another connection with the schema on its search path."""
        connection = connect(self.endpoints.source_url)
        connection.execute(f"SET search_path = {self.name}, public".encode())
        return connection

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run the statements one by one; return the rows of the last."""
        for statement in statements:
            cursor = self.source.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    @property
    def placeholder(self) -> str:
        """Return the connector's placeholder for unchanged large values."""
        return placeholder(self.given)

    def start(self, *, signals: bool = False) -> None:
        """Create publication, slot and connector.

        With ``signals`` it takes such rows as commands, for which wal2lake gives it no table.
        """
        if not signals:
            establish(self.given)
            return
        self.run("CREATE SCHEMA IF NOT EXISTS wal2lake", f"CREATE TABLE IF NOT EXISTS {_SIGNALS}")
        topic = TopicSpec(f"{self.name}.{SIGNALS}", {"cleanup.policy": "delete"})
        ensure_topics(self.endpoints.kafka, [topic])

        def with_signals(*given: Any, **named: Any) -> dict[str, str]:  # noqa: ANN401 - as given
            return {**_settings(*given, **named), "signal.data.collection": SIGNALS}

        with patch.object(bootstrap, "connector_settings", with_signals):
            establish(self.given)
        self.run(f"ALTER PUBLICATION {self.name} ADD TABLE {SIGNALS}")

    def stop(self) -> None:
        """Stop the connector."""
        worker_rest.stop(self.endpoints.connect, self.name)

    def resume(self) -> None:
        """Resume the connector."""
        worker_rest.resume(self.endpoints.connect, self.name)

    def set(self, settings: Mapping[str, str]) -> None:
        """Begin a new run of the connector with other settings."""
        self.stop()
        have = worker_rest.configuration(self.endpoints.connect, self.name) or {}
        wanted = {name: value for name, value in have.items() if name != "name"}
        worker_rest.configure(self.endpoints.connect, self.name, {**wanted, **settings})
        self.resume()

    def close(self) -> None:
        """Remove connector, slot, publication and schema."""
        worker_rest.delete(self.endpoints.connect, self.name)
        until(
            lambda: not slot.is_read(self.source, self.name), _SECONDS, "the slot is still in use"
        )
        slot.drop(self.source, self.name)
        self.run(f"DROP PUBLICATION IF EXISTS {self.name}", f"DROP SCHEMA {self.name} CASCADE")
        self.source.close()

    # Kafka

    def topic(self, table: str) -> str:
        """Return a table's topic."""
        return f"{self.name}.{self.name}.{table}"

    def end(self, table: str) -> int:
        """Return the end offset of a table's topic."""
        return end_offsets(self.endpoints.kafka, [self.topic(table)])[self.topic(table)]

    def until(self, table: str, done: Callable[[list[Label]], bool], start: int = 0) -> list[Label]:
        """Wait until the events of a table from an offset satisfy ``done``; return them."""
        labels: list[Label] = []

        def is_done() -> bool:
            labels[:] = self.reader.labels(self.topic(table), start)
            return bool(labels) and done(labels)

        until(is_done, _SECONDS, f"the topic of {table} never got there")
        return labels

    def settled(self, table: str, start: int = 0) -> list[Label]:
        """Return all events of a table committed so far: insert a last row and await it."""
        self.ends += 1
        last = -1000 - self.ends
        self.run(f"INSERT INTO {table} (id) VALUES ({last})")
        return self.until(table, lambda labels: labels[-1].row["id"] == last, start)

    def signals(self) -> list[Label]:
        """Return the events of the signal table."""
        return self.reader.labels(f"{self.name}.{SIGNALS}", 0)

    def ended(self) -> list[int]:
        """Return the transactions in the order of their commits."""
        decoded = self.reader.decoded(marker_topic(self.config))
        return [int(m["id"].partition(":")[0]) for m in decoded if m["status"] == "END"]

    def counts(self, txid: int | None) -> list[int]:
        """Return the number of events that each END of this transaction claims."""
        decoded = self.reader.decoded(marker_topic(self.config))
        return [
            m["event_count"]
            for m in decoded
            if m["status"] == "END" and m["id"].startswith(f"{txid}:")
        ]

    # The connector

    def signal(self, kind: str, tables: str) -> str:
        """Return the statement that asks for a snapshot of the tables (a regular expression)."""
        data = {"data-collections": [f"{self.name}.{tables}"], "type": kind}
        return (
            f"INSERT INTO {SIGNALS} VALUES "
            f"(gen_random_uuid()::text, 'execute-snapshot', '{json.dumps(data)}')"
        )

    def blocked(self, blocker: Connection) -> bool:
        """Return whether another session waits for a lock of this one."""
        pid = blocker.info.backend_pid
        return bool(self.run(f"SELECT 1 FROM pg_locks WHERE {pid} = ANY(pg_blocking_pids(pid))"))

    def until_blocked(self, blocker: Connection) -> None:
        """Wait until another session waits for a lock of this one."""
        until(lambda: self.blocked(blocker), _SECONDS, "nobody waits for the session")

    def offsets(self) -> dict[str, Any]:
        """Return the connector's stored offsets."""
        return worker_rest.offsets(self.endpoints.connect, self.name) or {}

    def turn_back(self, offsets: Mapping[str, Any]) -> None:
        """Make a stopped connector believe that it got no further than this."""
        url = f"{self.endpoints.connect}/connectors/{self.name}/offsets"
        (entry,) = httpx.get(url).raise_for_status().json()["offsets"]
        entry["offset"] = dict(offsets)
        httpx.patch(url, json={"offsets": [entry]}).raise_for_status()
