"""Events of a table whose structure has a column that they lack, for both ways of applying."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cdc.events import avro
from cdc.events.schema import table_schema_from_avro
from cdc.events.structure.structure import Structure
from cdc.tables import TableMode
from tests.events.recorded import Message, recording
from tests.events.source import LARGE, SCHEMA_ID, TABLE, Source, envelope
from tests.events.structures import column, structure

SCHEMAS: Final = {SCHEMA_ID: recording("tables").schemas[SCHEMA_ID]}
SCHEMA: Final = table_schema_from_avro(
    SCHEMAS[SCHEMA_ID], table=TABLE, key=("id",), mode=TableMode.KEYED
)
_KINDS: Final = {"int": "int4", "string": "text", "binary": "bytea", "array<int>": "_int4"}


def structured(*more: str) -> Structure:
    """Return the structure of the events, with more text columns."""
    kinds = [(c.name, _KINDS.get(c.type, "text")) for c in SCHEMA.columns]
    kinds += [(name, "text") for name in more]
    columns = [column(number, name, kind) for number, (name, kind) in enumerate(kinds, 1)]
    return structure(*columns, schema=TABLE.schema, table=TABLE.name)


@dataclass(frozen=True, slots=True)
class Case:
    """Some events, the structure of their table, and whether they stop it."""

    name: str
    messages: Sequence[Message]
    stops: bool
    structure: Structure


def _cases() -> list[Case]:
    source = Source(placeholder="no-value-of-the-source")
    source.insert(1, 1, 1, op="r")
    source.insert(2, 1, 1)
    source.update(2, 2, {})
    source.delete(2)
    source.truncate()
    read, created, updated, deleted, truncated = source.messages()
    row = {"id": 3, "n": 1, **dict.fromkeys(LARGE)}
    torn = envelope(TABLE, "c", before=None, after=row)
    torn["transaction"]["id"] = "x:1"
    wanted = structured("lost")
    some = {
        "read": ([read], False),
        "read and created": ([read, created], True),
        "updated": ([updated], True),
        "deleted": ([deleted], True),
        "truncated": ([truncated], True),
        "no operation": ([_with(read, envelope(TABLE, "x", before=None, after=row))], False),
        "torn": ([_with(read, torn)], False),
        "broken": ([replace(created, value=(created.value or b"")[:9])], False),
        "unknown schema": ([replace(created, value=b"\0\0\0\0\x01")], False),
        "tombstone": ([replace(created, value=None)], False),
        "nothing": ([], False),
    }
    found = [Case(name, messages, stops, wanted) for name, (messages, stops) in some.items()]
    return [*found, Case("with all columns", [created], stops=False, structure=structured())]


def _with(message: Message, value: dict[str, object]) -> Message:
    return replace(message, value=avro.encode(SCHEMAS[SCHEMA_ID], SCHEMA_ID, value))


CASES: Final = _cases()
