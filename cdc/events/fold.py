"""What the lake must hold after any list of events: the meaning of a change, in plain Python.

This is the oracle. Everything fast is compared with it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from cdc.events.envelope import ChangeEvent, Op, Row
from cdc.events.order import in_order

Unchanged = Callable[[Any], bool]
"""Whether a value only says that it did not change."""


class UnknownValueError(Exception):
    """An unchanged value of a row that is not there."""


def fold(
    events: Iterable[ChangeEvent], key: Sequence[str], unchanged: Unchanged = lambda _: False
) -> dict[tuple[Any, ...], Row]:
    """Rows by key after the events of one table, in the order of their offsets.

    An offset seen before (a duplicate, a replayed prefix) changes nothing. A change of the key is
    a delete and, next, a create that is ``moved``: what it leaves out is the deleted row's.
    """
    rows: dict[tuple[Any, ...], Row] = {}
    gone: Row = {}
    for event in in_order(events):
        if event.op is Op.TRUNCATE:
            rows.clear()
            gone = {}
            continue
        image = event.image or {}
        identity = tuple(image[name] for name in key)
        if event.op is Op.DELETE:
            gone = rows.pop(identity, {})
            continue
        known = gone if event.moved else {}
        old = rows.get(identity, {}) if event.op is Op.UPDATE else known
        rows[identity] = {name: _known(image, old, name, unchanged) for name in image}
        gone = {}
    return rows


def fold_multiset(events: Iterable[ChangeEvent]) -> Counter[tuple[tuple[str, Any], ...]]:
    """Copies by row, for a table without a key; events carry whole rows before and after."""
    copies: Counter[tuple[tuple[str, Any], ...]] = Counter()
    for event in in_order(events):
        if event.op is Op.TRUNCATE:
            copies.clear()
        if event.op in {Op.UPDATE, Op.DELETE} and event.before is not None:
            copies[tuple(event.before.items())] -= 1
        if event.op in {Op.READ, Op.CREATE, Op.UPDATE} and event.after is not None:
            copies[tuple(event.after.items())] += 1
    return +copies


def _known(image: Row, old: Row, name: str, unchanged: Unchanged) -> Any:  # noqa: ANN401
    if not unchanged(image[name]):
        return image[name]
    if name not in old:
        raise UnknownValueError(name)
    return old[name]
