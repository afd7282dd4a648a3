"""A failed connector's cause is reported without values of the row at which it failed."""

from typing import Final

import pytest

from cdc.source.connector.failure import cause

CANARY: Final = "canary-7f3a"
OUTER: Final = "org.apache.kafka.connect.errors.ConnectException: It ended\n\tat a.b(C:1)"

ABOUT_ROWS: Final = (
    f'java.lang.NumberFormatException: For input string: "{CANARY}"',
    f"org.apache.avro.AvroTypeException: value {CANARY} (a java.lang.String) cannot be cast",
    f"org.apache.kafka.connect.errors.ConnectException: Couldn't serialize hstore value: {CANARY}",
    f"org.apache.kafka.connect.errors.DataException: Invalid value {CANARY} for schema",
    f"io.debezium.DebeziumException: Failed to parse PgArray: {CANARY}",
    f"io.debezium.DebeziumException: Failed to properly convert data value '{CANARY}' of a.b",
    f'org.postgresql.util.PSQLException: ERROR: invalid input syntax for type integer: "{CANARY}"',
    f"org.postgresql.util.PSQLException: ERROR: no\n  Detail: Key (id)=({CANARY})",
    f'org.postgresql.util.PSQLException: ERROR: value "{CANARY}" is out of range for type integer',
    f"java.time.DateTimeException: {CANARY}\n{CANARY}",
    f"{CANARY} is no class",
)


def test_our_own_converter_names_the_table_and_the_column() -> None:
    said = "a masked column of a.b is gone, and c is new"
    ours = f"wal2lake.MaskingAvroConverter$UnknownColumn: {said}"

    assert cause(f"{OUTER}\nCaused by: {ours}\n\tat a.b(C:1)") == said


@pytest.mark.parametrize("inner", ABOUT_ROWS)
@pytest.mark.parametrize("outer", ["", f"{OUTER}\nCaused by: "])
def test_a_value_is_not_passed_on(inner: str, outer: str) -> None:
    said = cause(f"{outer}{inner}\n\tat d.e(F:2)\n\t... 9 more\n")
    assert CANARY not in said


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        (
            'org.postgresql.util.PSQLException: ERROR: replication slot "p" is active for PID 7',
            "ERROR: replication slot ... is active for PID 7",
        ),
        (
            "org.postgresql.util.PSQLException: FATAL: password authentication failed for user",
            "FATAL: password authentication failed for user",
        ),
        ("java.net.UnknownHostException: db.example", "db.example"),
        (
            "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: No such topic.",
            "No such topic.",
        ),
        (
            "java.lang.NumberFormatException: x",
            "NumberFormatException in ConnectException; see the worker's log",
        ),
    ],
)
def test_the_reason_is_passed_on(inner: str, said: str) -> None:
    assert cause(f"{OUTER}\nCaused by: {inner}\n\tat d.e(F:2)\n") == said


def test_without_a_trace_there_is_no_cause() -> None:
    assert cause("") == ""
