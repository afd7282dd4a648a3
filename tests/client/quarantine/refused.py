"""Refused events of a recorded connector, and what they are shown, asked and settled with."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from structlog.testing import capture_logs
from typer.testing import CliRunner

from cdc.cli import app
from cdc.client.quarantine import Decoder
from cdc.config import Config
from cdc.errors import CdcError
from cdc.events import avro
from cdc.lake.layout import operations_path
from cdc.lake.records.operations import Operations
from cdc.lake.records.quarantine import Quarantine, RefusedEvent
from cdc.lake.table.positions import KEY_PROPERTY
from cdc.operations.desk.desk import Desk
from cdc.operations.desk.reporter import Reporter
from cdc.operations.discard import discard
from cdc.state.operation import Operation
from cdc.tables import TableId
from tests.events.recorded import Message, recording, table_topic

RECORDED = recording("tables")
NOW = datetime(2026, 11, 21, 10, 20, 30, 123456, UTC)
PAIRS, NO_KEY = TableId("public", "composite_key"), TableId("public", "no_key")


def messages(table: TableId) -> list[Message]:
    """Events of single rows: neither tombstones nor truncates."""
    found = [(m, RECORDED.decoded(m.value)) for m in RECORDED.of(table_topic(table.name))]
    return [message for message, event in found if event and event["op"] != "t"]


def refused(table: TableId, message: Message, **changed: Any) -> RefusedEvent:  # noqa: ANN401
    frame = avro.frame(message.value)
    facts = {
        "table": str(table),
        "topic": message.topic,
        "partition": 0,
        "offset": message.offset,
        "key": message.key,
        "value": message.value,
        "value_schema_id": frame.schema_id if frame else None,
        "reason": "column v holds a value that int cannot",
        "quarantined_at": NOW,
        "epoch": 1,
    }
    return RefusedEvent(**{**facts, **changed})


EVENTS = [refused(PAIRS, m) for m in messages(PAIRS)]
BY_KEY: dict[tuple[Any, ...], list[int]] = {}
for _event in EVENTS:
    _key = (RECORDED.decoded(_event.key) or {})["key"]
    BY_KEY.setdefault((str(_key["a"]), _key["b"]), []).append(_event.offset)
DECODER = Decoder(RECORDED.schemas.get)


class Registry(BaseHTTPRequestHandler):
    """Answers as the registry does for the recorded schemas."""

    def do_GET(self) -> None:
        found = re.fullmatch(r"/apis/ccompat/v7/schemas/ids/(\d+)", self.path)
        text = RECORDED.schemas.get(int(found[1])) if found else None
        self.send_response(200 if text else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"schema": text}).encode())

    def log_message(self, *_arguments: object) -> None:
        """Nothing to the terminal."""


def lake_table(path: Path, key: list[str]) -> None:
    """Its first commit by hand: delta-rs writes no property that it does not know."""
    fields = [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]
    metadata = {
        "id": path.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {KEY_PROPERTY: json.dumps(key)},
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    (path / "_delta_log").mkdir(parents=True)
    lines = [json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata})]
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(lines))


@contextmanager
def answering() -> Iterator[int]:
    """The port of a registry that has the recorded schemas."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def run(config: Config, *arguments: str, code: int = 0) -> str:
    path = str(config.state_dir.parent / "wal2lake.yaml")
    result = CliRunner().invoke(app, ["quarantine", *arguments, "--config", path])
    error = result.exception
    if isinstance(error, CdcError):
        assert error.policy.exit_code == code, error
        return str(error)
    assert result.exit_code == code, (result.output, error)
    return result.output


class Job:
    """The job's desk with the handler, and what it was told to count."""

    def __init__(self, config: Config, quarantine: Quarantine) -> None:
        self.counts: list[tuple[str, int]] = []
        self.asked: list[Operation] = []
        handlers = {
            "discard": discard(quarantine, lambda *said: self.counts.append(said)),
            "resnapshot": self._resnapshot,
        }
        record = Operations(operations_path(config))
        self._desk = Desk(config.state_dir, record, handlers)

    def _resnapshot(self, operation: Operation, _reporter: Reporter) -> None:
        self.asked.append(operation)

    def __enter__(self) -> Self:
        self._logs = capture_logs()
        self._logs.__enter__()
        self._desk.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._desk.stop(30)
        self._logs.__exit__(None, None, None)


def states(quarantine: Quarantine) -> dict[int, str]:
    return {event.offset: event.state.value for event in quarantine.rows()}
