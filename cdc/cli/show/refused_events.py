"""Show refused events as objects for JSON, and as a table for the terminal."""

import json
from collections.abc import Iterable
from typing import Any

from rich.table import Table
from rich.text import Text

from cdc.cli.sql import plain
from cdc.client.quarantine import Decoder
from cdc.config import Config
from cdc.errors import CdcError
from cdc.kafka.registry_client import RegistryClient
from cdc.lake.records.quarantine import RefusedEvent
from cdc.state.pipeline import resolve


def decoder_of(config: Config) -> Decoder:
    """Return a decoder that asks the registry for schemas until a request to it fails."""
    silent: list[CdcError] = []

    def schema(number: int) -> str | None:
        try:
            return None if silent else registry().schema(number)
        except CdcError as error:
            silent.append(error)
            return None

    clients: list[RegistryClient] = []

    def registry() -> RegistryClient:
        if not clients:
            clients.append(RegistryClient(resolve(config).endpoints.registry))
        return clients[0]

    return Decoder(schema)


def event_rows(events: Iterable[RefusedEvent], decoder: Decoder) -> list[dict[str, Any]]:
    """Return the events as objects for JSON; of the row's values they hold only the key."""
    return [
        {
            "number": number,
            "table": event.table,
            "topic": event.topic,
            "offset": event.offset,
            "key": decoder.key(event),
            "reason": event.reason,
            "quarantined_at": event.quarantined_at.isoformat(),
            "state": event.state.value,
            "settled_at": event.settled_at and event.settled_at.isoformat(),
            "settled_by": event.settled_by,
            "note": event.note,
        }
        for number, event in enumerate(events, start=1)
    ]


def event_facts(event: RefusedEvent, decoder: Decoder) -> dict[str, Any]:
    """Return everything about an event as an object for JSON, its raw bytes as hexadecimal."""
    [row] = event_rows([event], decoder)
    del row["number"]
    return row | {
        "partition": event.partition,
        "epoch": event.epoch,
        "key_schema_id": event.key_schema_id,
        "value_schema_id": event.value_schema_id,
        "headers": [
            [name, None if value is None else value.hex()] for name, value in event.headers
        ],
        "event": plain(decoder.value(event)),
        "key_hex": None if event.key is None else event.key.hex(),
        "value_hex": None if event.value is None else event.value.hex(),
    }


def listing(rows: list[dict[str, Any]]) -> Table:
    """Return the rows of ``event_rows`` as a table for the terminal."""
    table = Table(show_edge=False)
    table.add_column("#", justify="right")
    for name in ("table", "topic/offset", "key", "reason", "when", "state"):
        table.add_column(name, overflow="fold")
    for row in rows:
        key = "" if row["key"] is None else json.dumps(row["key"], ensure_ascii=False)
        state = f"{row['state']}: {row['note']}" if row["note"] else row["state"]
        when = f"{row['quarantined_at'][:19].replace('T', ' ')}"
        cells = (row["table"], f"{row['topic']}/{row['offset']}", key, row["reason"], when, state)
        table.add_row(str(row["number"]), *map(Text, cells))
    return table
