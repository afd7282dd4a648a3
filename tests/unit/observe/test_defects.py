"""Tests that no description of an error has a row's value, whatever raises it."""

import io
import json
import logging
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import fastavro
import httpx
import psycopg
import pyarrow as pa
import pytest
import structlog
from confluent_kafka import KafkaError, KafkaException
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from psycopg import errors

import cdc.__main__ as command_line
from cdc.errors import CdcError, ErrorKind
from cdc.observe.defects import error_text, traceback_of
from cdc.observe.logs import configure

CANARY: Final = "canary-7f3a"
CAST: Final = (
    f'[CAST_INVALID_INPUT] The value \'{CANARY}\' of the type "STRING" cannot be cast to "INT" '
    'because it is malformed. SQLSTATE: 22018\n== DataFrame ==\n"cast" was called from'
)


class Java:
    """Stands for py4j's proxy of a Java throwable."""

    def __init__(self, name: str, condition: str = "", cause: "Java | None" = None) -> None:
        self._name, self._condition, self._cause = name, condition, cause

    def getClass(self) -> "Java":  # noqa: N802 - Java's names, here and below
        return self

    def getName(self) -> str:  # noqa: N802
        return self._name

    def getCause(self) -> "Java | None":  # noqa: N802
        return self._cause

    def getCondition(self) -> str:  # noqa: N802
        return self._condition

    def getMessage(self) -> str:  # noqa: N802
        return CAST

    toString = __str__ = getMessage  # noqa: N815


class NumberFormatException(Exception):  # noqa: N818 - Spark's name
    """A fake of the error that pyspark makes from one of Java."""

    def __init__(self) -> None:
        super().__init__(CAST)
        self._origin = Java(
            "org.apache.spark.SparkException",
            "FAILED_EXECUTE_UDF",
            Java("org.apache.spark.SparkNumberFormatException", "CAST_INVALID_INPUT"),
        )


def _of_spark() -> None:
    raise NumberFormatException


def _of_avro() -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "int"]}]}
    fastavro.schemaless_writer(io.BytesIO(), fastavro.parse_schema(schema), {"a": CANARY})


def _of_delta() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_deltalake(folder, pa.table({"a": [CANARY]}))
        query = QueryBuilder().register("t", DeltaTable(folder))
        pa.table(query.execute("SELECT cast(a AS int) FROM t").read_all())


def _of_arrow() -> None:
    pa.array([CANARY]).cast(pa.int32())


def _of_postgres() -> None:
    raise errors.UniqueViolation(f"duplicate key\nDETAIL:  Key (id)=({CANARY}) already exists.")


def _of_a_dictionary() -> None:
    dict[str, int]()[CANARY]


def _of_python() -> None:
    int(CANARY)


def _of_httpx() -> None:
    raise httpx.LocalProtocolError(CANARY)


def _of_kafka() -> None:
    raise KafkaException(KafkaError(KafkaError._INVALID_ARG, CANARY))


def _of_many() -> None:
    raise ExceptionGroup(CANARY, [ValueError(CANARY), KeyError(CANARY)])


def _while_another_is_handled() -> None:
    try:
        _of_python()
    except ValueError:
        _of_a_dictionary()


def _because_of_another() -> None:
    try:
        _of_spark()
    except NumberFormatException as error:
        raise RuntimeError(CANARY) from error


RAISERS: Final = (
    *(_of_spark, _of_avro, _of_delta, _of_arrow, _of_postgres, _of_a_dictionary, _of_python),
    *(_of_httpx, _of_kafka, _of_many, _while_another_is_handled, _because_of_another),
)
each_kind = pytest.mark.parametrize("raising", RAISERS, ids=lambda one: one.__name__.strip("_"))


def caught(raising: Callable[[], None]) -> BaseException:
    with pytest.raises(Exception) as found:  # noqa: PT011 - an error of any kind
        raising()
    assert CANARY in _whole(found.value), "the error must contain the value"
    return found.value


def _whole(error: BaseException) -> str:
    parts = [str(error), *map(str, error.args), repr(error)]
    return " ".join(parts)


@each_kind
def test_an_error_is_described_without_its_values(raising: Callable[[], None]) -> None:
    error = caught(raising)
    assert CANARY not in error_text(error)
    assert type(error).__name__ in error_text(error)


@each_kind
def test_a_traceback_has_the_place_but_no_value(raising: Callable[[], None]) -> None:
    text = traceback_of(caught(raising))
    assert CANARY not in text
    assert Path(__file__).name in text
    assert f"in {raising.__name__}" in text


@each_kind
@pytest.mark.parametrize("by", ["structlog", "logging"])
def test_a_log_line_has_no_value(raising: Callable[[], None], by: str) -> None:
    out = io.StringIO()
    configure(out)
    try:
        raising()
    except Exception:
        logger: Any = structlog.get_logger() if by == "structlog" else logging.getLogger("x")
        logger.exception("it failed")
    (line,) = (json.loads(text) for text in out.getvalue().splitlines())
    assert CANARY not in out.getvalue()
    assert f"in {raising.__name__}" in line["exception"]


@each_kind
def test_a_thread_that_ends_logs_no_value(raising: Callable[[], None]) -> None:
    out = io.StringIO()
    configure(out)
    thread = threading.Thread(target=raising, name="merging")
    thread.start()
    thread.join()
    (line,) = (json.loads(text) for text in out.getvalue().splitlines())
    assert CANARY not in out.getvalue()
    assert line["thread"] == "merging"
    assert f"in {raising.__name__}" in line["exception"]


@each_kind
def test_a_defect_on_the_command_line_prints_no_value(
    raising: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command_line, "app", raising)
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 70
    printed = capsys.readouterr().err
    assert CANARY not in printed
    assert f"in {raising.__name__}" in printed


def test_codes_and_conditions_are_described() -> None:
    assert error_text(caught(_of_spark)) == (
        "NumberFormatException: org.apache.spark.SparkException [FAILED_EXECUTE_UDF], "
        "org.apache.spark.SparkNumberFormatException [CAST_INVALID_INPUT]"
    )
    assert error_text(caught(_of_postgres)) == "UniqueViolation: 23505"
    assert error_text(caught(_of_kafka)) == "KafkaException: _INVALID_ARG"
    assert error_text(FileNotFoundError(2, CANARY, "/lake/x")) == (
        "FileNotFoundError: No such file or directory, /lake/x"
    )
    ours = CdcError(ErrorKind.CONFIG, "no table shop.orders", remedy="name another")
    assert error_text(ours) == str(ours)


def test_a_jvm_that_does_not_answer_is_left_out() -> None:
    class Gone:
        def getClass(self) -> None:  # noqa: N802
            raise psycopg.InterfaceError(CANARY)

    error = RuntimeError(CANARY)
    error.java_exception = Gone()  # type: ignore[attr-defined]
    assert error_text(error) == "RuntimeError"


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, threading.excepthook
    yield
    sys.excepthook, threading.excepthook = hooks
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
