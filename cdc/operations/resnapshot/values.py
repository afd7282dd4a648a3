"""Converts the texts of a reading (``cdc/source/rows/spelling.py``) to the lake's values, in Spark.

``arrow_values.py`` is the same without Spark: who changes one changes the other. Each value is the
one that the stream would have brought. A value that the lake cannot hold exactly
gets the reason that an event would be refused with: nothing is rounded, cut or shifted.
"""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from cdc.apply.changes.columns import ColumnPlan
from cdc.apply.changes.from_avro import limit
from cdc.events.schema import Column, fits
from cdc.events.values.lake_types import PgType, can_be_text, canonical, lake_type
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.lake.table.merge_plan import REASON
from cdc.operations.resnapshot.text_forms import DATE, INSTANT, TIMESTAMP, decimal_form

_PAIRS: Final = "map<string,string>"


def typed(texts: DataFrame, columns: Sequence[Column], pg: Sequence[PgType]) -> DataFrame:
    """Return the table's columns by name, from the texts ``c0, c1, ..`` in the same order.

    ``pg`` are the types with which the rows were read. ``_cdc_reason`` says why the lake cannot
    hold a row; it is null where it can.
    """
    plans = [
        _plan(number, column, kind)
        for number, (column, kind) in enumerate(zip(columns, pg, strict=True))
    ]
    values = texts.selectExpr("*", *(f"{plan.sql} AS {plan.made}" for plan in plans))
    return values.selectExpr(
        *(f"{plan.made} AS {spark_name(plan.name)}" for plan in plans),
        f"{_reason(plans)} AS {REASON}",
    )


def key_texts(frame: DataFrame, key: Sequence[Column], pg: Sequence[PgType]) -> DataFrame:
    """Return the key's columns as texts that Postgres reads as the same key."""
    return frame.selectExpr(
        *(
            f"{_input(spark_name(column.name), column.type, kind)} AS {spark_name(column.name)}"
            for column, kind in zip(key, pg, strict=True)
        )
    )


def _plan(number: int, column: Column, pg: PgType) -> ColumnPlan:
    text, made = f"c{number}", f"_value_{number}"
    sql = _value(text, column, pg)
    return ColumnPlan(
        name=column.name,
        type=column.type,
        made=made,
        sql=sql,
        failed=None if sql == text else _failed(text, made, pg),
        unchanged=None,
        limit=limit(column.type),
    )


def _value(text: str, column: Column, pg: PgType) -> str:
    lake = lake_type(pg)
    if column.as_text and can_be_text(pg):
        return text
    if lake.refused or not fits(lake.spark, column.type):
        return f"CAST(NULL AS {column.type})"
    if pg.element is not None:
        one = _scalar("x", lake_type(pg.element).spark)
        return f"transform({_elements(text)}, x -> {one})"
    value = _scalar(text, lake.spark)
    return value if lake.spark == column.type else f"try_cast({value} AS {column.type})"


def _failed(text: str, made: str, pg: PgType) -> str:
    lost = f"({text} IS NOT NULL AND {made} IS NULL)"
    if pg.element is None:
        return lost
    nulls = "size(filter({}, x -> x IS NULL))"
    fewer = f"{nulls.format(made)} <> {nulls.format(_elements(text))}"
    return f"({lost} OR coalesce({fewer}, false))"


def _elements(text: str) -> str:
    """Return SQL for the elements of an array; NULL for text that is not JSON.

    Such a text is an array that the lake has no form for.
    """
    return f"IF(startswith({text}, '['), from_json({text}, 'array<string>'), NULL)"


def _scalar(text: str, kind: str) -> str:
    """Return SQL for the value; NULL where the text has no exact value of the type."""
    if kind == "string":
        return text
    if kind == "binary":
        return f"unhex(substring({text}, 3))"  # skips \x
    if kind.startswith("decimal"):
        return _if_like(text, decimal_form(kind), f"try_cast({text} AS {kind})")
    return _TEMPORAL[kind](text) if kind in _TEMPORAL else f"try_cast({text} AS {kind})"


def _date(text: str) -> str:
    """Return SQL for a date in the years 1 to 9999, else NULL.

    Postgres writes other years in another form; Spark alone would ignore a trailing BC.
    """
    return _if_like(text, DATE, f"try_cast({text} AS date)")


def _timestamp(text: str) -> str:
    return _if_like(text, TIMESTAMP, f"try_cast({text} AS timestamp_ntz)")


def _instant(text: str) -> str:
    in_utc = f"concat(substring_index({text}, '+', 1), 'Z')"
    return _if_like(text, INSTANT, f"try_cast({in_utc} AS timestamp)")


_TEMPORAL: Final = {"date": _date, "timestamp_ntz": _timestamp, "timestamp": _instant}


def _if_like(text: str, pattern: str, value: str) -> str:
    return f"IF({text} RLIKE {spark_string(pattern)}, {value}, NULL)"


def _reason(plans: Sequence[ColumnPlan]) -> str:
    cases = " ".join(
        f"WHEN {plan.failed} THEN {spark_string(plan.loss)}" for plan in plans if plan.failed
    )
    return f"CASE {cases} END" if cases else "CAST(NULL AS string)"


def _input(value: str, kind: str, pg: PgType) -> str:
    if pg.element is not None:
        inner = kind.removeprefix("array<").removesuffix(">")
        one = f"coalesce({_array_part(_input('x', inner, pg.element))}, 'NULL')"
        return f"concat('{{', array_join(transform({value}, x -> {one}), ','), '}}')"
    if canonical(pg.name) == "hstore":
        pair = f"concat({_array_part('x.key')}, '=>', coalesce({_array_part('x.value')}, 'NULL'))"
        entries = f"map_entries(from_json({value}, {spark_string(_PAIRS)}))"
        return f"array_join(transform({entries}, x -> {pair}), ',')"
    if kind == "binary":
        return f"concat({spark_string(chr(92) + 'x')}, hex({value}))"
    text = f"CAST({value} AS string)"
    return f"concat({text}, '+00')" if kind == "timestamp" else text


def _array_part(text: str) -> str:
    """Return SQL that quotes an element of an array or an hstore the way Postgres reads it."""
    escaped = text
    for char in ("\\", '"'):
        escaped = f"replace({escaped}, {spark_string(char)}, {spark_string(chr(92) + char)})"
    return f"concat('\"', {escaped}, '\"')"
