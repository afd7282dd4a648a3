"""Render each value as a text twice: by Postgres for the source, by Arrow for the lake.

Neither half knows how the pipeline converts values, so a defect there cannot hide here. Two values
are equal exactly when their texts are: floats become their bits, times their microseconds, bytes
hex, everything else what Postgres prints.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc.config.masks import HASH, TRUNCATE
from cdc.errors import CdcError, ErrorKind
from cdc.source.rows.masking import masked_sql

TEXT: Final = pa.large_string()

EPOCH_DAY: Final = "date '1970-01-01'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """Says how one column becomes text."""

    sql: str  # an expression over the column ``{c}`` in Postgres
    lake: Callable[[pa.Array], pa.Array]  # the same for an Arrow array of the lake
    source: Callable[[pa.Array], pa.Array] | None = None  # a further step, if SQL is not enough
    note: str = ""  # what the lake, by declaration, does not keep of the value


def rendering(pg_type: str, lake_type: pa.DataType) -> Rendering:
    """Return the rendering for a type of the lake; the Postgres type decides only for strings.

    An array's Postgres type begins with ``_``. Raises INTERNAL for a type that wal2lake never uses.
    """
    if pa.types.is_list(lake_type) or pa.types.is_large_list(lake_type):
        return _list(rendering(pg_type.removeprefix("_"), lake_type.value_type))
    if _is_text(lake_type):
        return TEXTS.get(pg_type, PLAIN)
    for belongs, by_lake_type in BY_LAKE_TYPE:
        if belongs(lake_type):
            return by_lake_type
    raise CdcError(
        ErrorKind.INTERNAL,
        f"a column of type {lake_type} in the lake cannot be compared with {pg_type}",
        remedy="report this as a bug: wal2lake does not write such columns",
    )


def masked_by(plain: Rendering, mask: str) -> Rendering:
    """Return the rendering of a column of which ``source.columns`` leaves only this.

    Postgres computes it; the lake has it already.
    """
    kind = mask.partition(" ")[0]
    note = {HASH: "compared as its hash", TRUNCATE: "compared as far as it is kept"}.get(kind)
    return replace(plain, sql=masked_sql(plain.sql, mask), note=note or plain.note)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


def _text(values: pa.Array) -> pa.Array:
    return values.cast(TEXT)


def _float_bits(values: pa.Array) -> pa.Array:
    """Return the bits as a signed integer; every NaN has the same text, as in Postgres."""
    integer = pa.int32() if values.type == pa.float32() else pa.int64()
    bits = values.view(integer).cast(TEXT)
    return pc.if_else(pc.is_nan(values), pa.scalar("NaN", TEXT), bits)


def _float_sql(cast: str, bits: int, integer: str) -> str:
    as_bits = f"('x' || encode({cast}send({{c}}::{cast}), 'hex'))::bit({bits})::{integer}::text"
    return f"CASE WHEN {{c}} = 'NaN' THEN 'NaN' ELSE {as_bits} END"


def _decimal(values: pa.Array) -> pa.Array:
    """Return all digits of the scale, without an exponent, from the unscaled integer."""
    scale = values.type.scale
    wide = values.cast(pa.decimal128(38, scale))
    whole = pa.Array.from_buffers(
        pa.decimal128(38, 0), len(wide), wide.buffers(), offset=wide.offset
    ).cast(TEXT)
    if scale == 0:
        return whole
    negative = pc.starts_with(whole, "-")
    digits = pc.utf8_lpad(pc.utf8_ltrim(whole, "-"), scale + 1, "0")
    point = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(digits, 0, -scale),
        pc.utf8_slice_codeunits(digits, -scale),
        pa.scalar(".", TEXT),
    )
    return pc.if_else(
        negative,
        pc.binary_join_element_wise(pa.scalar("-", TEXT), point, pa.scalar("", TEXT)),
        point,
    )


def _days(values: pa.Array) -> pa.Array:
    return values.cast(pa.int32()).cast(TEXT)


def _micros(values: pa.Array) -> pa.Array:
    zone = values.type.tz
    return values.cast(pa.timestamp("us", zone)).cast(pa.int64()).cast(TEXT)


def _hex(values: pa.Array) -> pa.Array:
    texts = (None if value is None else value.hex() for value in values.to_pylist())
    return pa.array(texts, TEXT)


def _finite_or_text(sql: str) -> str:
    return f"CASE WHEN isfinite({{c}}) THEN {sql} ELSE {{c}}::text END"


BY_LAKE_TYPE: Final[list[tuple[Callable[[pa.DataType], bool], Rendering]]] = [
    (pa.types.is_boolean, Rendering(sql="{c}::text", lake=_text)),
    (pa.types.is_integer, Rendering(sql="{c}::text", lake=_text)),
    (pa.types.is_float32, Rendering(sql=_float_sql("float4", 32, "int"), lake=_float_bits)),
    (pa.types.is_float64, Rendering(sql=_float_sql("float8", 64, "bigint"), lake=_float_bits)),
    (pa.types.is_decimal, Rendering(sql="{c}::text", lake=_decimal)),
    (pa.types.is_date, Rendering(sql=_finite_or_text(f"({{c}} - {EPOCH_DAY})::text"), lake=_days)),
    (
        pa.types.is_timestamp,
        Rendering(
            sql=_finite_or_text("trunc(extract(epoch FROM {c}) * 1000000)::text"), lake=_micros
        ),
    ),
    (_is_binary, Rendering(sql="encode({c}, 'hex')", lake=_hex)),
]

# Uses the type's output function, because a cast to text would trim the spaces of a char(n).
PLAIN: Final = Rendering(sql="CASE WHEN num_nulls({c}) = 0 THEN format('%s', {c}) END", lake=_text)


def _canonical_json(values: pa.Array) -> pa.Array:
    texts = (
        None if value is None else json.dumps(json.loads(value), sort_keys=True)
        for value in values.to_pylist()
    )
    return pa.array(texts, TEXT)


TEXTS: Final[dict[str, Rendering]] = {
    "money": Rendering(
        sql="{c}::numeric::text",
        lake=_text,
        note="compared as a number: the lake does not keep the currency sign",
    ),
    # Neither side keeps the order of the keys.
    "hstore": Rendering(
        sql="{c}::json::text",
        lake=_canonical_json,
        source=_canonical_json,
        note="compared as JSON",
    ),
}


def _list(item: Rendering) -> Rendering:
    """Render a list as ``[2:ab,N,0:]``: the lengths keep different lists from looking alike."""
    one = item.sql.format(c="e")
    # Only constants of this file are joined here; the quoted column name is filled in later.
    marked = "CASE WHEN e IS NULL THEN 'N' ELSE length(r)::text || ':' || r END"
    elements = f"(SELECT e, i, {one} AS r FROM unnest({{c}}) WITH ORDINALITY AS u(e, i)) x"  # noqa: S608
    listed = (
        f"(SELECT '[' || coalesce(string_agg({marked}, ',' ORDER BY i), '') || ']' FROM {elements})"  # noqa: S608
    )
    # The lake's lists have one dimension and start at 1; other arrays must not look equal.
    odd = "array_ndims({c}) > 1 OR array_lower({c}, 1) <> 1"
    sql = (
        f"CASE WHEN {{c}} IS NULL THEN NULL WHEN {odd} THEN 'not a list: ' || {{c}}::text "
        f"ELSE {listed} END"
    )
    return Rendering(sql=sql, lake=lambda values: _joined(values, item), note=item.note)


def _joined(values: pa.Array, item: Rendering) -> pa.Array:
    texts = item.lake(values.flatten())
    lengths = pc.utf8_length(texts).cast(TEXT)
    marked = pc.binary_join_element_wise(lengths, texts, pa.scalar(":", TEXT))
    marked = pc.fill_null(marked, pa.scalar("N", TEXT))
    sizes = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(sizes)])
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, marked), pa.scalar(",", TEXT))
    bracketed = pc.binary_join_element_wise(
        pa.scalar("[", TEXT), joined, pa.scalar("]", TEXT), pa.scalar("", TEXT)
    )
    return pc.if_else(pc.is_null(values), pa.scalar(None, TEXT), bracketed)
