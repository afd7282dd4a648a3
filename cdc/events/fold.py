"""Compute in plain Python what the lake must hold after a list of events.

This is the oracle, with which every faster implementation is compared.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cdc.events.envelope import ChangeEvent, Op, Row
from cdc.events.order import in_order

Unchanged = Callable[[Any], bool]
"""Tells whether a value is the connector's placeholder for an unchanged value."""


class UnknownValueError(Exception):
    """Names a column that is marked as unchanged in a row that does not exist."""


def fold(
    events: Iterable[ChangeEvent], key: Sequence[str], unchanged: Unchanged = lambda _: False
) -> dict[tuple[Any, ...], Row]:
    """Return the rows by key after the events of one table, in the order of their offsets.

    An offset seen before (a duplicate, a replayed prefix) changes nothing. A change of a key is a
    delete followed by a create that is ``moved``; the create's placeholders stand for values of
    the deleted row. Raises UnknownValueError for a placeholder without a row.
    """
    rows: dict[tuple[Any, ...], Row] = {}
    deleted: Row = {}
    for event in in_order(events):
        if event.op is Op.TRUNCATE:
            rows.clear()
            deleted = {}
            continue
        image = event.image or {}
        identity = tuple(image[name] for name in key)
        if event.op is Op.DELETE:
            deleted = rows.pop(identity, {})
            continue
        before_move = deleted if event.moved else {}
        old = rows.get(identity, {}) if event.op is Op.UPDATE else before_move
        rows[identity] = {name: _value(image, old, name, unchanged) for name in image}
        deleted = {}
    return rows


def fold_multiset(events: Iterable[ChangeEvent]) -> Counter[tuple[tuple[str, Any], ...]]:
    """Return the number of copies of each row of a table without a key.

    The events must have whole rows before and after the change.
    """
    copies: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for event in in_order(events):
        if event.op is Op.TRUNCATE:
            copies.clear()
        if event.op in {Op.UPDATE, Op.DELETE} and event.before is not None:
            copies[tuple(event.before.items())] -= 1
        if event.op in {Op.READ, Op.CREATE, Op.UPDATE} and event.after is not None:
            copies[tuple(event.after.items())] += 1
    return +copies


def _value(image: Row, old: Row, name: str, unchanged: Unchanged) -> Any:  # noqa: ANN401
    if not unchanged(image[name]):
        return image[name]
    if name not in old:
        raise UnknownValueError(name)
    return old[name]
