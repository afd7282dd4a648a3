"""A column of every type that the lake keeps, by table: its declaration and random values."""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.kinds import literals as to

SCHEMA = "kept"
SETUP = f"""
CREATE EXTENSION IF NOT EXISTS hstore; CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS ltree; CREATE EXTENSION IF NOT EXISTS cube;
CREATE EXTENSION IF NOT EXISTS seg; CREATE EXTENSION IF NOT EXISTS isn;
CREATE SCHEMA {SCHEMA};
CREATE TYPE {SCHEMA}.mood AS ENUM ('sad', 'so "so"', '', 'hap py', 'é');
CREATE TYPE {SCHEMA}.pair AS (n int, t text);
CREATE TYPE {SCHEMA}.span AS RANGE (subtype = float8, multirange_type_name = {SCHEMA}.spans);
CREATE DOMAIN {SCHEMA}.d_int AS int; CREATE DOMAIN {SCHEMA}.d_d_int AS {SCHEMA}.d_int;
CREATE DOMAIN {SCHEMA}.d_small AS int2; CREATE DOMAIN {SCHEMA}.d_bool AS bool;
CREATE DOMAIN {SCHEMA}.d_text AS text; CREATE DOMAIN {SCHEMA}.d_numeric AS numeric(10, 2);
CREATE DOMAIN {SCHEMA}.d_d_numeric AS {SCHEMA}.d_numeric;
CREATE DOMAIN {SCHEMA}.d_tens AS numeric(5, -1); CREATE DOMAIN {SCHEMA}.d_any AS numeric;
CREATE DOMAIN {SCHEMA}.d_float AS float4; CREATE DOMAIN {SCHEMA}.d_date AS date;
CREATE DOMAIN {SCHEMA}.d_timestamp AS timestamp; CREATE DOMAIN {SCHEMA}.d_instant AS timestamptz;
CREATE DOMAIN {SCHEMA}.d_time AS time; CREATE DOMAIN {SCHEMA}.d_interval AS interval;
CREATE DOMAIN {SCHEMA}.d_bit AS bit(5); CREATE DOMAIN {SCHEMA}.d_uuid AS uuid;
CREATE DOMAIN {SCHEMA}.d_jsonb AS jsonb; CREATE DOMAIN {SCHEMA}.d_hstore AS hstore;
CREATE DOMAIN {SCHEMA}.d_money AS money; CREATE DOMAIN {SCHEMA}.d_mood AS {SCHEMA}.mood;
CREATE DOMAIN {SCHEMA}.d_pair AS {SCHEMA}.pair; CREATE DOMAIN {SCHEMA}.d_lsn AS pg_lsn;
CREATE DOMAIN {SCHEMA}.d_range AS int4range; CREATE DOMAIN {SCHEMA}.d_spans AS int4multirange;
CREATE DOMAIN {SCHEMA}.d_inet AS inet; CREATE DOMAIN {SCHEMA}.d_blank AS char(3);
"""

Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Describes a column: its declaration, the texts of its values, and how to compare them.

    ``oracle`` is SQL over ``{c}`` that prints the value in Postgres; ``read`` prints the lake's
    Python value the same way.
    """

    declared: str
    texts: to.Texts
    oracle: str = "CASE WHEN num_nulls({c}) = 0 THEN format('%s', {c}) END"
    read: Read = str


def _spell(value: Any) -> str:  # noqa: ANN401 - a value of the lake
    """Print a value as Postgres does, in UTC."""
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime):
        stamp = value.isoformat(" ", "microseconds")
        zone = "+00" if value.tzinfo else ""
        return stamp[:26].rstrip("0").rstrip(".") + zone
    return value.isoformat() if isinstance(value, date) else _number(value)


def _number(value: Any) -> str:  # noqa: ANN401
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def kind(declared: str, texts: to.Texts) -> Kind:
    """Return the kind of a declared type."""
    if declared.endswith("[]"):
        return _array(declared.removesuffix("[]"), texts)
    special = {"hstore": _hstore, "d_hstore": _hstore, "money": _money, "float8": _double}
    if (make := special.get(declared.rpartition(".")[2])) is not None:
        return make(declared)
    return Kind(declared=declared, texts=texts, read=_spell)


def _bits(declared: str, width: int) -> Kind:
    """Return the kind of a float, which is compared by its bits."""
    code = {32: ">f", 64: ">d"}[width]
    return Kind(
        declared=declared,
        texts=to.floats(width),
        oracle=f"encode(float{width // 8}send({{c}}), 'hex')",
        read=lambda value: struct.pack(code, value).hex(),
    )


_ELEMENTS = (
    "(SELECT array_agg(CASE WHEN e IS NOT NULL THEN format('%s', e) END ORDER BY i)"
    " FROM unnest({c}) WITH ORDINALITY AS u(e, i))"
)


def _double(declared: str) -> Kind:
    return _bits(declared, 64)


def _array(declared: str, texts: to.Texts, *, only_null: bool = True) -> Kind:
    return Kind(
        declared=f"{declared}[]",
        texts=to.arrays(texts, only_null=only_null),
        oracle="CASE WHEN {c} IS NOT NULL THEN COALESCE(" + _ELEMENTS + ", ARRAY[]::text[]) END",
        read=lambda items: [None if item is None else _spell(item) for item in items],
    )


_INT4, _INT8 = (st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 2) for n in (32, 64))
_RANGES = {
    "int4": to.ranges(_INT4),
    "int8": to.ranges(_INT8),
    "num": to.ranges(st.decimals(-(10**9), 10**9, places=3)),
    "ts": to.ranges(st.datetimes(), datetime.isoformat),
    "tstz": to.ranges(st.datetimes(), lambda moment: f"{moment.isoformat()}Z"),
    "date": to.ranges(st.dates(max_value=date(9999, 12, 30))),
}
_EARLIER = st.datetimes(max_value=datetime(9999, 1, 1))  # noqa: DTZ001
_POINTS = st.lists(st.integers(-99, 99), min_size=1, max_size=3)
_HSTORE = "hstore_to_json({c})"
_NUMBER_WORDS = ("NAN", "POSITIVE_INFINITY", "NEGATIVE_INFINITY")
_ISN = {
    "isbn": "0-393-04002-X", "isbn13": "978-0-393-04002-9", "issn": "1436-4522",
    "issn13": "977-1436-452-00-8", "ismn": "M-2306-7118-7", "ismn13": "979-0-2306-7118-7",
    "ean13": "977-1436-452-00-8", "upc": "220356483481",
}  # fmt: skip


def _hstore(declared: str) -> Kind:
    return Kind(declared=declared, texts=to.pairs(), oracle=_HSTORE, read=json.loads)


def _not_a_number_word(texts: to.Texts) -> to.Texts:
    """Leave out what is refused in a domain over text: hypothesis finds the words in our code."""
    return texts.filter(lambda text: text not in _NUMBER_WORDS)


def _money(declared: str) -> Kind:
    return Kind(declared=declared, texts=to.numbers(16, 2), oracle="{c}::numeric::text", read=str)


TABLES: dict[str, dict[str, Kind]] = {
    "numbers": {
        "b": kind("bool", st.sampled_from(["t", "f"])),
        "i2": kind("int2", to.integers(16)),
        "i4": kind("int4", to.integers(32)),
        "i8": kind("int8", to.integers(64)),
        "o": kind("oid", to.unsigned(32)),
        "f4": _bits("float4", 32),
        "f8": _bits("float8", 64),
        "n_any": kind("numeric", to.any_numbers()),
        "n_10_2": kind("numeric(10,2)", to.numbers(10, 2)),
        "n_38_0": kind("numeric(38)", to.numbers(38, 0)),
        "n_38_38": kind("numeric(38,38)", to.numbers(38, 38)),
        "n_60_10": kind("numeric(60,10)", to.numbers(60, 10, special=("NaN",))),
        "n_5_m2": kind("numeric(5,-2)", to.numbers(5, -2)),
        "n_2_5": kind("numeric(2,5)", to.numbers(2, 5)),
        "mny": _money("money"),
    },
    "times": {
        "d": kind("date", to.dates()),
        "ts": kind("timestamp", to.timestamps()),
        "ts0": kind("timestamp(0)", _EARLIER.map(str)),
        "ts3": kind("timestamp(3)", _EARLIER.map(str)),
        "tz": kind("timestamptz", to.timestamps("+00")),
        "tz3": kind("timestamptz(3)", _EARLIER.map("{}+00".format)),
        "tm": kind("time", to.clocks()),
        "tm0": kind("time(0)", to.clocks()),
        "iv": kind("interval", to.intervals()),
        "iv_ym": kind("interval year to month", st.integers(-(10**6), 10**6).map("{} mons".format)),
    },
    "chosen": {  # kept as text because of source.as_text
        "n_text": kind("numeric(10,2)", to.numbers(10, 2, special=("NaN",))),
        "n_m2_text": kind("numeric(5,-2)", to.numbers(5, -2, special=("NaN",))),
        "d_text": kind("date", to.far_dates()),
        "ts_text": kind("timestamp", to.far_timestamps()),
        "ts3_text": kind("timestamp(3)", to.far_timestamps(last="54.775")),
        "tz_text": kind("timestamptz", to.far_timestamps("+00")),
        "dom_text": kind(f"{SCHEMA}.d_date", to.far_dates()),
    },
    "texts": {
        "t": kind("text", to.texts(40)),
        "vc": kind("varchar(5)", to.texts(5)),
        "ch": kind("char(5)", to.texts(5)),
        "c1": kind('"char"', to.one_byte()),
        "nm": kind("name", to.texts(15)),
        "by": kind("bytea", to.octets()),
        "u": kind("uuid", st.uuids().map(str)),
        "j": kind("json", to.documents(plain=False)),
        "jb": kind("jsonb", to.documents(plain=True)),
        "jp": kind("jsonpath", to.words(".").map(lambda path: f"$.{path} ? (@ > 1)")),
        "x": kind("xml", to.xml()),
        "tsv": kind("tsvector", to.words(" ")),
        "tsq": kind("tsquery", to.words(" & !")),
        "b1": kind("bit", to.sized(1, 1)),
        "b5": kind("bit(5)", to.sized(5, 5)),
        "b128": kind("bit(128)", to.sized(128, 128)),
        "ct": kind("citext", to.texts()),
    },
    "others": {
        "ine": kind("inet", to.addresses(network=False)),
        "cid": kind("cidr", to.addresses(network=True)),
        "mac": kind("macaddr", to.hardware(6)),
        "mac8": kind("macaddr8", to.hardware(8)),
        "lsn": kind("pg_lsn", to.lsns()),
        "snap": kind("pg_snapshot", to.snapshots()),
        "tx": kind("txid_snapshot", to.snapshots()),
        "xi": kind("xid", to.unsigned(32)),
        "xi8": kind("xid8", to.unsigned(64)),
        "ci": kind("cid", to.unsigned(32)),
        "ti": kind("tid", st.builds("({},{})".format, to.unsigned(32), to.unsigned(16))),
        "h": _hstore("hstore"),
        "lt": kind("ltree", to.words(".")),
        "lq": kind("lquery", to.words(".*.")),
        "ltq": kind("ltxtquery", to.words(" & ")),
        "cu": kind("cube", _POINTS.map(lambda point: f"({', '.join(map(str, point))})")),
        "se": kind("seg", st.integers(-99, 99).map("{} .. 100".format)),
        **{f"p_{name}": kind(name, st.just(text)) for name, text in _ISN.items()},
    },
    "ranges": {
        name: ranges
        for base, one in _RANGES.items()
        for name, ranges in (
            (f"r_{base}", kind(f"{base}range", one)),
            (f"m_{base}", kind(f"{base}multirange", to.several(one))),
        )
    },
    "own": {
        "e": kind(f"{SCHEMA}.mood", st.sampled_from(["sad", 'so "so"', "", "hap py", "é"])),
        "c": kind(f"{SCHEMA}.pair", to.composites()),
        "r": kind(f"{SCHEMA}.span", to.ranges(st.floats(-1e6, 1e6))),
        "m": kind(f"{SCHEMA}.spans", to.several(to.ranges(st.floats(-1e6, 1e6)))),
        "d_int": kind(f"{SCHEMA}.d_int", to.integers(32)),
        "d_d_int": kind(f"{SCHEMA}.d_d_int", to.integers(32)),
        "d_small": kind(f"{SCHEMA}.d_small", to.integers(16)),
        "d_bool": kind(f"{SCHEMA}.d_bool", st.sampled_from(["t", "f"])),
        "d_text": kind(f"{SCHEMA}.d_text", _not_a_number_word(to.texts())),
        "d_numeric": kind(f"{SCHEMA}.d_numeric", to.numbers(10, 2)),
        "d_d_numeric": kind(f"{SCHEMA}.d_d_numeric", to.numbers(10, 2)),
        "d_tens": kind(f"{SCHEMA}.d_tens", to.numbers(5, -1)),
        "d_any": kind(f"{SCHEMA}.d_any", to.numbers(40, 7)),
        "d_float": _bits(f"{SCHEMA}.d_float", 32),
        "d_date": kind(f"{SCHEMA}.d_date", to.dates()),
        "d_timestamp": kind(f"{SCHEMA}.d_timestamp", to.timestamps()),
        "d_instant": kind(f"{SCHEMA}.d_instant", to.timestamps("+00")),
        "d_time": kind(f"{SCHEMA}.d_time", to.clocks()),
        "d_interval": kind(f"{SCHEMA}.d_interval", to.intervals()),
        "d_bit": kind(f"{SCHEMA}.d_bit", to.sized(5, 5)),
        "d_uuid": kind(f"{SCHEMA}.d_uuid", st.uuids().map(str)),
        "d_jsonb": kind(f"{SCHEMA}.d_jsonb", to.documents(plain=True)),
        "d_hstore": _hstore(f"{SCHEMA}.d_hstore"),
        "d_money": _money(f"{SCHEMA}.d_money"),
        "d_mood": kind(f"{SCHEMA}.d_mood", st.sampled_from(["sad", "é"])),
        "d_pair": kind(f"{SCHEMA}.d_pair", to.composites()),
        "d_lsn": kind(f"{SCHEMA}.d_lsn", to.lsns()),
        "d_range": kind(f"{SCHEMA}.d_range", _RANGES["int4"]),
        "d_spans": kind(f"{SCHEMA}.d_spans", to.several(_RANGES["int4"])),
        "d_inet": kind(f"{SCHEMA}.d_inet", to.addresses(network=False)),
        "d_blank": kind(f"{SCHEMA}.d_blank", _not_a_number_word(to.texts(3))),
    },
    "arrays": {
        "t": _array("text", to.texts()),
        "vc": _array("varchar(5)", to.texts(5)),
        "ch": _array("char(3)", to.texts(3)),
        "u": _array("uuid", st.uuids().map(str)),
        "j": _array("json", to.documents(plain=False)),
        "jb": _array("jsonb", to.documents(plain=True)),
        "by": _array("bytea", to.octets(), only_null=False),
        "i4": _array("int4", to.integers(32), only_null=False),
        "i8": _array("int8", to.integers(64), only_null=False),
        "d": _array("date", to.dates(date(1582, 10, 15)), only_null=False),
    },
}  # fmt: skip
AS_TEXT = [f"{SCHEMA}.chosen.*_text", f"{SCHEMA}.*.*far_text"]
