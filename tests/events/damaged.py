"""Random events of recorded tables, some of them lost, broken or of another table."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from cdc.events import avro
from cdc.tables import TableId
from tests.events.recorded import Message, recording, table_topic
from tests.events.source import LARGE, SCHEMA_ID, TABLE, Source, act, envelope

MARK: Final = "no-value-of-the-source"


def damaged(messages: Sequence[Message], random: Random) -> list[Message]:
    """Leave some out, and put garbage, other tables' and lossy events in their places."""
    texts = recording("tables").schemas
    found = []
    for message in messages:
        chance = random.random()
        value = message.value
        if chance < 0.05:
            continue
        if chance < 0.10:
            value = random.choice([b"", b"garbage", b"\0\0\0\xff\xffx", b"\0\0\0\0\x7f", value])
        elif chance < 0.13:
            after = {"id": random.randrange(12), "n": 1, **dict.fromkeys(LARGE)}
            bad = random.choice(
                [
                    envelope(TableId("public", "other"), "u", before=None, after=after),
                    envelope(TABLE, "x", before=None, after=after),
                    envelope(TABLE, "u", before=None, after=None),
                    envelope(TABLE, "u", before=None, after={**after, "bigia": [None]}),
                    {
                        **envelope(TABLE, "u", before=None, after=after),
                        "transaction": {"id": "x:1", "total_order": 1, "data_collection_order": 1},
                    },
                ]
            )
            value = avro.encode(texts[SCHEMA_ID], SCHEMA_ID, bad)
        found.append(replace(message, value=value))
    return found


def keyed_messages(random: Random) -> list[Message]:
    source = Source(placeholder=MARK)
    for _ in range(700):
        act(source, random, range(12))
        if random.random() < 0.004:
            source.truncate()
    return damaged(source.messages(), random)


def keyless_messages(random: Random) -> list[Message]:
    """Random changes of a table without a key; some delete rows that do not exist."""
    found = []
    for offset in range(400):
        rows = [{"x": random.randrange(4), "y": random.choice([None, "", "a"])} for _ in "ba"]
        op = random.choice("cccuudr") if random.random() < 0.99 else "t"
        before = rows[0] if op in "ud" and random.random() < 0.97 else None
        after = rows[1] if op in "cur" and random.random() < 0.97 else None
        value = envelope(TableId("public", "no_key"), op, before=before, after=after)
        data = avro.encode(recording("tables").schemas[131], 131, value)
        found.append(Message(topic=table_topic("no_key"), offset=offset, key=None, value=data))
    return found
