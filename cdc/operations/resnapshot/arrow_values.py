"""Converts the texts of a reading to the lake's values in Arrow, whole columns at a time.

``values.py`` is the same in Spark: who changes one changes the other. Nothing is rounded, cut or
shifted; a text without an exact value becomes null, and the row gets the reason.
"""

import json
from binascii import Error, unhexlify
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc.apply.changes.from_avro import limit
from cdc.apply.changes.reasons import loss
from cdc.apply.local.arrow import arrow_type
from cdc.events.schema import Column, fits
from cdc.events.values.lake_types import PgType, can_be_text, lake_type
from cdc.operations.resnapshot.text_forms import DATE, INSTANT, TIMESTAMP, decimal_form

_HEX: Final = "\\x"


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """Holds rows in the lake table's columns; ``reasons`` is null where a row can be kept."""

    rows: pa.Table
    reasons: pa.Array


def arrow_rows(texts: pa.Table, columns: Sequence[Column], pg: Sequence[PgType]) -> ArrowRows:
    """Return the table's columns by name, from string columns in the same order.

    ``pg`` are the types with which the rows were read.
    """
    reasons = pa.nulls(texts.num_rows, pa.string())
    made = {}
    for number, (column, kind) in enumerate(zip(columns, pg, strict=True)):
        text = texts.column(number).combine_chunks()
        made[column.name], lost = _column(text, column, kind)
        if lost is not None:
            why = loss(column.name, column.type, limit(column.type))
            reasons = pc.coalesce(reasons, pc.if_else(lost, why, pa.scalar(None, pa.string())))
    return ArrowRows(pa.table(made), reasons)


def _column(text: pa.Array, column: Column, pg: PgType) -> tuple[pa.Array, pa.Array | None]:
    """Return the values, and where one is lost; None where every text is a value."""
    lake, wanted = lake_type(pg), arrow_type(column.type)
    if (column.as_text and can_be_text(pg)) or (
        pg.element is None and not lake.refused and lake.spark == column.type == "string"
    ):
        return text, None
    if lake.refused or not fits(lake.spark, column.type):
        return pa.nulls(len(text), wanted), pc.is_valid(text)
    if pg.element is not None:
        return _lists(text, lake_type(pg.element).spark)
    made = _scalars(text, lake.spark).cast(wanted)  # at most to a wider type
    return made, pc.and_(pc.is_valid(text), pc.is_null(made))


def _lists(text: pa.Array, element: str) -> tuple[pa.Array, pa.Array]:
    """Return arrays of the type ``element``, and which of them are lost, or an element of them."""
    read = pa.array(map(_elements, text.to_pylist()), pa.list_(pa.string()))
    values = _scalars(read.values, element)
    lists = pa.ListArray.from_arrays(read.offsets, values, mask=pc.is_null(read))
    lost = np.array(pc.and_(pc.is_valid(text), pc.is_null(read)))
    fewer = pc.and_(pc.is_valid(read.values), pc.is_null(values))
    lost[pc.list_parent_indices(read).filter(fewer).to_numpy()] = True
    return lists, pa.array(lost)


def _elements(text: str | None) -> list[str | None] | None:
    """Return the elements in JSON; any other text is an array that the lake has no form for."""
    if text is None or not text.startswith("["):
        return None
    elements: list[str | None] = json.loads(text)
    return elements


def _scalars(text: pa.Array, kind: str) -> pa.Array:
    """Return the values of the lake type ``kind``; null where a text has no exact value of it."""
    if kind == "string":
        return text
    if kind == "binary":
        return _binary(text)
    if kind == "boolean":
        one = pc.is_in(text, pa.array(["t", "f"]))
        return pc.if_else(one, pc.equal(text, "t"), pa.scalar(None, pa.bool_()))
    form = decimal_form(kind) if kind.startswith("decimal") else _FORMS.get(kind)
    if form is not None:
        like = pc.match_substring_regex(text, form)
        text = pc.if_else(like, text, pa.scalar(None, pa.string()))
    return _parsed(text, lambda texts: texts.cast(arrow_type(kind)))


_FORMS: Final = {"date": DATE, "timestamp_ntz": TIMESTAMP, "timestamp": INSTANT}


def _parsed(text: pa.Array, parse: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Parse all texts at once, or, where one of them is no value, one by one."""
    try:
        return parse(text)
    except pa.ArrowInvalid:
        if len(text) > 1:
            half = len(text) // 2
            return pa.concat_arrays([_parsed(text[:half], parse), _parsed(text[half:], parse)])
        return pa.nulls(1, parse(text[:0]).type)


def _binary(text: pa.Array) -> pa.Array:
    return _parsed(text, _unhexed)


def _unhexed(text: pa.Array) -> pa.Array:
    """Decode all hexadecimal texts in one go; raises ArrowInvalid if one is none."""
    if pc.any(pc.invert(pc.starts_with(text, _HEX))).as_py():
        raise pa.ArrowInvalid
    digits = pc.replace_substring_regex(text, r"^\\x", "").fill_null("")
    sizes = pc.binary_length(digits).to_numpy()
    if np.any(sizes % 2):
        raise pa.ArrowInvalid
    try:
        data = unhexlify("".join(digits.to_pylist()))
    except (Error, ValueError):
        raise pa.ArrowInvalid from None
    ends = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes // 2, out=ends[1:])
    valid = pc.is_valid(text).to_numpy(zero_copy_only=False)
    bits = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    buffers = [bits, pa.py_buffer(ends.tobytes()), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(text), buffers)
