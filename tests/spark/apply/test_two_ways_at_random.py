"""Random rows and broken bytes, decoded by Spark and without it: the same values and refusals."""

from collections import Counter
from random import Random

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from cdc.apply.changes import reasons
from cdc.events import avro
from cdc.events.schema import row_fields, table_schema_from_avro
from cdc.lake.table.merge_plan import REASON
from cdc.tables import TableId, TableMode
from tests.events import two_ways
from tests.events.broken import broken
from tests.events.damaged import MARK
from tests.events.recorded import Message, recording, table_topic
from tests.events.source import LARGE, SCHEMA_ID, TABLE, TOPIC, envelope
from tests.spark.apply.test_two_ways import KEYS, Given, by_spark, differences, without_spark

pytestmark = pytest.mark.spark

QUICK, DEEP = 300, 10_000
MODES = {True: TableMode.KEYED, False: TableMode.MULTISET}
DEEP_SEEDS = [pytest.param(seed, marks=pytest.mark.deep) for seed in range(2, 22)]


@pytest.fixture(scope="module")
def count(request: pytest.FixtureRequest) -> int:
    """The number of random rows of each table."""
    return DEEP if request.config.getoption("--deep") else QUICK


@pytest.mark.parametrize("table", KEYS)
def test_random_rows_of_every_table(spark: SparkSession, table: str, count: int) -> None:
    recorded = recording("types" if table == "every_type" else "tables")
    written, key = recorded.written(table_topic(table)), KEYS[table]
    number, name = max(written), TableId("public", table)
    text = two_ways.more_forms(written[number]) if table == "every_type" else written[number]
    mode = MODES[bool(key)]
    schema = table_schema_from_avro(text, table=name, key=key, mode=mode)
    keys = [field.name for field in row_fields(text) if field.column.name in key]
    rows = two_ways.at_random(text, MARK, Random(table), count, keys)
    op = "u" if key else "c"
    messages = two_ways.messages(text, rows, op, table=name, writer=number)
    given = Given(messages=messages, schemas={number: text}, schema=schema, placeholder=MARK)

    spark_way = by_spark(spark, given)

    assert differences(spark_way, without_spark(given), schema) == []
    kept = spark_way.filter(pc.is_null(spark_way[REASON]))
    assert len(kept) > count / 10
    assert all(kept[name].null_count < len(kept) for name in schema.names)


@pytest.mark.parametrize("seed", [1, *DEEP_SEEDS])
@pytest.mark.parametrize("table", ["customers", "toasty", "every_type", "no_key", "full_identity"])
def test_broken_bytes(spark: SparkSession, table: str, seed: int) -> None:
    recorded = recording("types" if table == "every_type" else "tables")
    topic, key = table_topic(table), KEYS[table]
    written = recorded.written(topic)
    schema = table_schema_from_avro(
        written[max(written)], table=TableId("public", table), key=key, mode=MODES[bool(key)]
    )
    random = Random(f"{table} {seed}")
    given = Given(
        messages=list(broken(recorded.of(topic), random, 3000)),
        schemas=written,
        schema=schema,
        placeholder=recorded.placeholder,
        keys=recorded.schemas,
    )

    spark_way = by_spark(spark, given)

    assert differences(spark_way, without_spark(given), schema) == []
    found = Counter(spark_way[REASON].to_pylist())
    assert found[None] > 100
    assert found[reasons.NOT_AN_EVENT] > 100
    assert len(found) > 4


def test_a_length_beyond_the_message_is_refused(spark: SparkSession) -> None:
    """Spark's decoder makes room for what a length says before it looks for the bytes."""
    text = recording("tables").schemas[SCHEMA_ID]
    row = {"id": 1, "n": 1, **dict.fromkeys(LARGE), "big": "~s", "bigb": b"~b", "bigia": [77777]}
    good = avro.encode(text, SCHEMA_ID, envelope(TABLE, "c", before=None, after=row))
    length = b"\xe0\xff\xff\xff\x0f"  # 2**31 - 16, as a number of Avro
    pairs = [(b"\x04~s", length + b"~s"), (b"\x04~b", length + b"~b")]
    pairs.append((b"\x02\x02\xa2\xbf\x09", length + b"\x02\xa2\xbf\x09"))
    values = [good, *(good.replace(old, new) for old, new in pairs), good]
    assert len(set(values)) == 4
    messages = [Message(topic=TOPIC, offset=n, key=None, value=v) for n, v in enumerate(values)]
    schema = table_schema_from_avro(text, table=TABLE, key=("id",), mode=TableMode.KEYED)
    given = Given(messages=messages, schemas={SCHEMA_ID: text}, schema=schema, placeholder=MARK)

    spark_way = by_spark(spark, given)

    assert differences(spark_way, without_spark(given), schema) == []
    assert spark_way[REASON].to_pylist() == [None, *[reasons.NOT_AN_EVENT] * 3, None]
