"""Values at the edges of every type the connector sends, as messages of one table."""

import json
import math
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

from cdc.events import avro
from cdc.events.values.lake_types import (
    SOURCE_LENGTH,
    SOURCE_NAME,
    SOURCE_SCALE,
    SOURCE_TYPE,
    branches,
    parameters,
)
from cdc.events.values.pg_types import INFINITE_DAYS
from cdc.tables import TableId
from tests.events.recorded import Message, recording, table_topic
from tests.events.source import envelope

TABLE: Final = TableId("public", "every_type")
TOPIC: Final = table_topic("every_type")
WRITER: Final = 121
DAY: Final = 86_400_000_000
NOT_UTF8: Final = "~not utf-8~"
"""Stands for bytes of the same length that are no text."""


def around(*numbers: int) -> list[int]:
    return [number + step for number in numbers for step in (-1, 0, 1)]


DAYS: Final = [
    *around(0, -719_162, 2_932_896, -2_440_588, 2_145_042_905, 11_016, -141_428, -719_529),
    *INFINITE_DAYS.values(),
]
MICROS: Final = [
    *(day * DAY + step for day in DAYS if abs(day) < 10**8 for step in (-1, 0, 1_500_000)),
    *(2**63 - 1, -(2**63), 253_402_300_799_999_999, 253_402_300_800_000_000),
]
TEXTS: Final = [
    *(
        "",
        " ",
        "a",
        "NULL",
        "null",
        "ä€😀",
        "e\u0301",
        "\u0000",
        "\u0085",
        "\ufffe",
        "a\nb",
        "\\",
        "'",
    ),
    *("NAN", "POSITIVE_INFINITY", "NEGATIVE_INFINITY", "NaN", "[B@1a2b", "[[Ljava.lang.String;@0f"),
    *("[B@1a2b\n", "[B@1a2b\r", "x" * 70_000, NOT_UTF8),
]
NUMBERS: Final = [
    *(
        "0",
        "-0.00",
        "0.00",
        "1",
        "-1.5",
        "12345.678",
        "99999.999",
        "100000.000",
        "1.2345",
        "1.0005",
    ),
    *("0.0005", "-0.0005", "99999999", "999999999", "1E+3", "1E-3", "1e3", "+7", "7.", ".5", " 7 "),
    *("\x7f7\x1c", "\u00857", "7\u00a0"),
    *(
        "1_000",
        "0x10",
        "1" * 38,
        "1" * 39,
        "9" * 200,
        "0." + "1" * 60,
        "12345678.9" + "0" * 30,
        "-",
    ),
    *("120000", "120000.0", "120000.", "120000.0\n", "120000.0\r", "1E+999", "1E-999"),
]
INSTANTS: Final = [
    *(
        "1970-01-01T00:00:00Z",
        "2024-02-29T12:34:56.789Z",
        "2024-02-30T00:00:00Z",
        "2024-13-01T00:00:00Z",
    ),
    *("0001-01-01T00:00:00Z", "0000-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
    *("+10000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "-0043-03-15T00:00:00Z", "infinity"),
    *("-infinity", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00.1Z", "2024-01-01T00:00:00.123456Z"),
    *("+294276-12-31T23:59:59.999999Z", "-4712-01-01T00:00:00Z", "1582-10-10T00:00:00Z"),
    *("2024-01-01T00:00:00.100Z", "2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00+02:00"),
    # Not the connector's: bytes that were changed on the way, or forms that Spark would read.
    *(
        f"2024-01-01T00:00:00{end}"
        for end in ("", "\0", "\x7f", "z", "Z\n", "Z\r", "Z\u2028", "Z ")
    ),
    *("2024-01-01 00:00:00Z", " 2024-01-01T00:00:00Z", "2024-01-01T00:00Z", "2024-1-1T00:00:00Z"),
]
INTERVALS: Final = [
    *("P0Y0M0DT0H0M0S", "P1Y2M3DT4H5M6.789S", "P-1Y2M-3DT-4H-5M-6.789S", "P1Y0M0DT0H0M0S"),
    *("P-1Y-1M-1DT1H0M0.5S", "P0Y-1M1DT0H0M0S", "P0Y0M-1DT0H0M0.000001S", "P0Y0M1DT0H0M-0.5S"),
    *("P0Y0M0DT123456H59M59.999999S", "P178000000Y11M30DT0H0M0.0S", "P1Y", "P-1Y0M1DT0H0M0S"),
    *("P0Y0M0DT0H0M1.405314999S", "P0Y0M0DT0H0M-0.0000005S", "P0Y0M0DT99999999999H0M0S"),
    *("P0Y0M0DT0H0M0.00000049999999999999999999999999999999S", "P0Y0M0DT2147483647H0M9999999999S"),
    *("P0Y0M0DT0H0M-0.0S", "P0Y0M-1DT0H0M0S", "P0Y1M1DT0H1M0.10S"),
    *(f"P0Y0M0DT0H0M0S{end}" for end in ("\n", "\r", "\u2028", " ")),
]
FLOATS: Final = [0.0, -0.0, 1.5, -math.inf, math.inf, math.nan, 1e-45, 3.4028234663852886e38, 0.1]
LOGICAL: Final[dict[str, list[Any]]] = {
    "io.debezium.time.Date": DAYS,
    "io.debezium.time.MicroTimestamp": MICROS,
    "io.debezium.time.Timestamp": [
        *{micros // 1000 for micros in MICROS[:-4]},
        2**63 - 1,
        -(2**63),
    ],
    "io.debezium.time.MicroTime": [*around(0, DAY), 999_999, 1_000_000, 45_296_120_000, 2**62],
    "io.debezium.time.Time": [*around(0, DAY // 1000), 999, 1000, 2**31 - 1],
    "io.debezium.time.ZonedTimestamp": INSTANTS,
    "io.debezium.time.Interval": INTERVALS,
}
KINDS: Final[dict[str, list[Any]]] = {
    "boolean": [False, True],
    "int": around(0, 2**15, -(2**15), 2**31 - 2, -(2**31) + 1),
    "long": around(0, 2**15, -(2**15), 2**31, -(2**31), 2**32, 2**63 - 2, -(2**63) + 1),
    "float": [struct.unpack("f", struct.pack("f", value))[0] for value in FLOATS],
    "double": [*FLOATS, 5e-324, 1.7976931348623157e308, 2.0e-3, 1e7, 123456789.125],
    "bytes": [
        b"",
        b"\0",
        b"\x1f",
        b"\x15\0",
        b"\xff",
        b"\xff" * 9,
        "ä".encode(),
        bytes(range(256)),
    ],
    "string": [*TEXTS, *NUMBERS],
}


def edge_values(avro_type: Any, placeholder: str) -> list[Any]:  # noqa: ANN401 - JSON
    """Return values of the Avro type, with the placeholder's forms among them."""
    branch = branches(avro_type)[0]
    kind = branch["type"] if isinstance(branch, dict) else branch
    if kind == "array":
        return _arrays(branch["items"], placeholder)
    if kind not in KINDS:
        return []
    logical = branch.get("connect.name", "") if isinstance(branch, dict) else ""
    marks: dict[str, list[Any]] = {
        "string": [placeholder, f'{{"{placeholder}":"{placeholder}"}}', f"{placeholder} "],
        "bytes": [placeholder.encode()],
    }
    return [*LOGICAL.get(logical, KINDS[kind]), *marks.get(kind, [])]


def _arrays(items: Any, placeholder: str) -> list[Any]:  # noqa: ANN401 - JSON
    element = branches(items)[0]
    some = edge_values(element, placeholder)
    nulls: list[Any] = [[None], [None, None], [some[0], None]] if "null" in items else []
    signed = [byte - 256 if byte > 127 else byte for byte in placeholder.encode()]
    kind = element["type"] if isinstance(element, dict) else element
    marks = [signed] if kind in {"int", "long"} else []
    return [[], *([value] for value in some), some[:3], *nulls, *marks]


def more_forms(schema_json: str) -> str:
    """Return the writer's schema with columns that this connector would send otherwise set up."""
    schema = json.loads(schema_json)
    row = next(b for b in branches(schema["fields"][0]["type"]) if isinstance(b, dict))
    made: list[tuple[str, dict[str, Any], str, int, int]] = [
        (
            "ts_ms",
            {"type": "long", "connect.name": "io.debezium.time.Timestamp"},
            "TIMESTAMP",
            23,
            3,
        ),
        ("t_ms", {"type": "int", "connect.name": "io.debezium.time.Time"}, "TIME", 12, 3),
        ("oid_int", {"type": "int"}, "OID", 10, 0),
        ("n_neg", {"type": "string"}, "NUMERIC", 5, 2048 - 3),
        ("n_small", {"type": "string"}, "NUMERIC", 2, 5),
        ("n_free", {"type": "string"}, "NUMERIC", 0, 0),
        ("dom_neg", {"type": "string"}, "NEGATIVE", 5, 2048 - 2),
        ("other", {"type": "bytes"}, "SOMETHING", 10, 0),
        ("small", {"type": "int"}, "INT2", 5, 0),
        ("dates", {"type": "array", "items": ["null", LOGICAL_DATE]}, "_DATE", 13, 0),
    ]
    for name, kind, declared, length, scale in made:
        parameters = {
            SOURCE_TYPE: declared,
            SOURCE_LENGTH: str(length),
            SOURCE_SCALE: str(scale),
            SOURCE_NAME: name,
        }
        avro_type = {**kind, "connect.parameters": parameters}
        row["fields"].append({"name": name, "type": ["null", avro_type], "default": None})
    return json.dumps(schema)


LOGICAL_DATE: Final = {"type": "int", "connect.name": "io.debezium.time.Date"}


def row_types(schema_json: str) -> dict[str, Any]:
    schema = json.loads(schema_json)
    row = next(b for b in branches(schema["fields"][0]["type"]) if isinstance(b, dict))
    return {field["name"]: field["type"] for field in row["fields"]}


def one_by_one(schema_json: str, placeholder: str) -> Iterator[dict[str, Any]]:
    """Rows that have one value each beside their id, so that each is refused for itself."""
    types = row_types(schema_json)
    number = 0
    for name, values in _values(types, placeholder).items():
        for value in values:
            number += 1
            yield {**dict.fromkeys(types), "id": number, name: value}


def at_random(
    schema_json: str,
    placeholder: str,
    random: Random,
    count: int,
    key: Collection[str] = ("id",),
) -> Iterator[dict[str, Any]]:
    """Yield rows with a key and a few random values, half of them from the edges."""
    types = row_types(schema_json)
    values = _values(types, placeholder)
    names = [name for name, some in values.items() if some and name not in key]
    needed = [n for n, kind in types.items() if n in key or "null" not in kind]
    for _ in range(count):
        chosen = random.sample(names, min(len(names), random.choice([1, 2, 3, 8])))
        row = {
            name: random.choice(values[name])
            if random.random() < 0.5
            else random_value(types[name], random)
            for name in chosen
        }
        given = {name: random_value(types[name], random) for name in needed}
        yield {**dict.fromkeys(types), **given, **row}


def random_value(avro_type: Any, random: Random) -> Any:  # noqa: ANN401 - JSON
    """Return any value of the Avro type; texts are often numbers or instants."""
    branch = branches(avro_type)[0]
    kind = branch["type"] if isinstance(branch, dict) else branch
    if kind == "array":
        element = branches(branch["items"])[0]
        some = [random_value(element, random) for _ in range(random.randrange(4))]
        return [*some, None] if "null" in branch["items"] and random.random() < 0.2 else some
    logical = branch.get("connect.name", "") if isinstance(branch, dict) else ""
    if logical in _LOGICAL:
        return _LOGICAL[logical](random)
    declared = parameters(avro_type)
    if kind == "string" and declared.get(SOURCE_TYPE) == "NUMERIC":
        length, scale = (int(declared.get(name, 0)) for name in (SOURCE_LENGTH, SOURCE_SCALE))
        return _numeric(random, length, scale)
    return _RANDOM[kind](random)


def _numeric(random: Random, length: int, scale: int) -> str:
    """Return a number that fits the declared digits; a scale of 2,000 is a negative one."""
    behind = scale if scale < 1000 else 0
    before = max(0, (length or 20) - behind)
    number = f"{random.choice(['', '-'])}{random.randrange(10 ** min(before, 30))}"
    return f"{number}.{random.randrange(10**behind):0{behind}}" if behind else number


def _interval(random: Random) -> str:
    years, months, days, hours, minutes = (random.randrange(-99, 99) for _ in range(5))
    seconds = f"{random.randrange(60)}.{random.randrange(10**6):06}"
    return f"P{years}Y{months}M{days}DT{hours}H{minutes}M{seconds}S"


def _integer(random: Random, bits: int) -> int:
    return random.getrandbits(random.randrange(1, bits)) * random.choice([1, -1])


def _number(random: Random) -> str:
    digits = str(random.getrandbits(random.randrange(1, 140)))
    point = random.randrange(len(digits) + 1)
    return f"{random.choice(['', '-'])}{digits[:point] or '0'}.{digits[point:]}".rstrip(".")


def _instant(random: Random) -> str:
    second = random.randrange(-62_135_596_800, 253_402_300_800)
    moment = datetime(1970, 1, 1) + timedelta(seconds=second)  # noqa: DTZ001 - in UTC
    return f"{moment.isoformat()}.{random.randrange(10**6):06}".rstrip("0").rstrip(".") + "Z"


def _text(random: Random) -> str:
    make = random.choice([_number, _instant, None])
    if make is not None:
        return make(random)
    letters = (chr(random.randrange(1, random.choice([128, 0xD800]))) for _ in range(9))
    return "".join(letters)[: random.randrange(10)]


_LOGICAL: Final[dict[str, Callable[[Random], Any]]] = {
    "io.debezium.time.MicroTime": lambda random: random.randrange(DAY),
    "io.debezium.time.Time": lambda random: random.randrange(DAY // 1000),
    "io.debezium.time.Interval": _interval,
    "io.debezium.time.ZonedTimestamp": _instant,
}
_RANDOM: Final[dict[str, Callable[[Random], Any]]] = {
    "boolean": lambda random: random.random() < 0.5,
    "int": lambda random: _integer(random, 32),
    "long": lambda random: _integer(random, 64),
    "float": lambda random: struct.unpack("f", random.randbytes(4))[0],
    "double": lambda random: struct.unpack("d", random.randbytes(8))[0],
    "bytes": lambda random: random.randbytes(random.randrange(20)),
    "string": _text,
}


def _values(types: Mapping[str, Any], placeholder: str) -> dict[str, list[Any]]:
    values = {name: edge_values(avro_type, placeholder) for name, avro_type in types.items()}
    # Spark's regexp_replace turns bytes that are no text into U+FFFD; no number has such bytes.
    for name in types.keys() & {"dom_neg", "n_neg"}:
        values[name].remove(NOT_UTF8)
    return values


def messages(
    schema_json: str,
    rows: Iterator[dict[str, Any]],
    op: str = "u",
    *,
    table: TableId = TABLE,
    writer: int = WRITER,
) -> list[Message]:
    """Return one event per row, in a message each."""
    topic = table_topic(table.name)
    values = (envelope(table, op, before=None, after=row) for row in rows)
    return [
        Message(topic=topic, offset=at, key=None, value=_message(schema_json, writer, value))
        for at, value in enumerate(values)
    ]


def _message(schema_json: str, writer: int, value: dict[str, Any]) -> bytes:
    data = avro.encode(schema_json, writer, value)
    broken = b"\xff\xc0\x80" + b"\xed\xa0\x80" * 2
    return data.replace(NOT_UTF8.encode(), broken + b"\xf8" * (len(NOT_UTF8) - len(broken)))


EVERY_TYPE: Final = more_forms(recording("types").schemas[WRITER])
