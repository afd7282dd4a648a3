"""What ``apply-config`` would do: the configuration's tables compared with what is captured now.

Pure: what is there and what is wanted go in, the differences come out.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

RELOADED: Final = (
    "source.append_only",
    "source.as_text",
    "source.schema_changes",
    "source.tables",
    "job.",
)
"""Keys of the configuration, or beginnings of them, that a running job takes over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What keeps something from being taken in, and what to do about it."""

    subject: str  # a table, a column, a pattern, a role
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A column that will not arrive."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTable:
    """A table that the patterns name, as the source has it."""

    table: str  # schema.table
    mode: str  # TableMode
    key: tuple[str, ...] = ()
    rows: int | None = None  # about; None where Postgres has not counted them yet
    bytes: int = 0  # on the source's disk
    left_out: tuple[LeftOut, ...] = ()
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTable:
    """``replaces`` tells of a Delta table from an earlier time: the new reading takes its place."""

    table: WantedTable
    replaces: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedTable:
    """Its Delta table stays as it is."""

    table: str
    bytes: int | None  # of the Delta table's newest version; None where there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """What there is."""

    captured: frozenset[str]  # the connector's; empty before its first snapshot is over
    ledger: Mapping[str, bool] | None  # table at the newest cut: is it read? None before the first
    lake: Mapping[str, int] = field(default_factory=dict)  # bytes of the Delta tables there are
    published: frozenset[str] | None  # None: there is no publication
    topics: frozenset[str]
    settings: Mapping[str, str]  # the connector's; empty without one
    job: Mapping[str, str]  # digests of the keys the job runs with; empty where not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the configuration asks for."""

    tables: tuple[WantedTable, ...]
    published: frozenset[str]
    topics: frozenset[str]
    settings: Mapping[str, str]
    job: Mapping[str, str]
    refused: tuple[Refusal, ...] = ()  # that belong to no table
    warned: tuple[Refusal, ...] = ()  # what keeps nothing from being done


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The differences; tables in order of their names."""

    begun: bool  # False: nothing is captured yet, and ``up`` takes all in
    added: tuple[AddedTable, ...]
    removed: tuple[RemovedTable, ...]
    unread: tuple[str, ...]  # captured, and their rows are not in the lake
    unfit: tuple[Refusal, ...]  # of captured tables: they stop, and nothing else does
    refused: tuple[Refusal, ...]  # what ``apply-config`` would not begin with
    warned: tuple[Refusal, ...] = ()
    makes_publication: bool
    publish: tuple[str, ...]
    topics: tuple[str, ...]
    settings: tuple[str, ...]  # names of the connector's settings that change
    reload: tuple[str, ...]  # keys that the job takes over
    restart: tuple[str, ...]  # keys that count after ``down`` and ``up`` only

    @property
    def fit(self) -> bool:
        """Whether every table that is wanted can be followed."""
        return not (self.refused or self.unfit)

    @property
    def empty(self) -> bool:
        """Whether ``apply-config`` would change nothing."""
        changes = (
            *(self.added, self.removed, self.unread),
            *(self.publish, self.topics, self.settings, self.reload),
        )
        return not any(changes)


def compare(now: Now, wanted: Wanted) -> Plan:
    """What has to change for the wanted to be there."""
    names = {each.table for each in wanted.tables}
    new = [each for each in wanted.tables if each.table not in now.captured]
    old = [each for each in wanted.tables if each.table in now.captured]
    reload, restart = _keys(now.job, wanted.job)
    return Plan(
        begun=bool(now.captured),
        added=tuple(AddedTable(table=each, replaces=each.table in now.lake) for each in new),
        removed=tuple(
            RemovedTable(table=name, bytes=now.lake.get(name))
            for name in sorted(now.captured - names)
        ),
        unread=tuple(unread(now.ledger, (each.table for each in old if not each.refused))),
        unfit=tuple(refusal for each in old for refusal in each.refused),
        refused=(*wanted.refused, *(refusal for each in new for refusal in each.refused)),
        warned=wanted.warned,
        makes_publication=now.published is None,
        publish=tuple(sorted(wanted.published - (now.published or frozenset()))),
        topics=tuple(sorted(wanted.topics - now.topics)),
        settings=tuple(_different(now.settings, wanted.settings)),
        reload=reload,
        restart=restart,
    )


def unread(ledger: Mapping[str, bool] | None, captured: Iterable[str]) -> Iterator[str]:
    """Captured tables whose rows are not in the lake; none while the first snapshot is not."""
    if ledger is not None:
        yield from (table for table in captured if not ledger.get(table, False))


def is_reloaded(key: str) -> bool:
    return key.startswith(RELOADED)


def _keys(
    runs: Mapping[str, str], wanted: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keys that differ from those the job runs with: to be reloaded, and for a new start."""
    if not runs:
        return (), ()
    found = _different(runs, wanted)
    reload = tuple(key for key in found if is_reloaded(key))
    return reload, tuple(key for key in found if not is_reloaded(key))


def _different(one: Mapping[str, str], other: Mapping[str, str]) -> Collection[str]:
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
