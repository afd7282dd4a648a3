"""A log of one table, made up, and what the lake must hold of it at any offset."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from cdc.apply.log_replay import Recorded
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.structure_notes import PlacedNote
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Job
from cdc.events import avro
from cdc.events.envelope import ChangeEvent, Op, change_event
from cdc.events.fold import fold, fold_multiset
from cdc.events.schema import TableSchema, table_schema_from_avro
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table import store
from cdc.operations.replay.material import FirstSchema, Material
from cdc.tables import TableId, TableMode
from tests.events.recorded import LOG_COLUMNS, Message, recording, table_topic, unchanged_by
from tests.events.source import SCHEMA_ID, TABLE, TOPIC, Source, act, envelope

PLACEHOLDER = "no-value-of-the-source"
NO_KEY_ID = 131
SCHEMAS = {number: recording("tables").schemas[number] for number in (SCHEMA_ID, NO_KEY_ID)}
TOASTY = table_schema_from_avro(SCHEMAS[SCHEMA_ID], table=TABLE, key=("id",), mode=TableMode.KEYED)
NO_KEY = table_schema_from_avro(
    SCHEMAS[NO_KEY_ID], table=TableId("public", "no_key"), key=(), mode=TableMode.MULTISET
)
Row = dict[str, Any]


@dataclass(kw_only=True)
class Log:
    """Events of one table in landings of a few each."""

    spark: SparkSession
    root: Path
    messages: Sequence[Message]
    schema: TableSchema = TOASTY
    schemas: dict[int, str] = field(default_factory=lambda: dict(SCHEMAS))
    per_landing: int = 7

    def rows(self, *, after_landing: int = 0) -> DataFrame:
        every = [
            (i // self.per_landing + 1, *message.row()) for i, message in enumerate(self.messages)
        ]
        kept = [row for row in every if row[0] > after_landing]
        frame = self.spark.createDataFrame(kept, f"landing bigint, {LOG_COLUMNS}")
        return frame.selectExpr("*", "0 AS partition", "current_timestamp() AS timestamp")

    def landing_at(self, offset: int) -> int:
        """The last one that is wholly at or before the offset."""
        before = [m for m in self.messages if m.offset <= offset]
        return len(before) // self.per_landing

    def material(
        self,
        *,
        after_landing: int = 0,
        budget: int = 40,
        notes: Sequence[PlacedNote] = (),
        **more: Any,  # noqa: ANN401
    ) -> Material:
        given: dict[str, Any] = {
            "recorded": Recorded(
                rows=self.rows(after_landing=after_landing),
                topic=self.messages[0].topic,
                notes=notes,
                schemas_of=lambda ids: {i: self.schemas[i] for i in ids if i in self.schemas},
                budget=budget,
            ),
            "events_from": "log",
            "first_landing": after_landing + 1,
            "readings": [],
            "first": FirstSchema(note=None, known=self.schema),
            "tables": factory(self.root),
        }
        return Material(**{**given, **more})


def factory(root: Path) -> TableFactory:
    quarantine = Quarantine(str(root / "quarantine"))
    return TableFactory(ApplyContext(quarantine=quarantine, placeholder=PLACEHOLDER, policy=Job()))


def changes(seed: int, steps: int, keys: int = 12) -> Source:
    """Random legal changes of a few keys, with changes of keys and a truncate in the middle.

    No event is a snapshot's: where those may stand is another matter.
    """
    random, source = Random(seed), Source(placeholder=PLACEHOLDER)
    for step in range(steps):
        act(source, random, range(keys))
        if step == steps // 2:
            source.truncate()
    for _, value in source.log:
        value["op"] = "c" if value["op"] == "r" else value["op"]
    return source


def legal_cuts(source: Source) -> list[int]:
    """Offsets at which a cut may end: not between the halves of a key's change."""
    return [at for at, value in source.log if value["op"] != "d" and at + 1 not in source.moved]


def expected(events: Iterable[ChangeEvent], upto: int) -> dict[Any, Row]:
    """By the reference."""
    part = sorted((e for e in events if e.offset <= upto), key=lambda event: event.offset)
    return {
        key[0]: dict(row) for key, row in fold(part, ("id",), unchanged_by(PLACEHOLDER)).items()
    }


def copies(random: Random, steps: int) -> list[Message]:
    """Changes of a table without a key that holds each row several times; one truncate."""
    rows: list[Row] = []
    messages = []
    for offset in range(steps):
        kind = "t" if offset == steps // 3 else random.choice("iiud") if rows else "i"
        old = rows.pop(random.randrange(len(rows))) if kind in "ud" else None
        after = {"x": random.randrange(3), "y": random.choice([None, "", "a"])}
        after_ = after if kind in "iu" else None
        rows = [] if kind == "t" else rows + ([after_] if after_ else [])
        value = envelope(NO_KEY.table, {"i": "c"}.get(kind, kind), before=old, after=after_)
        data = avro.encode(SCHEMAS[NO_KEY_ID], NO_KEY_ID, value)
        topic = table_topic("no_key")
        messages.append(Message(topic=topic, offset=offset, key=None, value=data))
    return messages


def expected_copies(messages: Iterable[Message], upto: int) -> Counter[tuple[Any, ...]]:
    found = recording("tables")
    events = [
        change_event(m.topic, m.offset, value)
        for m in messages
        if m.offset <= upto and (value := found.decoded(m.value)) is not None
    ]
    return fold_multiset(events)


def held(spark: SparkSession, path: str, schema: TableSchema) -> list[Row]:
    """The rows of a Delta table, without our own columns."""
    names = [f"`{name}`" for name in schema.names]
    return [
        {name: _plain(value) for name, value in row.asDict().items()}
        for row in store.read(spark, path).select(*names).collect()
    ]


def by_id(spark: SparkSession, table: AppliedTable) -> dict[Any, Row]:
    rows = held(spark, table.path, table.schema)
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def event(offset: int, op: Op, row: Row) -> ChangeEvent:
    """What a reading changed, as an event of its own."""
    if op is Op.DELETE:
        return ChangeEvent(topic=TOPIC, offset=offset, op=op, before=row)
    return ChangeEvent(topic=TOPIC, offset=offset, op=op, after=row)


def _plain(value: Any) -> Any:  # noqa: ANN401
    return bytes(value) if isinstance(value, bytearray) else value
