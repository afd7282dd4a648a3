"""Represent change events as plain values from decoded envelopes, as the oracle reads them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.transactions import txid_of

Row = Mapping[str, Any]
OLD_KEY: Final = "__debezium.oldkey"
"""The header of the create that is the second half of a change of a key."""
NEW_KEY: Final = "__debezium.newkey"
"""The header of the delete that is the first half, and of its tombstone."""


class Op(Enum):
    """Says what an event did, as the connector's letter."""

    READ = "r"  # found by a snapshot
    CREATE = "c"
    UPDATE = "u"
    DELETE = "d"
    TRUNCATE = "t"


FULL_IMAGE = frozenset({Op.READ, Op.CREATE, Op.DELETE})
"""After one of these, older events of its key no longer matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """Holds one event of one table. A tombstone is not one: it only tells Kafka what to forget."""

    topic: str
    offset: int
    op: Op
    key: Row | None = None
    before: Row | None = None
    after: Row | None = None
    lsn: int | None = None
    txid: int | None = None
    schema: str = ""
    table: str = ""
    moved: bool = False
    """Whether this create is the second half of a key's change; the delete before is the first."""

    @property
    def image(self) -> Row | None:
        """Return the row that the event is about; None for a truncate."""
        if self.op is Op.DELETE:
            return self.before if self.before is not None else self.key
        return self.after


def change_event(
    topic: str,
    offset: int,
    value: Mapping[str, Any],
    key: Row | None = None,
    headers: Iterable[str] = (),
) -> ChangeEvent:
    """Return the event in a decoded envelope, or raise BAD_EVENT if it is not a change event.

    ``key`` is the decoded key; ``headers`` are the names of the message's headers.
    """
    try:
        source = value["source"]
        transaction = value.get("transaction")
        return ChangeEvent(
            topic=topic,
            offset=offset,
            op=Op(value["op"]),
            key=_unhoisted(key),
            before=value.get("before"),
            after=value.get("after"),
            lsn=source.get("lsn"),
            txid=txid_of(transaction["id"]) if transaction else None,
            schema=source["schema"],
            table=source["table"],
            moved=OLD_KEY in headers,
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _not_an_event(topic, offset) from None


def _not_an_event(topic: str, offset: int) -> CdcError:
    return CdcError(
        ErrorKind.BAD_EVENT,
        f"a message of {topic} is not a change event",
        detail=f"offset {offset}",
        remedy="stop any other program that writes to the connector's topics",
    )


def _unhoisted(key: Row | None) -> Row | None:
    """Return the key's record if the connector wrapped it in a field ``key``."""
    if key is not None and set(key) == {"key"} and (key["key"] is None or _is_row(key["key"])):
        return None if key["key"] is None else dict(key["key"])
    return key


def _is_row(value: object) -> bool:
    return isinstance(value, Mapping)
