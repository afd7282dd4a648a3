"""The SQL text of every conversion is the one that was recorded: its Python may not change it.

``conversion_texts.json`` maps each case to a digest of its texts. A text that is meant to change is
recorded anew: ``RECORD_TEXTS=1 pytest tests/unit/apply/test_conversion_texts.py``.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cdc.apply.changes import columns
from cdc.apply.changes.from_avro import value
from cdc.events.schema import Column, RowField, row_fields, table_schema_from_avro, text_column
from cdc.events.values.lake_types import PgType, lake_type
from cdc.events.values.pg_types import TYPES
from cdc.tables import TableId, TableMode
from tests.events.recorded import recording, table_topic

DIGESTS = Path(__file__).resolve().parents[2] / "data" / "conversion_texts.json"
SOME = ("smallint", "int", "bigint", "double", "string", "decimal(38,10)", "array<bigint>")
FORMS: dict[str, Any] = {
    **{kind: kind for kind in ("boolean", "int", "long", "float", "double", "bytes", "string")},
    **{
        name: {"type": kind, "connect.name": f"io.debezium.{name}"}
        for name, kind in (
            ("time.Date", "int"),
            ("time.MicroTime", "long"),
            ("time.Time", "int"),
            ("time.MicroTimestamp", "long"),
            ("time.Timestamp", "long"),
            ("time.ZonedTimestamp", "string"),
            ("data.Bits", "bytes"),
        )
    },
}


def recorded_fields() -> Iterator[tuple[str, RowField]]:
    for name, table in (("types", "every_type"), ("tables", "toasty"), ("tables", "orders")):
        written = recording(name).written(table_topic(table))
        for field in row_fields(written[max(written)]):
            yield f"{table}.{field.name}", field


def made_up_fields() -> Iterator[tuple[str, RowField]]:
    """Yield every form of the connector with every declared type, also those it would not send."""
    for form, avro in FORMS.items():
        for array in (False, True):
            kind = {"type": "array", "items": ["null", avro]} if array else avro
            for name in TYPES:
                pg = PgType(f"_{name}" if array else name, 10, 2)
                column = Column("c", lake_type(pg).spark)
                yield (
                    f"{form} as {pg.name}",
                    RowField(name="c", type=["null", kind], pg=pg, column=column),
                )


def value_texts(field: RowField, column: Column) -> list[Any]:
    made = value(field, "r.`c`", "_made", column, "mark's")
    return [made.sql, made.failed, made.unchanged, made.limit]


def cases() -> Iterator[tuple[str, Any]]:
    for name, field in [*recorded_fields(), *made_up_fields()]:
        kinds = {field.column.type: field.column}
        kinds |= {kind: replace(field.column, type=kind) for kind in SOME}
        texts = {kind: value_texts(field, column) for kind, column in kinds.items()}
        yield name, [texts, value_texts(field, text_column(field.column, field.pg))]
    for mode in TableMode:
        yield f"columns of a {mode.value} table", columns_of(mode)


def columns_of(mode: TableMode) -> list[Any]:
    recorded = recording("tables")
    written = recorded.written(table_topic("toasty"))
    key = ("id",) if mode is TableMode.KEYED else ()
    table = TableId("public", "toasty")
    schema = table_schema_from_avro(written[max(written)], table=table, key=key, mode=mode)
    keys = columns.key_writers(recorded.schemas)
    plans = columns.columns(schema, columns.writers(written), keys, "mark")
    texts = [[p.name, p.type, p.made, p.sql, p.failed, p.unchanged, p.limit] for p in plans]
    return [texts, columns.keep(plans), columns.reason(plans, schema)]


def digest(texts: Any) -> str:  # noqa: ANN401 - JSON
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:20]


def test_every_text_is_the_recorded_one() -> None:
    now = {name: digest(texts) for name, texts in cases()}
    if "RECORD_TEXTS" in os.environ:
        DIGESTS.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n")
    before = json.loads(DIGESTS.read_text())

    assert {name for name in now if now[name] != before.get(name)} == set()
    assert now.keys() == before.keys()
