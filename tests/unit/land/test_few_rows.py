"""Rows of topics with few events are read back from the log, however many another topic has."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cdc.apply.rounds.log_slice import few_rows, few_topics
from cdc.lake.commit.appender import MEASURED, Appender
from cdc.lake.create.first_entry import create_plain_table
from cdc.lake.table.positions import LandedPosition
from cdc.land import read_back
from cdc.land.arrow_rows import DELTA_TYPES, LOG_SCHEMA, arrow_landing
from cdc.land.landing import Landing, TopicSpan

AT = datetime(2026, 1, 1, tzinfo=UTC)


def rows(landing: int, counts: dict[str, range]) -> pa.Table:
    """Return rows of the log with these offsets, by topic."""
    listed: list[dict[str, Any]] = [
        {
            "landing": landing,
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "value": b"x" * 100,
            "headers": [],
            "timestamp": AT,
            "landed_at": AT,
        }
        for topic, offsets in sorted(counts.items())
        for offset in offsets
    ]
    return pa.Table.from_pylist(listed, schema=LOG_SCHEMA)


@pytest.fixture
def log(tmp_path: Path) -> tuple[str, list[Landing]]:
    """Return a log of three landings, and the last two of them without their events."""
    path = str(tmp_path / "log")
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in DELTA_TYPES.items()
    ]
    landed = LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={}).metadata()
    create_plain_table(path, fields, {MEASURED: "4"}, landed)
    appender, landings = Appender(path, DELTA_TYPES), []
    for number, counts in enumerate(
        (
            {"few": range(3), "many": range(50)},
            {"few": range(3, 5), "many": range(50, 500), "it's": range(2)},
            {"few": range(5, 6), "many": range(500, 520)},
        ),
        start=1,
    ):
        found = rows(number, counts)
        appender.append(found, landed)
        landing = arrow_landing(found)
        landings.append(Landing(number=number, topics=landing.topics))
    return path, landings[1:]


def places(table: pa.Table) -> list[tuple[str, int]]:
    return list(zip(table["topic"].to_pylist(), table["offset"].to_pylist(), strict=True))


def test_rows_beyond_the_offsets_come_in_order(log: tuple[str, list[Landing]]) -> None:
    path, landings = log

    found = few_rows(path, landings, {"few": 3, "many": 49, "it's": -1}, 3)

    assert found is not None
    assert found.topics == {"few", "it's"}
    assert places(found.events) == [("few", 4), ("few", 5), ("it's", 0), ("it's", 1)]


def test_topics_that_nobody_follows_are_not_read(log: tuple[str, list[Landing]]) -> None:
    path, landings = log

    found = few_rows(path, landings, {"few": -1, "many": 49}, 3)

    assert found is not None
    assert Counter(found.events["topic"].to_pylist()) == {"few": 3}
    assert few_rows(path, landings, {"many": 49}, 3) is None


def test_rows_that_are_large_are_left(
    log: tuple[str, list[Landing]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, landings = log
    monkeypatch.setattr(read_back, "MOST_BYTES", 100)

    assert few_rows(path, landings, {"few": 3, "many": 49}, 3) is None


def test_together_they_are_as_many_as_fit_in_memory() -> None:
    spans = {f"t{n}": TopicSpan(last=0, count=20_000) for n in range(20)}
    landings = [Landing(number=1, topics=spans | {"small": TopicSpan(last=0, count=1)})]

    found = few_topics(landings, 20_000)

    assert "small" in found
    assert len(found) == 10
    assert few_topics(landings, 100) == {"small"}
