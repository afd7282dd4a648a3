"""Apply events in different orders, to compare with the source."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cdc.events.fold import Unchanged, fold, fold_multiset
from tests.experiments.labels import Label
from tests.experiments.pipeline import Pipeline

Rows = list[tuple[Any, ...]]
Place = tuple[int, int]


def in_source(pipeline: Pipeline, table: str) -> Rows:
    """Return the table's rows in the source, sorted."""
    return sorted(pipeline.run(f"SELECT * FROM {table}"))


def replayed(
    labels: Sequence[Label], key: Sequence[str] = ("id",), unchanged: Unchanged = lambda _: False
) -> Rows:
    """Return the rows after all events in the order that wal2lake uses: Kafka's offset."""
    return _rows(fold([label.event for label in labels], key, unchanged).values())


def replayed_in(labels: Sequence[Label], key: Sequence[str] = ("id",)) -> Rows:
    """Return the rows after all events in the given order."""
    events = [replace(label.event, offset=n) for n, label in enumerate(labels)]
    return _rows(fold(events, key).values())


def counted(labels: Sequence[Label]) -> Rows:
    """Return the rows after all events of a table without a key."""
    rows = fold_multiset([label.event for label in labels])
    return sorted(tuple(value for _, value in row) for row in rows.elements())


def places(pipeline: Pipeline, labels: Sequence[Label]) -> list[Place]:
    """Return for each event its commit, by the order of END, and its place in the transaction.

    Rows that the slot's own snapshot read come before all commits.
    """
    numbers = {txid: n for n, txid in enumerate(pipeline.ended())}
    return [
        (numbers[label.txid], label.order) if label.txid is not None and label.order else (-1, 0)
        for label in labels
    ]


def going_back(labels: Sequence[Label], event_places: Sequence[Place]) -> set[int]:
    """Return the keys of which some event has an earlier place than a previous one."""
    highest: dict[int, Place] = defaultdict(lambda: (-1, 0))
    back = set()
    for label, place in zip(labels, event_places, strict=True):
        if place < highest[label.row["id"]]:
            back.add(label.row["id"])
        highest[label.row["id"]] = max(highest[label.row["id"]], place)
    return back


def _rows(rows: Any) -> Rows:  # noqa: ANN401 - a view of rows
    return sorted(tuple(dict(row).values()) for row in rows)
