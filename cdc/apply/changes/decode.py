"""Decodes rows of the log to typed changes: one ``from_avro`` per writer schema, in one pass.

Nothing is dropped silently: a message that is not a change event of its table, or has a value that
the lake cannot hold exactly, comes out with a reason. Spark's decoder ignores surplus bytes, so the
decoded event is checked against the table.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.avro.functions import from_avro

from cdc.apply.changes import columns
from cdc.apply.changes.columns import Writer, any_of
from cdc.apply.changes.reasons import NO_FRAME, NOT_AN_EVENT, UNKNOWN_SCHEMA, WRONG_TABLE
from cdc.events.envelope import OLD_KEY
from cdc.events.schema import TableSchema, envelope_reader
from cdc.events.transactions import is_marker_schema
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.lake.table.merge_plan import DELETED, KEEP, OFFSET, OP, REASON
from cdc.tables import TableMode

WriterSchemas = Mapping[int, str]
"""Writer schemas by id, as the registry returns them; unknown ids are left out."""

_BODY: Final = "substring(value, 6)"  # behind the magic byte and the schema id
_KEY_BODY: Final = "substring(key, 6)"
_LENIENT: Final = {"mode": "PERMISSIVE"}
_KNOWN_OP: Final = "coalesce({op} IN ('c', 'r', 'u', 'd', 't'), false)"
_TXID: Final = "try_cast(substring_index({id}, ':', 1) AS bigint)"
_TORN: Final = f"({{id}} IS NOT NULL AND {_TXID} IS NULL)"  # its transaction id is unreadable
_NO_PLACE: Final = (
    "CAST(NULL AS struct<source: struct<schema: string, table: string, lsn: bigint>, op: string, "
    "transaction: struct<id: string>>)"
)
_NO_MARKER: Final = (
    "CAST(NULL AS struct<status: string, id: string, event_count: bigint, data_collections: "
    "array<struct<data_collection: string, event_count: bigint>>, ts_ms: bigint>)"
)


def decode_envelope(rows: DataFrame, schemas: WriterSchemas, *also: str) -> DataFrame:
    """Return columns topic, offset, op, txid, lsn, source_schema, source_table of each event.

    ``op`` is null for a tombstone and for a message that is not an event, ``txid`` for a snapshot's
    read. The table's own columns are not decoded; ``also`` names columns of the log to keep.
    """
    places = [
        (number, from_avro(F.expr(_BODY), text, {**_LENIENT, "avroSchema": reader}))
        for number, text in schemas.items()
        if (reader := envelope_reader(text)) is not None
    ]
    place = _by_schema("value_schema_id", places, otherwise=_NO_PLACE)
    torn = _TORN.format(id="place.transaction.id")
    return rows.select("topic", "offset", *also, place.alias("place")).selectExpr(
        *also,
        "topic",
        "offset",
        f"IF({_KNOWN_OP.format(op='place.op')} AND NOT {torn}, place.op, NULL) AS op",
        f"{_TXID.format(id='place.transaction.id')} AS txid",
        "place.source.lsn AS lsn",
        "place.source.schema AS source_schema",
        "place.source.table AS source_table",
    )


def decode_markers(rows: DataFrame, schemas: WriterSchemas, *also: str) -> DataFrame:
    """Return transaction markers and their offsets, in the columns ``transactions.marker`` reads.

    ``status`` is null for a record that is not a marker. ``also`` names columns of the log to keep.
    """
    markers = [
        (number, from_avro(F.expr(_BODY), text, _LENIENT))
        for number, text in schemas.items()
        if is_marker_schema(text)
    ]
    marker = _by_schema("value_schema_id", markers, otherwise=_NO_MARKER)
    return rows.select("offset", *also, marker.alias("marker")).selectExpr(
        *also,
        "offset",
        "IF(marker.status IN ('BEGIN', 'END'), marker.status, NULL) AS status",
        "marker.id",
        "marker.event_count",
        "marker.data_collections",
        "marker.ts_ms",
    )


def decode_table(
    rows: DataFrame,
    schemas: WriterSchemas,
    target: TableSchema,
    *,
    placeholder: str,
    key_schemas: WriterSchemas | None = None,
) -> DataFrame:
    """Return the events of one table as typed changes, without tombstones.

    The columns are those of the table, from the row before of a delete (only the key, except in
    MULTISET mode) and from the row after of other events; ``_cdc_offset``; ``_cdc_op``;
    ``_cdc_deleted``; ``_cdc_keep``, the numbers of the columns that hold ``placeholder`` in one of
    its forms, null if there are none; ``_cdc_reason``, null unless the event is refused. In
    MULTISET mode an update becomes two changes with one offset, a delete and a create.
    """
    events = columns.writers(schemas)
    keys = columns.key_writers(key_schemas or {}) if target.mode is TableMode.KEYED else []
    plans = columns.columns(target, events, keys, placeholder)
    placed = _placed(_events(rows, schemas, events, target.mode), schemas, events, target)
    keyed = _with_keys(placed, key_schemas or {}, keys)
    return keyed.selectExpr("*", *(f"{plan.sql} AS {plan.made}" for plan in plans)).selectExpr(
        *(f"{plan.made} AS {spark_name(plan.name)}" for plan in plans),
        f"offset AS {OFFSET}",
        f"_op AS {OP}",
        f"coalesce(_op = 'd', false) AS {DELETED}",
        f"{columns.keep(plans)} AS {KEEP}",
        f"{columns.reason(plans, target)} AS {REASON}",
    )


def is_moved(header: str) -> Column:
    """Return the condition that a row of the log is the half of a key change with this header."""
    return F.expr(f"coalesce(exists(headers, h -> h.key = {spark_string(header)}), false)")


def _events(
    rows: DataFrame, schemas: WriterSchemas, events: Sequence[Writer], mode: TableMode
) -> DataFrame:
    """Add one struct per writer, null in messages of other writers, ``_moved`` and ``_op``."""
    written = [
        _when(
            "value_schema_id", w.schema_id, from_avro(F.expr(_BODY), schemas[w.schema_id], _LENIENT)
        )
        for w in events
    ]
    decoded = rows.where("value IS NOT NULL").select(
        "offset",
        "key",
        "key_schema_id",
        "value_schema_id",
        is_moved(OLD_KEY).alias("_moved"),
        *(column.alias(w.record) for w, column in zip(events, written, strict=True)),
    )
    op = any_of([f"{w.record}.op" for w in events], "string")
    if mode is TableMode.MULTISET:
        op = f"explode(IF({op} = 'u', array('d', 'c'), array({op})))"
    return decoded.selectExpr("*", f"{op} AS _op")


def _placed(
    decoded: DataFrame, schemas: WriterSchemas, events: Sequence[Writer], target: TableSchema
) -> DataFrame:
    """Add ``_problem``, the reason why a message is no event of this table, and ``_no_row``."""
    ids = ", ".join(str(number) for number in schemas) or "NULL"
    schema = any_of([f"{w.record}.source.schema" for w in events], "string")
    table = any_of([f"{w.record}.source.table" for w in events], "string")
    own_schema, own_name = spark_string(target.table.schema), spark_string(target.table.name)
    here = f"{schema} <=> {own_schema} AND {table} <=> {own_name}"
    transaction = any_of([f"{w.record}.transaction.id" for w in events], "string")
    has_row = " OR ".join(
        f"IF(_op = 'd', {w.record}.before, {w.record}.after) IS NOT NULL" for w in events
    )
    return decoded.selectExpr(
        "*",
        f"CASE WHEN value_schema_id IS NULL THEN {spark_string(NO_FRAME)}"
        f" WHEN NOT coalesce(value_schema_id IN ({ids}), false) THEN {spark_string(UNKNOWN_SCHEMA)}"
        f" WHEN NOT {_KNOWN_OP.format(op='_op')} THEN {spark_string(NOT_AN_EVENT)}"
        f" WHEN {_TORN.format(id=transaction)} THEN {spark_string(NOT_AN_EVENT)}"
        f" WHEN NOT ({here}) THEN {spark_string(WRONG_TABLE)} END AS _problem",
        f"NOT ({has_row or 'false'}) AS _no_row",
    )


def _with_keys(placed: DataFrame, schemas: WriterSchemas, keys: Sequence[Writer]) -> DataFrame:
    """Add the decoded keys of deletes that have no row before."""
    wanted = F.expr("_op = 'd' AND _no_row")
    records = [
        F.when(
            wanted & (F.col("key_schema_id") == w.schema_id),
            from_avro(F.expr(_KEY_BODY), schemas[w.schema_id], _LENIENT),
        ).alias(w.record)
        for w in keys
    ]
    return placed.select("*", *records)


def _when(column: str, number: int, record: Column) -> Column:
    return F.when(F.col(column) == number, record)


def _by_schema(column: str, records: Sequence[tuple[int, Column]], *, otherwise: str) -> Column:
    """Return the record of the writer's schema; null if none of these schemas wrote it."""
    if not records:
        return F.expr(otherwise)
    chosen = _when(column, *records[0])
    for number, record in records[1:]:
        chosen = chosen.when(F.col(column) == number, record)
    return chosen
