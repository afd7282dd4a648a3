"""The reference (``fold``) keeps its promises for any legal log of a table."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.events.envelope import ChangeEvent, Op
from cdc.events.fold import UnknownValueError, fold, fold_multiset
from tests.events.recorded import recording, table_topic, unchanged_by
from tests.events.source import LARGE, Row, Source, act

PLACEHOLDER = "no-value-of-the-source"
UNCHANGED = unchanged_by(PLACEHOLDER)
KEY = ("id",)

Rows = dict[int, Row]


def history(seed: int, steps: int, *, truncates: bool = True) -> tuple[Source, list[Rows]]:
    """Return a source after at least so many events, and its rows after each of them."""
    random, source = Random(seed), Source(placeholder=PLACEHOLDER)
    states: list[Rows] = []
    while len(source.log) < steps:
        if truncates and random.random() < 0.03:
            source.truncate()
        else:
            act(source, random, range(4))
        # A change of key is two events, and both get the rows after the change.
        states += [dict(source.rows)] * (len(source.log) - len(states))
    return source, states


def plain(rows: dict[tuple[Any, ...], Any]) -> Rows:
    """Return the rows of a fold by their id."""
    return {key[0]: dict(row) for key, row in rows.items()}


logs = st.builds(history, st.integers(0, 2**32), st.integers(1, 40))


@given(logs)
def test_the_fold_of_all_events_equals_the_source(log: tuple[Source, list[Rows]]) -> None:
    source, _ = log

    assert plain(fold(source.events(), KEY, UNCHANGED)) == source.rows


@given(logs, st.data())
def test_the_fold_of_a_prefix_equals_the_source_at_that_time(
    log: tuple[Source, list[Rows]], data: st.DataObject
) -> None:
    source, states = log
    events = source.events()
    length = data.draw(st.integers(1, len(events)))
    halved = length < len(events) and _is_key_change(events[length - 1], events[length])

    folded = plain(fold(events[:length], KEY, UNCHANGED))

    expected = states[length - 1]
    if halved:
        after = events[length].after or {}
        expected = {key: row for key, row in expected.items() if key != after["id"]}
    assert folded == expected


def _is_key_change(first: ChangeEvent, second: ChangeEvent) -> bool:
    """Return whether these may be the two events of a changed key.

    A delete followed by an insert of another key looks the same.
    """
    return first.op is Op.DELETE and second.op in {Op.CREATE, Op.READ}


@given(logs, st.data())
def test_events_that_are_delivered_again_change_nothing(
    log: tuple[Source, list[Rows]], data: st.DataObject
) -> None:
    source, _ = log
    events = source.events()
    first = data.draw(st.integers(0, len(events)))
    replayed = data.draw(st.integers(0, first))
    again = [e for e in events[:first] for _ in range(data.draw(st.integers(1, 2)))]

    folded = fold([*again, *events[replayed:]], KEY, UNCHANGED)

    assert plain(folded) == source.rows


def test_an_unchanged_value_of_an_unknown_row_is_an_error() -> None:
    source = Source(placeholder=PLACEHOLDER)
    source.insert(1, 1, 1)
    source.update(1, 2, {})

    with pytest.raises(UnknownValueError, match="big"):
        fold(source.events()[1:], KEY, UNCHANGED)


def test_an_unchanged_value_is_not_taken_from_a_deleted_row_of_the_key() -> None:
    source = Source(placeholder=PLACEHOLDER)
    source.insert(1, 1, 1)
    source.delete(1)
    source.rows[1] = {"id": 1, "n": 1} | {name: make(1) for name, make in LARGE.items()}
    source.update(1, 2, {})

    with pytest.raises(UnknownValueError):
        fold(source.events(), KEY, UNCHANGED)


changes = st.lists(st.tuples(st.sampled_from("iiud"), st.integers(0, 2), st.integers(0, 2)))


@given(changes)
def test_a_table_without_a_key_is_a_multiset(steps: list[tuple[str, int, int]]) -> None:
    rows: Counter[int] = Counter()
    events: list[ChangeEvent] = []
    for kind, old, new in steps:
        op = Op.CREATE if kind == "i" or not rows[old] else Op.UPDATE if kind == "u" else Op.DELETE
        if op is not Op.CREATE:
            rows[old] -= 1
        if op is not Op.DELETE:
            rows[new] += 1
        before = None if op is Op.CREATE else {"x": old}
        after = None if op is Op.DELETE else {"x": new}
        events.append(ChangeEvent(topic="t", offset=len(events), op=op, before=before, after=after))

    folded = fold_multiset([*events, *events])

    assert folded == Counter({(("x", x),): n for x, n in rows.items() if n})


@pytest.mark.parametrize(
    ("table", "key"),
    [("customers", "id"), ("orders", "id"), ("full_identity", "id"), ("odd", "A_b")],
)
def test_the_fold_of_recorded_events_has_the_keys_in_postgres(table: str, key: str) -> None:
    recorded = recording("tables")

    rows = fold(recorded.events(table_topic(table)), (key,), unchanged_by(recorded.placeholder))

    expected = {row[key.replace("_", " ")] for row in recorded.expected[table]}
    assert {str(identity[0]) for identity in rows} == expected


def test_the_fold_of_a_recorded_table_without_a_key_equals_postgres() -> None:
    recorded = recording("tables")

    rows = fold_multiset(recorded.events(table_topic("no_key")))

    text = Counter(tuple((name, str(v)) for name, v in row) for row in rows.elements())
    assert text == Counter(tuple(row.items()) for row in recorded.expected["no_key"])
