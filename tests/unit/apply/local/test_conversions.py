"""Test the Python of conversions against the standard library and Postgres's own texts."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.apply.changes import postgres_text, postgres_times
from cdc.apply.changes.casts import cast
from cdc.apply.changes.intervals import INTERVAL
from cdc.apply.changes.scalars import FIRST_MICRO, LAST_MICRO, scalar_of
from cdc.events.values.lake_types import PgType
from tests.events.recorded import recording

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of timestamps without a time zone
MICRO = timedelta(microseconds=1)


@given(st.dates())
def test_a_date_has_its_text(day: date) -> None:
    days = day.toordinal() - date(1970, 1, 1).toordinal()

    assert postgres_times.DATE.of(days) == day.isoformat()


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (-719_163, "0001-12-31 BC"),
        (-719_528, "0001-01-01 BC"),
        (-2_440_588, "4714-11-24 BC"),
        (2_145_042_905, "5874897-12-31"),
        (2_932_897, "10000-01-01"),
        (2_146_033_979, "infinity"),
        (-2_147_472_691, "-infinity"),
        (-2_440_589, None),
        (2_145_042_906, None),
    ],
)
def test_a_date_outside_of_the_calendar_of_the_lake_has_postgres_text(
    days: int, text: str | None
) -> None:
    assert postgres_times.DATE.of(days) == text


@given(st.datetimes())
def test_a_timestamp_has_its_text(at: datetime) -> None:
    text = at.isoformat(sep=" ")

    micros = (at - EPOCH) // MICRO

    assert postgres_times.TIMESTAMP.of(micros) == (text.rstrip("0") if at.microsecond else text)


@given(st.datetimes(timezones=st.just(UTC)))
def test_an_instant_is_its_microseconds_and_has_its_text(at: datetime) -> None:
    sent = at.isoformat().replace("+00:00", "Z")
    zoned = {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}
    of = scalar_of(zoned, PgType("timestamptz"), "x", "timestamp").of

    assert of(sent) == (at.replace(tzinfo=None) - EPOCH) // MICRO
    assert FIRST_MICRO <= of(sent) <= LAST_MICRO
    text = str(at)
    assert postgres_times.INSTANT.of(sent) == (
        f"{text[:-6].rstrip('0')}+00" if at.microsecond else text[:-3]
    )


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5))
def test_a_number_is_rounded_half_up_or_does_not_fit(number: Decimal) -> None:
    made = cast("string", "decimal(10,3)")(str(number))

    if made is None:
        assert abs(number) >= Decimal("9999999.9995")
    else:
        assert abs(made - number) <= Decimal("0.0005")
        assert made.as_tuple().exponent == -3


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "sNaN", "", "1_000", "0x1", "1e99999", "\u0661"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    assert cast("string", "decimal(10,3)")(text) is None
    assert cast("string", "bigint")(text) is None


@given(st.integers(1, 64).flatmap(lambda n: st.text("01", min_size=n, max_size=n)))
def test_bits_have_their_text(bits: str) -> None:
    number = int(bits, 2)
    sent = number.to_bytes((number.bit_length() + 7) // 8, "little")

    assert postgres_text.bits(len(bits)).of(sent) == bits


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ("P0Y0M0DT0H0M0S", "00:00:00"),
        ("P1Y2M3DT4H5M6.789S", "1 year 2 mons 3 days 04:05:06.789"),
        ("P-1Y-2M3DT-4H-5M-6.7S", "-1 years -2 mons +3 days -04:05:06.7"),
        ("P0Y0M-1DT1H0M0S", "-1 days +01:00:00"),
        ("P0Y7M0DT0H0M1.405314999S", "7 mons 00:00:01.405315"),
        ("P0Y0M0DT0H0M0.0000004S", "00:00:00"),
        ("P0Y0M0DT99999999999H0M0S", None),
        ("P0Y0M0DT123456H0M0.000001S", "123456:00:00.000001"),
        ("P1Y0M0DT0H0M0S", "1 year"),
        ("P1Y", None),
    ],
)
def test_an_interval_has_postgres_text(sent: str, text: str | None) -> None:
    assert INTERVAL.of(sent) == text


def test_recorded_intervals_have_postgres_text() -> None:
    recorded = recording("types")
    expected = {row["id"]: row["iv"] for row in recorded.expected["every_type"]}
    events: list[Any] = recorded.events("wal2lake.public.every_type")
    rows = [event.after for event in events if event.after and event.after["iv"] is not None]

    assert rows
    for row in rows:
        if "infinity" not in str(expected[str(row["id"])]):
            assert INTERVAL.of(row["iv"]) == expected[str(row["id"])]
