"""``verify`` finds every difference that matters: each test plants one value in the lake."""

import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from cdc.client.verify.compare import KeyDifference
from cdc.client.verify.verdict import TableVerdict
from tests.client.conftest import Pair

pytestmark = pytest.mark.integration

D = Decimal
NAN_OF_SPARK = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
DAY = datetime(2024, 2, 29, 23, 59, 59, 999999)  # noqa: DTZ001 - a timestamp without a zone
INSTANT = DAY.replace(tzinfo=UTC)
UTC_RANGE = '{["2024-01-01 00:00:00+00",)}'


class Case(NamedTuple):
    """A value in Postgres, its equal in the lake, and values of the lake that are not equal."""

    declared: str
    literal: str
    kind: pa.DataType
    same: object
    others: list[Any]


VALUES: list[tuple[str, str, pa.DataType, object, list[Any]]] = [
    ("boolean", "true", pa.bool_(), True, [False, None]),
    ("smallint", "-32768", pa.int16(), -32768, [32767, None]),
    ("int", "2147483647", pa.int32(), 2147483647, [2147483646]),
    ("bigint", "-9223372036854775808", pa.int64(), -(2**63), [-(2**63) + 1]),
    ("oid", "4294967295", pa.int64(), 4294967295, [-1]),
    ("numeric(10,2)", "1.10", pa.decimal128(10, 2), D("1.10"), [D("1.11"), D("-1.10"), None]),
    ("numeric(10,2)", "-0.01", pa.decimal128(10, 2), D("-0.01"), [D("0.01"), D("-0.10")]),
    ("numeric(38,37)", "0." + "0" * 36 + "1", pa.decimal128(38, 37), D("1E-37"), [D(0)]),
    ("numeric(38,0)", "9" * 38, pa.decimal128(38, 0), D("9" * 38), [D("9" * 37 + "8")]),
    ("numeric", "1.10", pa.string(), "1.10", ["1.1", "1.100", "1.10 "]),
    ("numeric", "'NaN'", pa.string(), "NaN", ["nan", None]),
    ("real", "0.1", pa.float32(), 0.1, [0.10000001, 0.0]),
    ("float8", "0.1", pa.float64(), 0.1, [0.1 + 2**-56, 0.1 - 2**-56]),
    ("float8", "'-0'", pa.float64(), -0.0, [0.0]),
    ("float8", "'NaN'", pa.float64(), NAN_OF_SPARK, [float("inf"), 0.0, None]),
    ("float8", "'-Infinity'", pa.float64(), float("-inf"), [float("inf"), float("nan")]),
    ("real", "0.1", pa.float64(), struct.unpack("f", struct.pack("f", 0.1))[0], [0.1]),
    ("text", "'a '", pa.string(), "a ", ["a", "a\u00a0", "A ", ""]),
    ("text", "''", pa.string(), "", [None, " "]),
    ("text", "NULL", pa.string(), None, ["", "NULL", "\\N"]),
    (
        "text",
        "E'\"q\",\\n\\r\\n;\\\\.\\t\\U0001F600'",
        pa.string(),
        '"q",\n\r\n;\\.\t\U0001f600',
        ['"q",\n\n;\\.\t\U0001f600'],
    ),
    ("char(4)", "'ab'", pa.string(), "ab  ", ["ab", "ab "]),
    ("varchar(4)", "'ab '", pa.string(), "ab ", ["ab"]),
    ("bytea", "'\\x00ff'", pa.binary(), b"\x00\xff", [b"\x00", b"\x00\xfe", b"", None]),
    ("bytea", "''", pa.binary(), b"", [None, b"\x00"]),
    ("date", "'2024-02-29'", pa.date32(), date(2024, 2, 29), [date(2024, 3, 1), None]),
    ("date", "'0001-01-01'", pa.date32(), date(1, 1, 1), [date(1, 1, 3)]),
    ("date", "'infinity'", pa.date32(), None, [date(9999, 12, 31)]),
    ("timestamp", f"'{DAY}'", pa.timestamp("us"), DAY, [DAY.replace(microsecond=999998)]),
    ("timestamptz", f"'{DAY}+00'", pa.timestamp("us", "UTC"), INSTANT, [None]),
    (
        "timestamptz",
        "'2024-03-01 01:59:59.999999+02'",
        pa.timestamp("us", "UTC"),
        INSTANT,
        [INSTANT.replace(hour=22)],
    ),
    ("time", "'24:00:00'", pa.string(), "24:00:00", ["00:00:00"]),
    ("time", "'01:02:03.000004'", pa.string(), "01:02:03.000004", ["01:02:03"]),
    ("date", "'0044-03-15 BC'", pa.string(), "0044-03-15 BC", ["0044-03-15", "-0043-03-15"]),
    ("timestamp", "'infinity'", pa.string(), "infinity", ["294247-01-10 04:00:54.775807"]),
    ("timestamptz", "'12000-01-01 01:00+01'", pa.string(), "12000-01-01 00:00:00+00", [None]),
    ("numeric(5, 2)", "'NaN'", pa.string(), "NaN", ["NAN"]),
    ("numeric(5, -2)", "12345", pa.decimal128(7, 0), D("12300"), [D("12345")]),
    ("pg_lsn", "'16/B374D848'", pa.string(), "16/B374D848", ["16/b374d848"]),
    ("tstzmultirange", "'{[2024-01-01 01:00+01,)}'", pa.string(), UTC_RANGE, [None]),
    (
        "uuid",
        "'00000000-0000-0000-0000-00000000000a'",
        pa.string(),
        f"{'0' * 8}-0000-0000-0000-{10:012x}",
        [f"{10:032x}"],
    ),
    ("json", '\'{"b": 1, "a": 1.0}\'', pa.string(), '{"b": 1, "a": 1.0}', ['{"b":1,"a":1.0}']),
    ("jsonb", "'null'", pa.string(), "null", [None]),
    ("interval", "'1 mon -2 days 03:00'", pa.string(), "1 mon -2 days +03:00:00", ["P1M"]),
    ("money", "12.50", pa.string(), "12.50", ["$12.50", "12.5"]),
    ("bit(5)", "B'00101'", pa.string(), "00101", ["101"]),
    ("inet", "'10.0.0.1/8'", pa.string(), "10.0.0.1/8", ["10.0.0.1"]),
    ("int[]", "'{1,NULL}'", pa.list_(pa.int32()), [1, None], [[1], [None, 1], [1, 0], None, []]),
    ("int[]", "'{}'", pa.list_(pa.int32()), [], [None, [None]]),
    (
        "text[]",
        "ARRAY['a,b', '', NULL, 'N']",
        pa.list_(pa.string()),
        ["a,b", "", None, "N"],
        [["a", "b", "", None, "N"], ["a,b", None, None, "N"], ["a,b", "", "N", None]],
    ),
    ("float8[]", "'{0.1,-0}'", pa.list_(pa.float64()), [0.1, -0.0], [[0.1, 0.0]]),
    (
        "numeric(6,3)[]",
        "'{1.5,NULL}'",
        pa.list_(pa.decimal128(6, 3)),
        [D("1.500"), None],
        [[D("1.501"), None]],
    ),
    ("timestamp[]", f"ARRAY['{DAY}'::timestamp]", pa.list_(pa.timestamp("us")), [DAY], [[None]]),
    ("int[]", "'[0:1]={1,2}'", pa.list_(pa.int32()), None, [[1, 2]]),
]
SAME_IS_NOT_POSSIBLE = {"'infinity'", "'[0:1]={1,2}'"}


@pytest.mark.parametrize(
    "case",
    [Case(*value) for value in VALUES],
    ids=[f"{declared} {literal[:20]}" for declared, literal, *_ in VALUES],
)
def test_a_value_is_equal_to_itself_and_to_nothing_else(pair: Pair, case: Case) -> None:
    pair.run(f"CREATE TABLE t (id int PRIMARY KEY, v {case.declared})")
    pair.run(f"INSERT INTO t VALUES (1, {case.literal}), (2, NULL)")

    def with_value(value: object) -> TableVerdict:
        ids, values = pa.array([1, 2], pa.int32()), pa.array([value, None], case.kind)
        return pair.verdict("t", pair.lake("t", {"id": ids, "v": values}))

    if case.literal not in SAME_IS_NOT_POSSIBLE:
        assert with_value(case.same).equal
    for other in case.others:
        verdict = with_value(other)
        assert not verdict.equal, other
        assert verdict.comparison.keys == [
            KeyDifference(key=("1",), kind="changed", columns=("v",))
        ]


def test_missing_and_extra_rows_and_a_row_twice(pair: Pair) -> None:
    pair.run("CREATE TABLE t (a text, b int, v text, PRIMARY KEY (b, a))")
    pair.run("INSERT INTO t VALUES ('x', 1, 'v'), ('y', 1, 'v'), ('x', 2, 'v')")
    entry = pair.lake(
        "t",
        {
            "a": pa.array(["x", "x", "x", "z"]),
            "b": pa.array([1, 1, 2, 1], pa.int32()),
            "v": pa.array(["v", "v", "v", "v"]),
        },
    )

    verdict = pair.verdict("t", entry)

    assert verdict.key == ("b", "a")
    found = verdict.comparison
    assert (found.source_rows, found.lake_rows) == (3, 4)
    assert (found.missing, found.extra, found.changed) == (1, 2, 0)
    assert {(each.key, each.kind) for each in found.keys} == {
        (("1", "y"), "missing"),
        (("1", "x"), "extra"),
        (("1", "z"), "extra"),
    }


def test_copies_of_a_table_without_a_key_are_counted(pair: Pair) -> None:
    pair.run("CREATE TABLE t (v text, n int)")
    pair.run("ALTER TABLE t REPLICA IDENTITY FULL")
    pair.run("INSERT INTO t VALUES ('a', NULL), ('a', NULL), ('b', 1)")
    columns = {"v": pa.array(["a", "b", "b"]), "n": pa.array([None, 1, 1], pa.int32())}

    verdict = pair.verdict("t", pair.lake("t", columns))

    assert (verdict.comparison.missing, verdict.comparison.extra) == (1, 1)
    assert verdict.comparison.keys == []
    again = {"v": pa.array(["b", "a", "a"]), "n": pa.array([1, None, None], pa.int32())}
    assert pair.verdict("t", pair.lake("t", again)).equal


def test_a_table_that_is_not_in_the_lake_is_equal_only_when_it_is_empty(pair: Pair) -> None:
    pair.run("CREATE TABLE t (id int PRIMARY KEY)")
    assert pair.verdict("t", None).equal

    pair.run("INSERT INTO t VALUES (1), (2)")
    verdict = pair.verdict("t", None)
    assert (verdict.equal, verdict.comparison.missing) == (False, 2)


def test_a_column_that_should_be_in_the_lake_is_missed_and_others_are_named(pair: Pair) -> None:
    pair.run(
        "CREATE TABLE t (id int PRIMARY KEY, v text, twice int GENERATED ALWAYS AS (id * 2) STORED)"
    )
    pair.run("INSERT INTO t VALUES (1, 'x')")
    entry = pair.lake("t", {"id": pa.array([1], pa.int32()), "old": pa.array(["gone"])})

    verdict = pair.verdict("t", entry)

    assert not verdict.equal
    assert verdict.lacking == ("v",)
    assert set(verdict.left_out) == {"v", "twice"}
    assert {note.column for note in verdict.notes} == {"twice", "old"}


def test_odd_names_and_text_columns_alone(pair: Pair) -> None:
    pair.run('CREATE TABLE t ("select" text PRIMARY KEY, "a ""b"" {c} %s" int)')
    pair.run("INSERT INTO t VALUES ('', 1), ('\\.', 2), (' ', NULL)")
    columns = {
        "select": pa.array(["\\.", "", " "]),
        'a "b" {c} %s': pa.array([2, 1, None], pa.int32()),
    }

    assert pair.verdict("t", pair.lake("t", columns)).equal
    pair.run('CREATE TABLE one ("only" text)')
    pair.run("ALTER TABLE one REPLICA IDENTITY FULL")
    pair.run("INSERT INTO one VALUES (NULL), (''), (NULL)")
    assert pair.verdict("one", pair.lake("one", {"only": pa.array(["", None, None])})).equal
    assert not pair.verdict("one", pair.lake("one", {"only": pa.array(["", "", None])})).equal


def test_the_source_is_read_as_of_the_snapshot(pair: Pair) -> None:
    """Commits made while ``verify`` runs are not part of what it compares."""
    pair.run("CREATE TABLE t (id int PRIMARY KEY)")
    pair.run("INSERT INTO t SELECT generate_series(1, 1000)")
    entry = pair.lake("t", {"id": pa.array(range(1, 1001), pa.int32())})
    assert pair.verdict("t", entry).equal

    pair.run("INSERT INTO t VALUES (1001)")
    assert pair.verdict("t", entry).comparison.missing == 1


def test_an_older_version_of_the_lake_is_compared_as_it_was(pair: Pair) -> None:
    pair.run("CREATE TABLE t (id int PRIMARY KEY)")
    pair.run("INSERT INTO t VALUES (1)")
    first = pair.lake("t", {"id": pa.array([1], pa.int32())})
    second = pair.lake("t", {"id": pa.array([1, 2], pa.int32())})

    assert pair.verdict("t", first).equal
    assert pair.verdict("t", second).comparison.extra == 1
