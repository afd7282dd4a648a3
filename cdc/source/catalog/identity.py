"""Decide how the rows of a table are identified, and so how its events become rows."""

from dataclasses import dataclass

from cdc.source.server.finding import Finding
from cdc.tables import TableMode


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaIdentity:
    """Holds a table's replica identity and keys, as Postgres has them.

    ``primary_key`` is empty if it is deferrable, because such a key may be duplicated for a while.
    """

    replica: str  # pg_class.relreplident
    primary_key: tuple[str, ...]
    index: tuple[str, ...]  # of REPLICA IDENTITY USING INDEX

    @property
    def key(self) -> tuple[str, ...]:
        """Return the columns that identify a row; empty if there are none."""
        return self.primary_key or (self.index if self.replica == "i" else ())


def mode_of(
    subject: str, identity: ReplicaIdentity, *, append: bool
) -> tuple[TableMode, list[Finding]]:
    """Return the table's mode, and the findings about its identity.

    A table without a key is refused, unless it has REPLICA IDENTITY FULL or ``append`` is chosen.
    """
    if identity.replica == "n":
        return TableMode.KEYED, [_nothing(subject)]
    if identity.key:
        return TableMode.KEYED, _mismatch(subject, identity)
    if append:
        return TableMode.APPEND, _append(subject, identity)
    if identity.replica == "f":
        return TableMode.MULTISET, []
    return TableMode.KEYED, [_no_key(subject)]


def _no_key(subject: str) -> Finding:
    return Finding.error(
        subject,
        "has no usable primary key (none, or a deferrable one): once it is published, "
        "Postgres refuses every UPDATE and DELETE on it",
        remedy=f"add a primary key; or ALTER TABLE {subject} REPLICA IDENTITY FULL to capture it "
        "as a multiset of rows; or name it in source.append_only to capture inserts only",
    )


def _nothing(subject: str) -> Finding:
    return Finding.error(
        subject,
        "has REPLICA IDENTITY NOTHING: updates and deletes would not arrive",
        remedy=f"ALTER TABLE {subject} REPLICA IDENTITY DEFAULT (with a primary key) or FULL",
    )


def _mismatch(subject: str, identity: ReplicaIdentity) -> list[Finding]:
    """Refuse an index that lacks key columns: a delete then carries only the index's columns."""
    if identity.replica != "i" or set(identity.primary_key) <= set(identity.index):
        return []
    if not identity.primary_key:
        return []
    return [
        Finding.error(
            subject,
            "its replica identity is an index without the columns of its primary key",
            remedy=f"ALTER TABLE {subject} REPLICA IDENTITY DEFAULT",
        )
    ]


def _append(subject: str, identity: ReplicaIdentity) -> list[Finding]:
    if identity.replica == "f":
        return []
    return [
        Finding.warning(
            subject,
            "is captured as inserts only; once it is published, Postgres refuses every UPDATE and "
            "DELETE on it",
            remedy=f"ALTER TABLE {subject} REPLICA IDENTITY FULL, if the application needs them",
        )
    ]
