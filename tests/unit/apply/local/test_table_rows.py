"""A real Delta table, committed to without Spark, has the rows that a lake in memory has.

Unchanged values are taken from its data files there, found by its key index.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.apply.local import table_rows
from cdc.apply.local.decode import TableDecoder
from cdc.apply.local.driver_commit import DriverBatch, DriverCommit, DriverSettings
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.local.places import RowPlaces
from cdc.apply.local.table_rows import TableRows
from cdc.config import Job
from cdc.events.schema import TableSchema, table_schema_from_avro
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.key_index.file_index import FileIndex
from cdc.lake.key_index.refused import IndexRefusedError
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.merge_plan import COPY, ROW_HASH, stored_columns
from cdc.lake.table.positions import Position, position
from cdc.observe.stage_times import StageTimes
from cdc.tables import TableId, TableMode
from tests.events.damaged import MARK, keyed_messages, keyless_messages
from tests.events.local_lake import LocalLake, log_table
from tests.events.recorded import Message, recording
from tests.events.source import SCHEMA_ID, TABLE, Source
from tests.unit.lake.commit.small_table import at, make

DELTA: dict[str, Any] = {
    "int": "integer",
    "string": "string",
    "binary": "binary",
    "bigint": "long",
    "array<string>": {"type": "array", "elementType": "string", "containsNull": True},
    "array<int>": {"type": "array", "elementType": "integer", "containsNull": True},
}
SCHEMAS = {number: recording("tables").schemas[number] for number in (SCHEMA_ID, 131)}
TOASTY = table_schema_from_avro(SCHEMAS[SCHEMA_ID], table=TABLE, key=("id",), mode=TableMode.KEYED)
NO_KEY = table_schema_from_avro(
    SCHEMAS[131], table=TableId("public", "no_key"), key=(), mode=TableMode.MULTISET
)
POLICY = Job(quarantine_limit_run=10_000)


class DeltaLake:
    """Commits to a table on disk from this process."""

    def __init__(self, folder: Path, schema: TableSchema) -> None:
        self.path, self.schema = str(folder / "t"), schema
        self.kinds = {c.name: DELTA[c.type] for c in schema.columns}
        self.kinds |= {"_cdc_offset": "long", ROW_HASH: "string", COPY: "long"}
        self.committer = make(folder / "t", {n: self.kinds[n] for n in stored_columns(schema)})
        self.quarantine = Quarantine(str(folder / "q"))
        self.position = Position(epoch=1, offset=-1)
        self.commits = DriverCommit(
            self.path,
            "t",
            DriverSettings(
                index_directory=folder / "index",
                index_bytes=1 << 20,
                stages=StageTimes(),
                executor=ThreadPoolExecutor(1),
                check_directory=folder / "check",
            ),
            quarantine=self.quarantine,
            placeholder=MARK,
            policy=POLICY,
        )

    def apply(self, messages: Sequence[Message]) -> None:
        events = log_table(messages).append_column("partition", [[0] * len(messages)])
        batch = DriverBatch(
            schema=self.schema,
            position=self.position,
            events=events,
            upto=messages[-1].offset,
            schemas=SCHEMAS,
        )
        self.position = self.commits.commit(batch).position
        assert position(self.path) == self.position

    def stored(self) -> list[str]:
        """Return the rows that delta-rs reads, as texts."""
        answer = QueryBuilder().register("t", DeltaTable(self.path)).execute("SELECT * FROM t")
        rows = pa.table(answer.read_all()).select(stored_columns(self.schema)).to_pylist()
        return sorted(repr(tuple(row.values())) for row in rows)

    def lookups(self, folder: Path) -> TableRows:
        """Return its rows at the newest version."""
        places = RowPlaces(self.path, folder, 1 << 20)
        committer = Committer(self.path)
        at_newest = places.at(self.schema, committer.open(), committer.deleted_rows)
        return TableRows(self.path, at_newest)


@pytest.fixture
def source() -> Source:
    """Three rows with large values."""
    made = Source(placeholder=MARK)
    for key in (1, 2, 3):
        made.insert(key, key, key)
    return made


@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), keyed=st.booleans())
def test_the_rows_are_those_of_a_lake_in_memory(seed: int, keyed: bool) -> None:
    random, schema = Random(seed), TOASTY if keyed else NO_KEY
    messages = (keyed_messages if keyed else keyless_messages)(random)[:250]
    model = LocalLake(schema=schema, decoder=TableDecoder(SCHEMAS, schema, placeholder=MARK))
    model.policy = POLICY
    places = sorted({0, *random.choices(range(len(messages)), k=6), len(messages)})
    with TemporaryDirectory() as folder:
        lake = DeltaLake(Path(folder), schema)
        for first, end in pairwise(places):
            lake.apply(messages[first:end])
            model.apply(messages[first:end])

            assert lake.stored() == sorted(map(repr, model.stored()))
            assert lake.position.rows_applied == model.position.rows_applied
            refused = {event.offset: event.reason for event in lake.quarantine.rows()}
            assert refused == model.refused


def test_values_of_a_changed_key_come_from_its_file(tmp_path: Path, source: Source) -> None:
    lake = DeltaLake(tmp_path, TOASTY)
    lake.apply(source.messages())
    begin = len(source.log)
    source.rekey(2, 7, {"big": 5})
    source.update(1, 9, {})
    lake.apply(source.messages()[begin:])

    rows = lake.lookups(tmp_path / "more")
    columns = range(len(TOASTY.columns))

    found = rows.rows([(1,), (2,), (3,), (7,)], columns)
    assert found == {(k,): tuple(row.values()) for k, row in source.rows.items()}
    assert rows.rows([], columns) == {}


@pytest.fixture
def wrong_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every index is off by one row."""
    find = FileIndex.find

    def shifted(self: FileIndex, asked: Any, deleted: Any) -> Any:  # noqa: ANN401
        found, rows = find(self, asked, deleted)
        return found, (rows + 1) % self.rows.size

    monkeypatch.setattr(FileIndex, "find", shifted)


@pytest.mark.usefixtures("wrong_rows")
def test_no_value_is_taken_from_the_row_of_another_key(tmp_path: Path, source: Source) -> None:
    lake = DeltaLake(tmp_path, TOASTY)
    lake.apply(source.messages())
    rows = lake.lookups(tmp_path / "more")

    with pytest.raises(IndexRefusedError, match="is wrong"):
        rows.rows([(1,)], [2])


def test_more_values_than_are_worth_reading_here_are_left_to_spark(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = DeltaLake(tmp_path, TOASTY)
    lake.apply(source.messages())
    begin = len(source.log)
    source.update(1, 9, {})
    monkeypatch.setattr(table_rows, "MOST_BYTES", 10)

    before = lake.position
    with pytest.raises(NotLocalError, match="among too many others"):
        lake.apply(source.messages()[begin:])

    assert position(lake.path) == before


def test_copies_are_counted(tmp_path: Path) -> None:
    lake = DeltaLake(tmp_path, NO_KEY)
    held = {f"d{number}": number for number in (1, 2, 3, 4, 5, 7, 8, 9, 100)}
    schema = arrow_schema(lake.committer.open().metadata)
    rows = [
        {"x": 1, "y": "", "_cdc_offset": 0, ROW_HASH: digest, COPY: copy + 1}
        for digest, count in held.items()
        for copy in range(count)
    ]
    Random(1).shuffle(rows)
    lake.committer.commit(pa.Table.from_pylist(rows, schema=schema), {}, at(0))
    found = lake.lookups(tmp_path / "more")

    assert found.copies([*held, "none"]) == {**held, "none": 0}
    assert found.copies([]) == {}
