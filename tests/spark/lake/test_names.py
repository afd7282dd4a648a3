"""A table with arbitrary column names is decoded, merged and read with the result of the fold.

The rows come from the model (tests/events/source.py). Each of its columns gets an odd name, and
some columns are repeated under the remaining names, spelled as the connector spells them in Avro.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from cdc.apply.difference.likeness import likeness
from cdc.apply.difference.row_difference import unlike
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.event_applier import Stretch
from cdc.apply.table.table_content import TableContent
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Job
from cdc.events import avro
from cdc.events.fold import fold
from cdc.events.names import OF_ENGINES, avro_name, column_refusals
from cdc.events.schema import Column, TableSchema, table_schema_from_avro
from cdc.events.values.lake_types import SOURCE_NAME
from cdc.events.values.sql_text import fusion_name, spark_name
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table import store
from cdc.lake.table.merge_plan import DELETED, OFFSET, merge_plan
from cdc.lake.table.positions import Position
from cdc.lake.upkeep.maintenance import optimize, purge
from cdc.land.log_rows import LogRows
from cdc.tables import TableMode
from tests.events.recorded import LOG_COLUMNS, Message, recording, unchanged_by
from tests.events.source import SCHEMA_ID, TABLE, Source, act
from tests.local_spark import frame_of
from tests.spark.apply.test_apply_is_fold import PLACEHOLDER, Table
from tests.unit.events.test_names import KEPT

pytestmark = pytest.mark.spark

MODEL = ("id", "n", "big", "bigb", "bigj", "biga", "bigia", "bigh")
INSIDE = [
    # Internal names in our own frames, or in those of Spark or Delta.
    *("_op", "_no_row", "_problem", "_moved", "_value_0", "c0", "x", "e", "p", "waits", "half"),
    *("change", "other", "new", "old", "found", "place", "value_2", "landing", "headers"),
    *("filePath", "rowIndexCol", "_condition_", "_source_row_index", "_target_row_index_"),
    *("__delta_internal_row_index", "_input_file_name_", "__is_cdc", "file_path", "_c0", "_col0"),
    *("end", "null", "select", "*", "[a]", "?", "v`w", "t\\u", "%z", "#", "Straße"),
    *("\u0131", "\u0130"),
]


TAKEN_ONCE = ("at", "gone", "source", "value_2", "filepath", "rowIndexCol", "half", "${env:HOME}")


def compatible(pool: Sequence[str]) -> list[str]:
    """Return the names that can be columns of one table; of two that clash, the first."""
    names: list[str] = []
    for name in pool:
        if name not in names and not list(column_refusals(TABLE, [*names, name])):
            names.append(name)
    return names


def random_names(seed: int, number: int) -> list[str]:
    """Return names from several alphabets; the first are internal names of ours or of Delta."""
    random = Random(seed)
    pool = [*KEPT, *INSIDE]
    alphabet = [chr(code) for code in (*range(1, 0x250), *range(0x400, 0x460), 0x4E2D, 0x1F600)]
    pool += ["".join(random.choices(alphabet, k=random.randint(1, 12))) for _ in range(number)]
    return compatible([*random.sample(TAKEN_ONCE, len(TAKEN_ONCE)), *random.sample(pool, number)])


def written(called: Mapping[str, str], more: Mapping[str, str]) -> str:
    """Return the recorded schema with the model's columns renamed, and copies of some of them."""
    schema = json.loads(recording("tables").schemas[SCHEMA_ID])
    row = next(f for f in schema["fields"] if f["name"] == "before")["type"][1]
    by_name = {field["name"]: field for field in row["fields"]}
    row["fields"] = [
        *(_renamed(by_name[name], called[name]) for name in MODEL),
        *(_renamed(by_name[of], name) for name, of in more.items()),
    ]
    return json.dumps(schema)


def _renamed(field: Mapping[str, Any], name: str) -> dict[str, Any]:
    text = json.dumps(field["type"]).replace(
        json.dumps({SOURCE_NAME: field["name"]})[1:-1], json.dumps({SOURCE_NAME: name})[1:-1]
    )
    return {**field, "name": avro_name(name), "type": json.loads(text)}


def spelled(row: Mapping[str, Any] | None, spelling: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the row with its columns renamed; ``spelling`` maps each new name to the old one."""
    return None if row is None else {name: row[of] for name, of in spelling.items()}


class Odd:
    """The model's log for a table with odd column names."""

    def __init__(self, seed: int, number: int, actions: int) -> None:
        random = Random(seed)
        chosen = random_names(seed, number)
        called = dict(zip(MODEL, chosen, strict=False))
        self.spelling = {name: of for of, name in called.items()}
        more = {name: random.choice(("n", "n", "big")) for name in chosen[len(MODEL) :]}
        self.spelling |= more
        self.key = called["id"]
        self.text = written(called, more)
        self.source = Source(placeholder=PLACEHOLDER)
        for _ in range(actions):
            act(self.source, random, range(8))
        self.schema = table_schema_from_avro(
            self.text, table=TABLE, key=(self.key,), mode=TableMode.KEYED
        )

    def messages(self) -> list[Message]:
        in_avro = {avro_name(name): of for name, of in self.spelling.items()}
        values = {
            offset: {side: spelled(value[side], in_avro) for side in ("before", "after")}
            for offset, value in self.source.log
        }
        model = dict(self.source.log)
        return [
            replace(
                message,
                value=avro.encode(
                    self.text, SCHEMA_ID, {**model[message.offset], **values[message.offset]}
                ),
            )
            for message in self.source.messages()
        ]

    def expected(self) -> dict[Any, dict[str, Any]]:
        rows = fold(self.source.events(), ("id",), unchanged_by(PLACEHOLDER))
        return {key[0]: spelled(row, self.spelling) or {} for key, row in rows.items()}


@pytest.mark.parametrize(
    ("seed", "number"),
    [(1, 24), *(pytest.param(n, 90, marks=pytest.mark.deep) for n in range(2, 6))],
)
def test_every_accepted_column_name_is_kept(
    spark: SparkSession, tmp_path: Path, seed: int, number: int
) -> None:
    odd = Odd(seed, number, 60)
    assert len(odd.schema.names) == len(odd.spelling) > 20
    assert odd.source.moved
    table = Table(spark, tmp_path / "t", odd.schema, {SCHEMA_ID: odd.text})
    messages = odd.messages()
    middle = next(n for n in range(30, 60) if _ends(odd, n))
    for part in (messages[:middle], messages[middle:]):
        table.apply(part)
    position = Position(epoch=1, offset=messages[-1].offset).metadata()
    purge(spark, table.path, position)
    optimize(spark, table.path, position)

    expected = odd.expected()
    assert {row[odd.key]: row for row in table.values()} == expected
    assert {row[odd.key]: row for row in by_delta_rs(table.path, odd.schema.names)} == expected
    held = store.read(spark, table.path)
    read = held.select(*map(spark_name, odd.schema.names))
    assert likeness(read, held, odd.schema).equal
    assert unlike(read, held, odd.schema, 1).isEmpty()


def test_a_name_means_the_same_in_every_thread(spark: SparkSession, tmp_path: Path) -> None:
    """The job's threads have no active session, so Spark's defaults apply there."""
    odd = Odd(1, 24, 60)
    assert "${env:HOME}" in odd.schema.names
    messages = odd.messages()
    rows = frame_of(spark, [m.row() for m in messages], LOG_COLUMNS)
    table = applied(spark, tmp_path, odd.schema)
    middle = next(n for n in range(30, 60) if _ends(odd, n))
    ends = [messages[number - 1].offset for number in (middle, len(messages))]
    topic, schemas = messages[0].topic, {SCHEMA_ID: odd.text}
    with ThreadPoolExecutor(1) as pool:
        for upto in ends:
            some = rows.where(f"offset <= {upto}")
            stretch = Stretch(rows=LogRows.of(some), topic=topic, upto=upto, schemas=schemas)
            pool.submit(table.apply, stretch).result()

    assert table.reason == ""
    found = {row[odd.key]: row for row in by_delta_rs(table.path, odd.schema.names)}
    assert found == odd.expected()


def applied(spark: SparkSession, root: Path, schema: TableSchema) -> AppliedTable:
    session, path, at = spark.newSession(), str(root / "t"), Position(epoch=1, offset=-1)
    quarantine = Quarantine(str(root / "quarantine"))
    tables = TableFactory(
        ApplyContext(quarantine=quarantine, placeholder=PLACEHOLDER, policy=Job())
    )
    return tables.created(session, path, TableContent(schema=schema, position=at))


def _ends(odd: Odd, number: int) -> bool:
    """Return whether a batch may end after this many events.

    It may not end between the two events of a changed key.
    """
    return bool(odd.source.log[number - 1][1]["op"] != "d")


def by_delta_rs(path: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    listed = ", ".join(map(fusion_name, columns))
    found = QueryBuilder().register("t", DeltaTable(path)).execute(f"SELECT {listed} FROM t")
    rows: list[dict[str, Any]] = pa.table(found.read_all()).to_pylist()
    return rows


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(OF_ENGINES))
def test_a_refused_name_does_not_work_in_the_engines(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """A name that a new version of the engines allows need not be refused any more."""
    schema = TableSchema(
        table=TABLE, columns=(Column("id", "int"), Column(name, "string")), key=("id",)
    )
    path, at = str(tmp_path / "t"), Position(epoch=1, offset=1)
    store.create(spark, path, schema, at)
    rows = spark.sql(
        f"SELECT n AS id, 'old' AS {spark_name(name)}, 1L AS {OFFSET}, false AS {DELETED} "
        f"FROM (SELECT explode(array(1, 2)) AS n)"
    )
    store.append(path, rows.drop(DELETED), at)

    try:
        newer = rows.withColumn(OFFSET, F.lit(2))
        store.merge(spark, path, newer.where("id = 1"), merge_plan(schema, keep=False), at)
        key = replace(schema, key=(name,))
        gone = newer.withColumn(DELETED, F.expr("true")).where("id = 2")
        store.merge(spark, path, gone, merge_plan(key, keep=False), at)
        store.set_everywhere(spark, path, {name: "'new'"})
    except (PySparkException, Py4JJavaError):
        return
    assert store.read(spark, path).where(f"{spark_name(name)} = 'new'").count() != 2
