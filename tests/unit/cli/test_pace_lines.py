"""``status`` says the freshness that was asked for and reached, and which tables Spark applies."""

from dataclasses import replace
from typing import Any

from cdc.cli.status import pace_lines
from cdc.state.pace import Pace


def pace(**more: Any) -> Pace:  # noqa: ANN401 - fields of any type
    some = Pace(
        pid=1, age_seconds=0.1, asked_seconds=1.0, transactions=9, p50=0.84, p99=2.0, ways={}
    )
    return replace(some, **more)


def test_asked_and_reached_are_in_one_line() -> None:
    assert pace_lines(pace()) == [
        "freshness: 1 s asked, 0.8 s (median) and 2.0 s (99 %) in the last minute"
    ]


def test_no_transaction_is_said() -> None:
    [line] = pace_lines(pace(transactions=0, p50=None, p99=None))
    assert line == "freshness: 1 s asked, no transaction in the last minute"


def test_a_table_that_spark_applies_is_named_with_the_reason() -> None:
    ways = {"public.b": "spark: 30,000 events", "public.a": "driver", "public.c": ""}
    assert pace_lines(pace(ways=ways))[1:] == [
        "applied by the driver: 1 of 3 tables",
        "  public.b: by spark: 30,000 events",
    ]
