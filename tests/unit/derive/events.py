"""Events with a time in both types, and derived tables over windows of them."""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_definition
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.state.derived_requests import rebuilds
from tests.unit.derive.orders import one
from tests.unit.derive.small_lake import SmallLake, rows_of

EVENTS: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("who", pa.string()),
        ("ts", pa.timestamp("us")),
        ("tz", pa.timestamp("us", "UTC")),
    ]
)
DAY: Final = "2024-03-31 "
COUNTED: Final = "SELECT w.window_start, count(*) AS n FROM {form} AS w GROUP BY w.window_start"
SESSIONS: Final = """\
SELECT w.who, w.window_start, w.window_end, count(*) AS n
FROM sessions(shop.events, {time}, INTERVAL '10 minutes', who) AS w
GROUP BY w.who, w.window_start, w.window_end"""
Event = tuple[int, str | None, str | None]
"""Its id, whose it is, and its time: of DAY if it is a clock's only."""


def moment(text: str, column: str = "ts") -> datetime:
    """Return a time of the type of the column ``ts`` or ``tz``."""
    found = datetime.fromisoformat(text if "-" in text else DAY + text)
    return found.replace(tzinfo=UTC) if column == "tz" else found


def at(*times: str | None) -> list[Event]:
    return [(number, "a", time) for number, time in enumerate(times)]


def row(event: Event) -> dict[str, Any]:
    number, who, time = event
    times = {column: None if time is None else moment(time, column) for column in ("ts", "tz")}
    return {"id": number, "who": who, **times}


def read(query: str, name: str = "seen") -> Definition:
    """Return the definition of ``marts.<name>`` from its text."""
    definition, problems = read_definition(f"marts.{name}.sql", f"marts.{name}.sql", query)
    assert problems == []
    assert definition is not None
    return definition


def entries(lake: SmallLake, query: str, *cuts: Sequence[Event]) -> list[DerivedEntry]:
    """Return the table's entry at each cut; it is calculated anew after the last.

    The rows of that are those of the last cut.
    """
    definition = read(query)
    found = []
    with closing(lake.keep(definition)) as kept:
        for events in cuts:
            lake.set(events=[row(event) for event in events])
            found.append(one(kept, lake))
        rebuilds(lake.folder).ask(definition.table)
        rebuilt = one(kept, lake)
    assert [entry.state for entry in (*found, rebuilt)] == ["streaming"] * (len(cuts) + 1)
    assert rows_of(rebuilt) == rows_of(found[-1])
    return found


def at_each_cut(lake: SmallLake, query: str, *cuts: Sequence[Event]) -> list[list[tuple[Any, ...]]]:
    """Return the table's rows at each cut."""
    return [rows_of(entry) for entry in entries(lake, query, *cuts)]


def written(entry: DerivedEntry) -> tuple[int, int]:
    """Return how many rows the entry's commit inserted and deleted."""
    history = DeltaTable(entry.path).history()
    (metrics,) = (one["operationMetrics"] for one in history if one["version"] == entry.version)
    return int(metrics["numOutputRows"]), int(metrics["numTargetRowsDeleted"])
