"""Rows that wait are final in Postgres when they are here: at their bound, to the microsecond."""

from datetime import UTC, datetime, timedelta

import duckdb
import pytest

from cdc.derive.late.shown import shown, shown_by_source
from cdc.source.server.connection import Connection
from tests.source.derive.test_dialect import FAILED, answers, read

pytestmark = pytest.mark.integration

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
JOIN = """\
FROM dialect.m AS a LEFT JOIN dialect.m AS b
ON b.id > a.id AND b.{time} BETWEEN a.{time} AND a.{time} + INTERVAL '15 minutes'"""
WAITS = """\
/* ---
late: {{column: b.{time}, allowed: 1 hour}}
emit: {emit}
--- */
SELECT a.id, a.{time} AS since, b.id AS other """
BY_HAND = "SELECT a.id, a.{time} AS since, b.id AS other{final} "
BOUND = "COALESCE(a.{time} + INTERVAL '15 minutes' <= '{watermark}', FALSE)"
AT_BOUND = datetime.fromisoformat("2024-03-31 01:25:00.000001+00:00")
"""Of row 9: a watermark that is exactly there."""


@pytest.mark.parametrize("time", ["ts", "tz"])
@pytest.mark.parametrize("emit", ["updates", "final"])
@pytest.mark.parametrize("early", [0, 1])
def test_both_engines_agree_with_a_query_by_hand(
    time: str, emit: str, early: int, postgres: Connection, duck: duckdb.DuckDBPyConnection
) -> None:
    definition = read((WAITS + JOIN).format(time=time, emit=emit))
    assert definition.late is not None
    watermark = AT_BOUND - timedelta(microseconds=early)
    micros = (watermark - EPOCH) // timedelta(microseconds=1)
    postgres.execute("SET TimeZone = 'UTC'")

    ours = answers(duck, shown(definition.late, definition.duckdb, micros), [""])
    theirs = answers(postgres, shown_by_source(definition.late, definition.postgres, micros), [""])

    bound = BOUND.format(time=time, watermark=watermark.replace(tzinfo=None))
    final, where = (f", {bound} AS final", "") if emit == "updates" else ("", f" WHERE {bound}")
    by_hand = BY_HAND.format(time=time, final=final) + JOIN.format(time=time) + where
    expected = answers(postgres, by_hand, [""])
    assert expected != [FAILED]
    assert ours == theirs == expected
    is_nine = "SELECT count(*) FROM (" + by_hand + ") AS q WHERE id = 9"
    is_there = 0 if emit == "final" and early else 1
    assert postgres.execute(is_nine.encode()).fetchone() == (is_there,)
