"""An invented log of one table, and the rows that the lake must have at any offset."""

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
from tests.local_spark import frame_of

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
    """Events of one table, in landings of a few events each."""

    spark: SparkSession
    root: Path
    messages: Sequence[Message]
    schema: TableSchema = TOASTY
    schemas: dict[int, str] = field(default_factory=lambda: dict(SCHEMAS))
    per_landing: int = 7

    def rows(self, *, after_landing: int = 0) -> DataFrame:
        """Return the rows of the log in later landings, as the lake's log has them."""
        landed = [
            (i // self.per_landing + 1, *message.row()) for i, message in enumerate(self.messages)
        ]
        rows = [row for row in landed if row[0] > after_landing]
        frame = frame_of(self.spark, rows, f"landing bigint, {LOG_COLUMNS}")
        return frame.selectExpr("*", "0 AS partition", "current_timestamp() AS timestamp")

    def landing_at(self, offset: int) -> int:
        """Return the last landing whose events are all at or before the offset."""
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
        parts: dict[str, Any] = {
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
        return Material(**{**parts, **more})


def factory(root: Path) -> TableFactory:
    quarantine = Quarantine(str(root / "quarantine"))
    return TableFactory(ApplyContext(quarantine=quarantine, placeholder=PLACEHOLDER, policy=Job()))


def changes(seed: int, steps: int, keys: int = 12) -> Source:
    """Return random legal changes of a few keys, including changed keys and one truncate.

    None is an event of a snapshot, because those may not be anywhere in a log.
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
    """Return the offsets at which a cut may end: not between the events of a changed key."""
    return [at for at, value in source.log if value["op"] != "d" and at + 1 not in source.moved]


def expected(events: Iterable[ChangeEvent], upto: int) -> dict[Any, Row]:
    """Return the reference's rows by id after the events up to an offset."""
    part = sorted((e for e in events if e.offset <= upto), key=lambda event: event.offset)
    return {
        key[0]: dict(row) for key, row in fold(part, ("id",), unchanged_by(PLACEHOLDER)).items()
    }


def copies(random: Random, steps: int) -> list[Message]:
    """Return random changes, with one truncate, of a table without a key; rows repeat."""
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
    """Return the reference's rows, with their number of copies, up to an offset."""
    recorded = recording("tables")
    events = [
        change_event(m.topic, m.offset, value)
        for m in messages
        if m.offset <= upto and (value := recorded.decoded(m.value)) is not None
    ]
    return fold_multiset(events)


def held(spark: SparkSession, path: str, schema: TableSchema) -> list[Row]:
    """Return the rows of a Delta table, without our own columns."""
    names = [f"`{name}`" for name in schema.names]
    return [
        {name: _plain(value) for name, value in row.asDict().items()}
        for row in store.read(spark, path).select(*names).collect()
    ]


def by_id(spark: SparkSession, table: AppliedTable) -> dict[Any, Row]:
    """Return the table's rows by id; fail if an id occurs twice."""
    rows = held(spark, table.path, table.schema)
    by_key = {row["id"]: row for row in rows}
    assert len(by_key) == len(rows)
    return by_key


def event(offset: int, op: Op, row: Row) -> ChangeEvent:
    """Return a change that a reading made, as an event."""
    if op is Op.DELETE:
        return ChangeEvent(topic=TOPIC, offset=offset, op=op, before=row)
    return ChangeEvent(topic=TOPIC, offset=offset, op=op, after=row)


def _plain(value: Any) -> Any:  # noqa: ANN401
    return bytes(value) if isinstance(value, bytearray) else value
