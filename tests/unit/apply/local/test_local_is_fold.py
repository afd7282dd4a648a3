"""Applying without Spark gives the rows of the reference, wherever batches end."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.apply.local.decode import TableDecoder
from cdc.events import avro
from cdc.events.envelope import change_event
from cdc.events.fold import fold, fold_multiset
from cdc.events.schema import TableSchema, table_schema_from_avro
from cdc.tables import TableId, TableMode
from tests.events.local_lake import LocalLake
from tests.events.recorded import Message, recording, table_topic, unchanged_by
from tests.events.source import SCHEMA_ID, TABLE, Source, act, envelope, legal_ends

PLACEHOLDER = "no-value-of-the-source"
SCHEMAS = {SCHEMA_ID: recording("tables").schemas[SCHEMA_ID]}
TOASTY = table_schema_from_avro(SCHEMAS[SCHEMA_ID], table=TABLE, key=("id",), mode=TableMode.KEYED)
NO_KEY_ID = 131
NO_KEY_SCHEMAS = {NO_KEY_ID: recording("tables").schemas[NO_KEY_ID]}


def no_key(mode: TableMode) -> TableSchema:
    table = TableId("public", "no_key")
    return table_schema_from_avro(NO_KEY_SCHEMAS[NO_KEY_ID], table=table, key=(), mode=mode)


TOASTY_DECODER = TableDecoder(SCHEMAS, TOASTY, placeholder=PLACEHOLDER)
RANDOMS = st.randoms(use_true_random=False)


def split(messages: Sequence[Message], ends: Iterable[int]) -> list[Sequence[Message]]:
    places = sorted({0, len(messages), *(end for end in ends if end < len(messages))})
    return [messages[a:b] for a, b in pairwise(places)]


@settings(max_examples=150, deadline=None)
@given(random=RANDOMS, steps=st.integers(1, 60), ends=st.sets(st.integers(1, 60), max_size=5))
def test_keyed_tables_with_unchanged_values_moves_and_truncates(
    random: Random, steps: int, ends: set[int]
) -> None:
    source = Source(placeholder=PLACEHOLDER)
    for _ in range(steps):
        act(source, random, range(5))
        if random.random() < 0.02:
            source.truncate()
    lake = LocalLake(schema=TOASTY, decoder=TOASTY_DECODER)

    for batch in split(source.messages(), legal_ends(source, ends)):
        lake.apply(batch)

    expected = fold(source.events(), ("id",), unchanged_by(PLACEHOLDER))
    assert {row["id"]: row for row in lake.values()} == source.rows
    assert {key[0]: dict(row) for key, row in expected.items()} == source.rows
    assert lake.refused == {}
    ops = Counter(value["op"] for _, value in source.log)
    at = lake.position
    counted = (at.inserts, at.updates, at.deletes, at.reads, at.truncates)
    assert counted == (ops["c"], ops["u"], ops["d"], ops["r"], ops["t"])
    assert at.rows_applied == len(source.log)


def without_key(random: Random, steps: int) -> list[Message]:
    """Return random changes of a table without a key, in which rows occur several times."""
    rows: list[dict[str, Any]] = []
    messages = []
    for offset in range(steps):
        new = {"x": random.randrange(3), "y": random.choice([None, "", "a"])}
        kind = random.choice("iiiuuddt" if random.random() < 0.1 else "iiud") if rows else "i"
        old = None if kind in "it" else rows.pop(random.randrange(len(rows)))
        after = None if kind in "dt" else new
        rows = [] if kind == "t" else rows + ([after] if after else [])
        op = {"i": "c"}.get(kind, kind)
        value = envelope(TableId("public", "no_key"), op, before=old, after=after)
        data = avro.encode(NO_KEY_SCHEMAS[NO_KEY_ID], NO_KEY_ID, value)
        messages.append(Message(topic=table_topic("no_key"), offset=offset, key=None, value=data))
    return messages


@settings(max_examples=100, deadline=None)
@given(random=RANDOMS, steps=st.integers(1, 50), ends=st.sets(st.integers(1, 50), max_size=4))
def test_tables_without_a_key_are_multisets(random: Random, steps: int, ends: set[int]) -> None:
    schema = no_key(TableMode.MULTISET)
    lake = LocalLake(
        schema=schema, decoder=TableDecoder(NO_KEY_SCHEMAS, schema, placeholder=PLACEHOLDER)
    )
    messages = without_key(random, steps)

    for batch in split(messages, ends):
        lake.apply(batch)

    recorded = recording("tables")
    events = [change_event(m.topic, m.offset, recorded.decoded(m.value) or {}) for m in messages]
    assert Counter(tuple(row.items()) for row in lake.values()) == fold_multiset(events)
    assert lake.refused == {}
    by_digest = Counter(digest for digest, _ in lake.by_key)
    assert {copy for _, copy in lake.by_key} <= set(
        range(1, max(by_digest.values(), default=0) + 1)
    )
    assert lake.by_key.keys() == {(d, n + 1) for d, held in by_digest.items() for n in range(held)}


@settings(max_examples=50, deadline=None)
@given(random=RANDOMS, steps=st.integers(1, 30), ends=st.sets(st.integers(1, 30), max_size=3))
def test_tables_of_inserts_only_refuse_everything_else(
    random: Random, steps: int, ends: set[int]
) -> None:
    schema = no_key(TableMode.APPEND)
    lake = LocalLake(
        schema=schema, decoder=TableDecoder(NO_KEY_SCHEMAS, schema, placeholder=PLACEHOLDER)
    )
    messages = without_key(random, steps)

    for batch in split(messages, ends):
        lake.apply(batch)

    recorded = recording("tables")
    values = {m.offset: recorded.decoded(m.value) or {} for m in messages}
    added = [value["after"] for value in values.values() if value["op"] == "c"]
    assert lake.values() == added
    assert lake.refused.keys() == {at for at, value in values.items() if value["op"] != "c"}
    assert lake.position.rows_applied == len(added)


def test_keys_that_are_swapped_and_passed_on_keep_their_large_values() -> None:
    """Through a third one, and in a chain; with the rows inserted in the batch, or before it."""
    source = Source(placeholder=PLACEHOLDER)
    for key in (1, 2, 5):
        source.insert(key, key, key)
    first = len(source.log)
    for old, new in ((1, 0), (2, 1), (0, 2), (5, 7), (7, 8), (8, 5)):
        source.rekey(old, new, {"big": None} if old == 7 else {})
    messages = source.messages()
    together, apart = (LocalLake(schema=TOASTY, decoder=TOASTY_DECODER) for _ in range(2))

    together.apply(messages)
    apart.apply(messages[:first])
    apart.apply(messages[first:])

    for lake in (together, apart):
        assert {row["id"]: row for row in lake.values()} == source.rows
        assert lake.refused == {}
