"""Decoding, ordering and merging give the rows of the reference, wherever batches end."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from cdc.apply.changes import changed_keys, reasons, reduce
from cdc.apply.changes.decode import decode_table
from cdc.events import avro
from cdc.events.envelope import change_event
from cdc.events.fold import fold, fold_multiset
from cdc.events.schema import Column, TableSchema, table_schema_from_avro
from cdc.events.values.sql_text import fusion_name
from cdc.lake.create.table import create
from cdc.lake.table import row_hash, store
from cdc.lake.table.merge_plan import COPY, KEEP, OFFSET, REASON, ROW_HASH, UNRESOLVED, merge_plan
from cdc.lake.table.positions import Position
from cdc.tables import TableId, TableMode
from tests.events.recorded import LOG_COLUMNS, Message, recording, table_topic, unchanged_by
from tests.events.source import SCHEMA_ID, TABLE, Source, act, envelope, legal_ends
from tests.local_spark import frame_of
from tests.spark.recorded_pipeline import read_rows

pytestmark = pytest.mark.spark

PLACEHOLDER = "no-value-of-the-source"
SCHEMAS = {SCHEMA_ID: recording("tables").schemas[SCHEMA_ID]}
TOASTY = table_schema_from_avro(SCHEMAS[SCHEMA_ID], table=TABLE, key=("id",), mode=TableMode.KEYED)
NO_KEY_ID = 131
NO_KEY = table_schema_from_avro(
    recording("tables").schemas[NO_KEY_ID],
    table=TableId("public", "no_key"),
    key=(),
    mode=TableMode.MULTISET,
)


class Table:
    """A Delta table to which batches of messages are applied, as the job does."""

    def __init__(
        self,
        spark: SparkSession,
        path: Path,
        schema: TableSchema,
        schemas: Mapping[int, str] = SCHEMAS,
    ) -> None:
        self.spark, self.path, self.schema, self.schemas = spark, str(path), schema, schemas
        create(spark, self.path, schema, Position(epoch=1, offset=-1))

    def decode(self, messages: Sequence[Message], schemas: Mapping[int, str]) -> DataFrame:
        rows = frame_of(self.spark, [m.row() for m in messages], LOG_COLUMNS)
        return decode_table(rows, schemas, self.schema, placeholder=PLACEHOLDER)

    def rows(self) -> DataFrame:
        return self.spark.read.format("delta").load(self.path)

    def merge(self, rows: DataFrame, *, keep: bool, offset: int) -> None:
        position = Position(epoch=1, offset=offset)
        store.merge(self.spark, self.path, rows, merge_plan(self.schema, keep=keep), position)

    def apply(self, messages: Sequence[Message]) -> None:
        changes = self.decode(messages, self.schemas).persist()
        changes = changed_keys.resolve(changes, self.rows(), self.schema).persist()
        facts = reduce.overview(changes).collect()[0]
        assert facts["refused"] == 0
        keep = facts["keeps"] > 0
        latest = reduce.latest_per_key(changes, self.schema, carry=keep)
        self.merge(latest, keep=keep, offset=messages[-1].offset)
        changes.unpersist()

    def apply_without_key(self, messages: Sequence[Message]) -> None:
        changes = self.decode(messages, {NO_KEY_ID: recording("tables").schemas[NO_KEY_ID]})
        net = reduce.net_copies(changes, self.schema)
        rows = reduce.multiset_rows(
            net, reduce.lake_copies(self.rows(), net), self.schema
        ).persist()
        assert rows.where(f"{REASON} IS NOT NULL").isEmpty()
        self.merge(rows, keep=False, offset=messages[-1].offset)
        rows.unpersist()

    def values(self) -> list[dict[str, Any]]:
        """Return the rows without our own columns, by delta-rs."""
        names = ", ".join(map(fusion_name, self.schema.names))
        return sorted(read_rows(self.path, f"SELECT {names} FROM t"), key=repr)


def batches(messages: Sequence[Message], ends: Iterable[int]) -> list[Sequence[Message]]:
    """Split the messages after these numbers of them."""
    places = sorted({0, len(messages), *ends})
    return [messages[a:b] for a, b in pairwise(places)]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_keyed_tables_with_unchanged_values(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Change sixty groups of three keys in turn; batches have one event or more."""
    random, source = Random(seed), Source(placeholder=PLACEHOLDER)
    for _ in range(600):
        act(source, random, range(start := random.randrange(60) * 3, start + 3))
    messages = source.messages()
    table = Table(spark, tmp_path / "t", TOASTY)

    for batch in batches(messages, legal_ends(source, [1, 2, *random.choices(range(600), k=3)])):
        table.apply(batch)

    expected = fold(source.events(), ("id",), unchanged_by(PLACEHOLDER))
    assert {row["id"]: row for row in table.values()} == source.rows
    assert {key[0]: dict(row) for key, row in expected.items()} == source.rows


def test_a_batch_that_is_applied_again_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """Apply everything twice, then a suffix; a deleted row comes back only while it is replayed."""
    random, source = Random(7), Source(placeholder=PLACEHOLDER)
    for _ in range(150):
        act(source, random, range(10))
    messages = source.messages()
    table = Table(spark, tmp_path / "t", TOASTY)
    table.apply(messages)
    version = table.values()

    table.apply(messages)
    table.apply(messages[legal_ends(source, [40])[0] :])

    assert table.values() == version
    assert {row["id"]: row for row in version} == source.rows


def test_a_changed_key_keeps_the_large_values_of_its_row(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Keys are swapped through a third one, and passed on in a chain.

    This happens in the batch that inserts the rows, and in a later one.
    """
    source = Source(placeholder=PLACEHOLDER)
    for key in (1, 2, 5, 6):
        source.insert(key, key, key)
    first = len(source.log)
    for _ in range(2):
        for old, new in ((1, 0), (2, 1), (0, 2), (5, 7), (7, 8), (8, 5)):
            source.rekey(old, new, {"big": None} if old == 7 else {})
        source.update(5, 9, {"bigb": 4})
        source.rekey(5, 6 + 3, {})
        source.rekey(9, 5, {})
    messages = source.messages()
    together, apart = (Table(spark, tmp_path / name, TOASTY) for name in ("together", "apart"))

    together.apply(messages)
    apart.apply(messages[:first])
    apart.apply(messages[first:])

    for table in (together, apart):
        assert {row["id"]: row for row in table.values()} == source.rows


def test_a_changed_key_without_its_old_row_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(placeholder=PLACEHOLDER)
    for key in (1, 2):
        source.insert(key, 1, 1)
        source.rekey(key, key + 10, {})
    table = Table(spark, tmp_path / "t", TOASTY)

    changes = table.decode(source.messages()[1:], SCHEMAS)
    inserts = changed_keys.resolve(changes, table.rows(), TOASTY).where("_cdc_op = 'c'")

    assert {row["id"]: row[REASON] for row in inserts.collect()} == {
        11: reasons.NO_OLD_ROW,
        2: None,
        12: None,
    }


def test_an_older_event_does_not_move_a_row_back(spark: SparkSession, tmp_path: Path) -> None:
    source = Source(placeholder=PLACEHOLDER)
    source.insert(1, 1, 1)
    source.update(1, 2, {"big": 2})
    messages = source.messages()
    table = Table(spark, tmp_path / "t", TOASTY)
    table.apply(messages)

    table.apply(messages[:1])

    assert table.values() == list(source.rows.values())


def test_a_later_event_with_the_same_lsn_is_applied(spark: SparkSession, tmp_path: Path) -> None:
    """Events are ordered by offset: both halves of a changed key, for one, have the same LSN."""
    source = Source(placeholder=PLACEHOLDER)
    source.insert(1, 1, 1)
    source.update(1, 2, {"big": 2})
    messages = source.messages()
    table = Table(spark, tmp_path / "t", TOASTY)

    table.apply(messages[:1])
    table.apply(messages[1:])

    assert table.values() == list(source.rows.values())


def test_an_unchanged_value_of_a_missing_row_fails_the_merge_and_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Source(placeholder=PLACEHOLDER)
    source.insert(1, 1, 1)
    source.insert(2, 1, 1)
    source.update(1, 2, {})
    source.update(2, 2, {})
    messages = source.messages()
    table = Table(spark, tmp_path / "t", TOASTY)
    table.apply(messages[1:2])

    changes = table.decode(messages[2:], SCHEMAS)
    latest = reduce.latest_per_key(changes, TOASTY, carry=True)
    lost = reduce.unresolved(latest, table.rows(), TOASTY)

    assert [row["id"] for row in lost.collect()] == [1]
    with pytest.raises(Exception, match=UNRESOLVED):
        table.merge(latest, keep=True, offset=9)
    table.merge(latest.where("id = 2"), keep=True, offset=9)
    assert table.values() == [source.rows[2]]


def test_an_unchanged_value_is_not_taken_across_a_refused_event(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The refused event may have changed the value; a later complete row repairs the key."""
    source = Source(placeholder=PLACEHOLDER)
    for key in (1, 2, 3):
        source.insert(key, 1, 1)
    for key in (1, 2, 3):
        source.update(key, 2, {"big": 2})  # refused below
    source.update(1, 3, {})
    source.update(2, 3, dict.fromkeys(("big", "bigb", "bigj", "biga", "bigia", "bigh"), 3))
    source.delete(3)
    source.insert(3, 4, 4)
    source.update(3, 5, {})
    table = Table(spark, tmp_path / "t", TOASTY)
    refused = f"IF({OFFSET} IN (3, 4, 5), 'refused', {REASON})"
    changes = table.decode(source.messages(), SCHEMAS).withColumn(REASON, F.expr(refused))

    latest = reduce.latest_per_key(changes, TOASTY, carry=True).collect()
    by_id = {row["id"]: row for row in latest}

    assert by_id[1][REASON] == reasons.AFTER_REFUSED
    assert (by_id[2][REASON], by_id[2][KEEP], by_id[2]["big"]) == (None, None, "text 3")
    assert (by_id[3][REASON], by_id[3][KEEP], by_id[3]["big"]) == (None, None, "text 4")


def without_key(random: Random, steps: int) -> list[Message]:
    """Return random changes of a table without a key, in which rows occur several times."""
    rows: list[dict[str, Any]] = []
    messages = []
    for offset in range(steps):
        new = {"x": random.randrange(3), "y": random.choice([None, "", "a"])}
        kind = random.choice("iiud") if rows else "i"
        old = None if kind == "i" else rows.pop(random.randrange(len(rows)))
        after = None if kind == "d" else new
        rows += [after] if after else []
        op = {"i": "c", "u": "u", "d": "d"}[kind]
        value = envelope(NO_KEY.table, op, before=old, after=after)
        data = avro.encode(recording("tables").schemas[NO_KEY_ID], NO_KEY_ID, value)
        messages.append(Message(topic=table_topic("no_key"), offset=offset, key=None, value=data))
    return messages


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.deep)])
def test_tables_without_a_key_are_multisets(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    messages = without_key(random, 120)
    table = Table(spark, tmp_path / "t", NO_KEY)

    for batch in batches(messages, [1, *random.choices(range(len(messages)), k=2)]):
        table.apply_without_key(batch)

    recorded = recording("tables")
    events = [
        change_event(m.topic, m.offset, value)
        for m in messages
        if (value := recorded.decoded(m.value)) is not None
    ]
    assert Counter(tuple(row.items()) for row in table.values()) == fold_multiset(events)
    counted = f'SELECT max("{COPY}") AS last, count(*) AS count FROM t GROUP BY "{ROW_HASH}"'
    assert all(row["last"] == row["count"] for row in read_rows(table.path, counted))


def test_deleting_more_copies_than_held_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    value = envelope(NO_KEY.table, "d", before={"x": 1, "y": "a"}, after=None)
    schema = recording("tables").schemas[NO_KEY_ID]
    data = avro.encode(schema, NO_KEY_ID, value)
    message = Message(topic=table_topic("no_key"), offset=3, key=None, value=data)
    table = Table(spark, tmp_path / "t", NO_KEY)

    net = reduce.net_copies(table.decode([message], {NO_KEY_ID: schema}), NO_KEY)
    rows = reduce.multiset_rows(net, reduce.lake_copies(table.rows(), net), NO_KEY).collect()

    assert [(row[OFFSET], row[REASON]) for row in rows] == [(3, reasons.TOO_FEW_COPIES)]


def test_different_rows_have_different_hashes(spark: SparkSession) -> None:
    """Try null and empty values, and values whose concatenations are the same."""
    columns = "a string, b string, c array<string>, d double, e binary"
    schema = TableSchema(
        table=TABLE,
        columns=tuple(
            Column(name, kind) for name, kind in (c.split() for c in columns.split(", "))
        ),
        key=(),
        mode=TableMode.MULTISET,
    )
    rows: list[tuple[Any, ...]] = [
        (None, None, None, None, None),
        ("", None, None, None, None),
        (None, "", None, None, None),
        ("ab", "c", None, None, None),
        ("a", "bc", None, None, None),
        ("1:b=1:x", None, None, None, None),
        ("", "x", None, None, None),
        (None, None, [], None, None),
        (None, None, [None], None, None),
        (None, None, [""], None, None),
        (None, None, ["a,b"], None, None),
        (None, None, ["a", "b"], None, None),
        (None, None, ["-"], None, None),
        (None, None, None, 0.0, None),
        (None, None, None, -0.0, None),
        (None, None, None, float("nan"), None),
        (None, None, None, None, b""),
        (None, None, None, None, b"\x00"),
    ]
    frame = frame_of(spark, rows, columns)

    hashes = [row[0] for row in frame.selectExpr(row_hash.row_hash(schema)).collect()]

    assert len(set(hashes)) == len(rows)
