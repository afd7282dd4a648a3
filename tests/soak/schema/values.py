"""SQL expressions for values of a type: new, from the current value, or from other rows."""

import random
import string
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.soak.schema.facts import Column, Table, literal

Maker = Callable[[Column, random.Random], str]

_WORDS: Final = (
    "",
    " ",
    "it's",
    'a "b"',
    "\\N",
    "naïve Ωμέγα",
    "日本",
    "🙂",
    "line\nend",
    "NULL",
    "%s",
)
_LARGE: Final = (
    "(SELECT string_agg(md5(i::text || {salt}), '') FROM pg_catalog.generate_series(1, {n}) i)"
)
_HEADER: Final = 4  # added by Postgres to the modifier of varchar, char and numeric
_INTEGERS: Final = {"int2": 15, "int4": 31, "int8": 63}
_NUMBERS: Final = frozenset({*_INTEGERS, "numeric", "float4", "float8"})
_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "citext", "name"})
_MOMENTS: Final = frozenset({"date", "timestamp", "timestamptz"})


def length(column: Column) -> int | None:
    """Return the n of varchar(n) or char(n); None without one."""
    return column.modifier - _HEADER if column.modifier >= _HEADER else None


def digits(column: Column) -> tuple[int, int] | None:
    """Return precision and scale of a numeric; None without them."""
    if column.modifier < _HEADER:
        return None
    packed = column.modifier - _HEADER
    return packed >> 16 & 0xFFFF, packed & 0x7FF


def new_value(column: Column, rng: random.Random) -> str | None:
    """Return a new value; None for an unknown type."""
    if column.labels and not column.element:
        return _typed(rng.choice(column.labels), column)
    if column.element:
        return _array(column, rng)
    make = _MAKERS.get(column.base)
    return f"({make(column, rng)})::{column.type}" if make else None


def changed_value(column: Column, rng: random.Random) -> str | None:
    """Return an expression over the current value; None for an unknown type."""
    name = column.quoted
    if column.element:
        # An array of NULLs only would be refused (docs/reference/types.md).
        return rng.choice([f"{name} || {name}", f"{name} || {name}[1:1]", f"'{{}}'::{column.type}"])
    if column.base in _NUMBERS:
        return rng.choice([f"{name} + 1", f"{name} - 1", f"- {name}", f"{name} * 2"])
    if column.base in _TEXTS:
        tail = literal(_word(rng))
        return rng.choice([f"{name} || {tail}", f"upper({name})", f"reverse({name})"])
    if column.base in _MOMENTS:
        days = rng.randint(-400, 400)
        return f"{name} + {days}" if column.base == "date" else f"{name} + '{days} hours'::interval"
    return f"NOT {name}" if column.base == "bool" else None


def fresh_value(
    table: Table, column: Column, rng: random.Random, *, place: str = "1"
) -> str | None:
    """Return a value that most likely no row has; ``place`` differs by row of the statement."""
    step = rng.randint(1, 30)
    if column.base in _NUMBERS:
        highest = f"(SELECT coalesce(max({column.quoted}), 0) FROM {table.quoted})"
        return f"({highest} + {step} + {place})::{column.type}"
    if column.base in _MOMENTS:
        # Near an existing value: it may decide which partition the row belongs to.
        there = f"(SELECT x.{column.quoted} FROM {table.quoted} x"
        there += f" OFFSET {rng.randrange(max(table.rows, 1))} LIMIT 1)"
        shift = f"{place} * interval '{step} h' + interval '{rng.randint(0, 10**6)} ms'"
        return f"({there} + {shift})::{column.type}"
    if column.base == "uuid":
        return f"md5({literal(_name(rng))} || {place})::uuid"
    if column.base in _TEXTS:
        return f"left({literal(_name(rng))} || {place}, {length(column) or 60})::{column.type}"
    return new_value(column, rng)


def _typed(text: str, column: Column) -> str:
    return f"{literal(text)}::{column.type}"


def _array(column: Column, rng: random.Random) -> str | None:
    item = Column(name="", type=column.element, base=column.element, modifier=column.modifier)
    make = _MAKERS.get(item.base)
    number = range(rng.randint(0, 3))
    if column.labels:
        items = [literal(rng.choice(column.labels)) for _ in number]
    elif make is None:
        return None
    else:
        items = [f"({make(item, rng)})" for _ in number]
    if items and rng.random() < 0.3:
        items.append("NULL")
    return f"ARRAY[{', '.join(items)}]::{column.type}" if items else f"'{{}}'::{column.type}"


def _word(rng: random.Random) -> str:
    return rng.choice(_WORDS) if rng.random() < 0.5 else _name(rng)


def _name(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randint(4, 12)))


def _text(column: Column, rng: random.Random) -> str:
    longest = length(column)
    if longest is None and rng.random() < 0.05:
        return _LARGE.format(salt=literal(_name(rng)), n=rng.randint(100, 400))
    word = _word(rng)
    return f"{literal(word[:longest])}::text"


def _integer(column: Column, rng: random.Random) -> str:
    top = 2 ** _INTEGERS[column.base] - 1
    return str(rng.choice([0, 1, -1, rng.randint(0, 1000), rng.randint(-top, top), top]))


def _numeric(column: Column, rng: random.Random) -> str:
    precision, scale = digits(column) or (30, 10)
    unscaled = rng.randint(0, 10 ** rng.randint(1, precision) - 1)
    text = str(unscaled).rjust(scale + 1, "0")
    sign = rng.choice(["", "-"])
    return f"'{sign}{text[: len(text) - scale]}.{text[len(text) - scale :]}'::numeric"


def _float(_: Column, rng: random.Random) -> str:
    special = rng.choice(["0", "-0", "NaN", "Infinity", "-Infinity", "0.1", "1e-30"])
    text = special if rng.random() < 0.3 else repr(rng.uniform(-1e6, 1e6))
    return f"'{text}'::float8"


def _moment(rng: random.Random) -> datetime:
    first = datetime(1900, 1, 1, tzinfo=UTC)
    return first + timedelta(days=rng.randint(0, 73_000), microseconds=rng.randint(0, 10**11 // 2))


def _json(_: Column, rng: random.Random) -> str:
    word = _name(rng)
    return literal(
        rng.choice(['{"%s": [1, null, "x"]}', '["%s", {}, 1.50]', '"%s"', '{"é\\"": "%s"}']) % word
    )


def _bytes(_: Column, rng: random.Random) -> str:
    if rng.random() < 0.1:
        return f"decode({_LARGE.format(salt=literal(_name(rng)), n=200)}, 'hex')"
    return f"decode('{rng.randbytes(rng.randint(0, 20)).hex()}', 'hex')"


_MAKERS: Final[dict[str, Maker]] = {
    **dict.fromkeys(_INTEGERS, _integer),
    **dict.fromkeys(("text", "varchar", "bpchar", "citext", "name"), _text),
    **dict.fromkeys(("float4", "float8"), _float),
    **dict.fromkeys(("json", "jsonb"), _json),
    "numeric": _numeric,
    "bool": lambda _, rng: rng.choice(["true", "false"]),
    "date": lambda _, rng: literal(_moment(rng).date().isoformat()) + "::date",
    "timestamp": lambda _, rng: literal(_moment(rng).replace(tzinfo=None).isoformat()),
    "timestamptz": lambda _, rng: literal(_moment(rng).isoformat()),
    "time": lambda _, rng: literal(_moment(rng).time().isoformat()),
    "interval": lambda _, rng: f"'{rng.randint(-99, 99)} mons {rng.randint(-9, 9)} s'::interval",
    "uuid": lambda _, rng: literal(str(uuid.UUID(int=rng.getrandbits(128)))),
    "bytea": _bytes,
    "inet": lambda _, rng: f"'10.{rng.randint(0, 255)}.0.1/{rng.randint(8, 32)}'",
    "tsvector": lambda _, rng: f"to_tsvector('simple', '{_name(rng)} {_name(rng)}')",
    "daterange": lambda _, rng: f"daterange('{_moment(rng).date()}', NULL)",
    "int4range": lambda _, rng: f"int4range({rng.randint(-9, 0)}, {rng.randint(1, 9)})",
}
