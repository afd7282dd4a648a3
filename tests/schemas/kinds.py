"""Every type that the tests cover, with random texts that Postgres reads as its values.

No value exceeds a limit of docs/reference/types.md: that would degrade its table, as it should.
"""

import random
import string
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

Make = Callable[[random.Random], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type; ``base`` is its name in ``pg_type``; ``make`` returns None for NULL."""

    base: str
    declared: str
    make: Make
    array: bool = False


def _of(*texts: str) -> Make:
    return lambda rng: rng.choice(texts)


def _integer(bits: int) -> Make:
    top = 2 ** (bits - 1) - 1
    return lambda rng: str(rng.choice([0, 1, -1, top, -top - 1, rng.randint(-999, 999)]))


def _unsigned(bits: int) -> Make:
    return lambda rng: str(rng.choice([3, 2**bits - 1, rng.randrange(2**bits)]))


def _number(digits: int, scale: int) -> Make:
    """Return a numeric with ``scale`` digits after the point, or -``scale`` zeros before it."""

    def make(rng: random.Random) -> str:
        unscaled = rng.choice([-1, 1]) * rng.randrange(10 ** rng.randint(1, digits))
        return f"{unscaled}e{-scale}"

    return make


def _word(most: int) -> Make:
    alphabet = string.ascii_letters + " 'é日🙂\\\"\n,{}%$"
    return lambda rng: "".join(rng.choices(alphabet, k=rng.randint(0, most)))


def _name(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randint(1, 8)))


def _names(shape: str) -> Make:
    return lambda rng: shape.format(_name(rng), _name(rng))


def _bits(most: int, fewest: int | None = None) -> Make:
    fewest = most if fewest is None else fewest
    return lambda rng: "".join(rng.choices("01", k=rng.randint(fewest, most)))


def _octets(number: int) -> Make:
    return lambda rng: rng.randbytes(number).hex(":")


def _moment(rng: random.Random) -> datetime:
    """Return a time far enough from either limit of the lake to be shifted."""
    first = rng.choice([1000, 1582, 1900, 2000, 8000])
    return datetime(first, 10, 1) + timedelta(microseconds=rng.randrange(10**15))  # noqa: DTZ001


def _time(shape: str) -> Make:
    return lambda rng: shape.format(_moment(rng))


def _range(low: Make, high: Make) -> Make:
    def make(rng: random.Random) -> str:
        return rng.choice(["empty", f'["{low(rng)}","{high(rng)}")', f'("{low(rng)}",)', "(,)"])

    return make


def _several(one: Make) -> Make:
    return lambda rng: rng.choice(["{}", f"{{{one(rng)}}}"])


def _between(first: int, last: int) -> Make:
    return lambda rng: str(rng.randint(first, last))


_PAST, _FUTURE = _of("1500-02-03", "1999-12-31"), _of("2001-01-01", "7000-02-03")
_BOUNDS: Final[dict[str, Make]] = {
    **dict.fromkeys(("int4", "int8", "num"), _range(_between(-99, 0), _between(1, 99))),
    **dict.fromkeys(("ts", "tstz", "date"), _range(_PAST, _FUTURE)),
}
_MAKERS: Final[dict[str, Make]] = {
    "bool": _of("t", "f"),
    "int2": _integer(16),
    "int4": _integer(32),
    "int8": _integer(64),
    "oid": _unsigned(32),
    "float4": _of("0", "-0", "NaN", "Infinity", "-Infinity", "0.1", "1e-40", "3.4e38"),
    "float8": _of("0", "-0", "NaN", "Infinity", "-Infinity", "0.1", "5e-324", "1.7e308"),
    "numeric": _number(50, 7),
    "money": lambda rng: f"{rng.randint(-(10**9), 10**9)}.{rng.randint(0, 99):02}",
    "date": _time("{:%Y-%m-%d}"),
    "timestamp": _time("{}"),
    "timestamptz": _time("{}+00"),
    "time": _of("00:00", "24:00:00", "12:34:56.789012"),
    "timetz": _of("12:00:00+01:00:30", "00:00Z"),
    "interval": lambda rng: f"{rng.randint(-99, 99)} mons {rng.randint(-99, 99)} days 1.5 s",
    **dict.fromkeys(("text", "citext"), _word(30)),
    "varchar": _word(60),
    "uuid": lambda rng: str(uuid.UUID(int=rng.getrandbits(128))),
    "jsonb": _names('{{"{}": [1, null, "{}"]}}'),
    "json": _names('{{"{0}":  1.50, "{0}": "{1}"}}'),
    "bpchar": _word(5),
    "char": _of("", "a", " ", "\\", "'"),
    "name": _word(15),
    "bytea": lambda rng: "\\x" + rng.randbytes(rng.randint(0, 30)).hex(),
    "xml": _names("<a b='1'>{} &lt; {}</a>"),
    "jsonpath": _names("$.{}.{} ? (@ > 1)"),
    "tsvector": _names("{} {}"),
    "tsquery": _names("{} & !{}"),
    "bit": _bits(1),
    "varbit": _bits(12, 0),
    "inet": _of("10.0.0.1/8", "::1", "192.168.1.1", "2001:db8::/32"),
    "cidr": _of("10.0.0.0/8", "::/0", "192.168.1.1/32"),
    "macaddr": _octets(6),
    "macaddr8": _octets(8),
    "point": _of("(1,2)", "(0,-0.5)"),
    "line": _of("{1,-1,0}"),
    "lseg": _of("[(0,0),(1,1)]"),
    "box": _of("(1,1),(0,0)"),
    "path": _of("[(0,0),(1,1)]"),
    "polygon": _of("((0,0),(1,1),(1,0))"),
    "circle": _of("<(0,0),1>"),
    **{f"{base}range": one for base, one in _BOUNDS.items()},
    **{f"{base}multirange": _several(one) for base, one in _BOUNDS.items()},
    "pg_lsn": lambda rng: f"{rng.randrange(2**32):X}/{rng.randrange(2**32):X}",
    **dict.fromkeys(("pg_snapshot", "txid_snapshot"), _of("10:20:10,14,15", "1:1:")),
    **dict.fromkeys(("xid", "cid"), _unsigned(32)),
    "xid8": _unsigned(64),
    "tid": _of("(0,1)", "(4294967295,65535)"),
    **dict.fromkeys(("int2vector", "oidvector"), _of("1 2")),
    "regclass": _of("pg_class"),
    "regcollation": _of('"C"'),
    "regconfig": _of("english"),
    "regdictionary": _of("simple"),
    "regnamespace": _of("pg_catalog"),
    "regoper": _of("||/"),
    "regoperator": _of("*(integer,integer)"),
    "regproc": _of("pg_my_temp_schema"),
    "regprocedure": _of("now()"),
    "regrole": _of("pg_monitor"),
    "regtype": _of("integer"),
    "aclitem": _of("pg_monitor=r/pg_monitor"),
    "refcursor": _of("no such cursor"),
    **dict.fromkeys(
        (
            *("pg_node_tree", "pg_ndistinct", "pg_dependencies", "pg_mcv_list", "gtsvector"),
            *("pg_brin_bloom_summary", "pg_brin_minmax_multi_summary"),
        ),
        lambda _: None,
    ),
    "hstore": _names('"{}"=>NULL, {}=>"x"'),
    "ltree": _names("{}.{}"),
    "lquery": _names("{}.*.{}"),
    "ltxtquery": _names("{} & {}"),
    "cube": _of("(1,2)", "(0),(1)"),
    "seg": _of("1 .. 2", "-5"),
    **dict.fromkeys(("isbn", "isbn13"), _of("978-0-393-04002-9")),
    **dict.fromkeys(("issn", "issn13"), _of("977-1436-452-00-8")),
    **dict.fromkeys(("ismn", "ismn13"), _of("979-0-2306-7118-7")),
    "ean13": _of("977-1436-452-00-8"),
    "upc": _of("220356483481"),
}
_VARIANTS: Final[dict[str, tuple[str, Make]]] = {
    "varchar(5)": ("varchar", _word(5)),
    "char(5)": ("bpchar", _word(5)),
    "char(1)": ("bpchar", _of("", "a", " ")),
    '"char"': ("char", _MAKERS["char"]),
    "numeric(10,2)": ("numeric", _number(10, 2)),
    "numeric(38)": ("numeric", _number(38, 0)),
    "numeric(38,38)": ("numeric", _number(38, 38)),
    "numeric(60,10)": ("numeric", _number(60, 10)),
    "numeric(1000,900)": ("numeric", _number(1000, 900)),
    "numeric(5,-2)": ("numeric", _number(5, -2)),
    "numeric(2,5)": ("numeric", _number(2, 5)),
    "timestamp(0)": ("timestamp", _MAKERS["timestamp"]),
    "timestamp(3)": ("timestamp", _MAKERS["timestamp"]),
    "timestamptz(3)": ("timestamptz", _MAKERS["timestamptz"]),
    "time(0)": ("time", _MAKERS["time"]),
    "interval year to month": ("interval", _MAKERS["interval"]),
    "interval day to second(2)": ("interval", _MAKERS["interval"]),
    "bit(5)": ("bit", _bits(5)),
    "bit(128)": ("bit", _bits(128)),
    "bit(129)": ("bit", _bits(129)),
    "varbit(9)": ("varbit", _bits(9, 0)),
}
KINDS: Final = (
    *(Kind(base=b, declared=b, make=make) for b, make in _MAKERS.items() if b != "char"),
    *(Kind(base=b, declared=declared, make=make) for declared, (b, make) in _VARIANTS.items()),
)
COMMON: Final = tuple(
    kind
    for kind in KINDS
    if kind.declared in {"int4", "int8", "text", "varchar", "numeric(10,2)", "timestamptz", "bool"}
)
_WITH_ARRAYS: Final = frozenset(
    {*("int4", "int8", "date", "text", "varchar", "uuid", "jsonb", "bpchar", "json", "bytea")}
)
KEYS: Final = tuple(
    kind
    for kind in KINDS
    if kind.base
    in {
        *("int2", "int4", "int8", "oid", "numeric", "date", "timestamp", "timestamptz", "interval"),
        *("text", "varchar", "bpchar", "uuid", "bytea", "bit", "inet", "pg_lsn", "xid8", "citext"),
        *("float8", "bool", "name", "jsonb", "macaddr", "time", "money", "int4range", "char"),
    }
)
"""Kinds of most columns of keys."""
PLAIN_KEY: Final = next(kind for kind in KINDS if kind.declared == "int8")


def array_of(kind: Kind) -> Kind:
    """Return the kind of one-dimensional arrays, but never of NULLs only, which are a limit."""

    def make(rng: random.Random) -> str | None:
        texts = [text for _ in range(rng.randint(0, 3)) if (text := kind.make(rng)) is not None]
        items = [_quoted(text) for text in texts]
        items += ["NULL"] if items and rng.random() < 0.3 else []
        return f"{{{','.join(items)}}}"

    late = _late_dates(kind)
    return Kind(base=f"_{kind.base}", declared=f"{kind.declared}[]", make=late or make, array=True)


def _late_dates(kind: Kind) -> Make | None:
    """Return late dates only: 5 to 14 October 1582 in an array would arrive ten days later."""
    return _of("{2020-02-29,NULL,1999-12-31}", "{}") if kind.base == "date" else None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def any_kind(rng: random.Random, own: tuple[Kind, ...]) -> Kind:
    """Return the kind of a column: a common one, any, the database's own, or an array."""
    draw = rng.random()
    if draw < 0.3:
        kind = rng.choice(COMMON)
    elif draw < 0.8 or not own:
        kind = rng.choice(KINDS)
    else:
        kind = rng.choice(own)
    if rng.random() < (0.2 if kind.base in _WITH_ARRAYS else 0.05):
        return array_of(kind)
    return kind


def key_kind(rng: random.Random, own: tuple[Kind, ...]) -> Kind:
    """Return the kind of a key's column; Postgres refuses some types in keys."""
    draw = rng.random()
    if draw < 0.4:
        return PLAIN_KEY
    return rng.choice(KEYS) if draw < 0.95 else any_kind(rng, own)
