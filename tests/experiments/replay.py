"""Events applied in one order or another, beside what the source holds."""

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
    return sorted(pipeline.run(f"SELECT * FROM {table}"))


def replayed(
    labels: Sequence[Label], key: Sequence[str] = ("id",), unchanged: Unchanged = lambda _: False
) -> Rows:
    """Rows after all events, in the order of the rule: Kafka's offset."""
    return _rows(fold([label.event for label in labels], key, unchanged).values())


def replayed_in(labels: Sequence[Label], key: Sequence[str] = ("id",)) -> Rows:
    """Rows after all events, in the order given."""
    events = [replace(label.event, offset=n) for n, label in enumerate(labels)]
    return _rows(fold(events, key).values())


def counted(labels: Sequence[Label]) -> Rows:
    """Rows after all events of a table without a key."""
    found = fold_multiset([label.event for label in labels])
    return sorted(tuple(value for _, value in row) for row in found.elements())


def places(pipeline: Pipeline, labels: Sequence[Label]) -> list[Place]:
    """Of each event of the stream: which commit, by the order of END, and where in it.

    What the slot's own snapshot read lies before all commits.
    """
    numbers = {txid: n for n, txid in enumerate(pipeline.ended())}
    return [
        (numbers[label.txid], label.order) if label.txid is not None and label.order else (-1, 0)
        for label in labels
    ]


def going_back(labels: Sequence[Label], found: Sequence[Place]) -> set[int]:
    """Keys whose place is at some event before one that they had."""
    highest: dict[int, Place] = defaultdict(lambda: (-1, 0))
    back = set()
    for label, place in zip(labels, found, strict=True):
        if place < highest[label.row["id"]]:
            back.add(label.row["id"])
        highest[label.row["id"]] = max(highest[label.row["id"]], place)
    return back


def _rows(rows: Any) -> Rows:  # noqa: ANN401 - a view of rows
    return sorted(tuple(dict(row).values()) for row in rows)
