"""Compare what the configuration asks for with what is captured now: what apply-config would do.

Everything here is pure: the actual and the wanted state go in, the differences come out.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

RELOADED: Final = (
    "source.append_only",
    "source.as_text",
    "source.columns",
    "source.schema_changes",
    "source.tables",
    "derived.",
    "job.",
)
"""Configuration keys, or prefixes of them, that a running job reloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFinding:
    """Says why something cannot be captured, and what to do about it."""

    subject: str  # a table, a column, a pattern, a role
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Names a column that will not arrive in the lake, and the reason."""

    column: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTable:
    """Describes a table of the source that the configured patterns match."""

    table: str  # schema.table
    mode: str  # TableMode
    key: tuple[str, ...] = ()
    rows: int | None = None  # an estimate; None if Postgres has no statistics yet
    bytes: int = 0  # on the source's disk
    left_out: tuple[LeftOut, ...] = ()
    refused: tuple[PlanFinding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTable:
    """Describes a table that is wanted and not captured yet."""

    table: WantedTable
    replaces: bool  # the lake has an old Delta table of it, which the new reading replaces


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedTable:
    """Names a captured table that is no longer wanted. Its Delta table stays as it is."""

    table: str
    bytes: int | None  # of the Delta table's newest version; None where there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """Describes the actual state of the pipeline."""

    captured: frozenset[str]  # the connector's tables; empty until the first snapshot is over
    ledger: Mapping[str, bool] | None  # by table: are its rows in the lake? None before any cut
    lake: Mapping[str, int] = field(default_factory=dict)  # bytes of the existing Delta tables
    publication: frozenset[str] | None  # None: there is no publication
    topics: frozenset[str]
    settings: Mapping[str, str]  # the connector's; empty without a connector
    job: Mapping[str, str]  # digests of the keys the job runs with; empty if not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Describes the state that the configuration asks for."""

    tables: tuple[WantedTable, ...]
    publication: frozenset[str]
    topics: frozenset[str]
    settings: Mapping[str, str]
    job: Mapping[str, str]
    refused: tuple[PlanFinding, ...] = ()  # refusals that belong to no table
    warned: tuple[PlanFinding, ...] = ()  # warnings, which do not keep anything from being done


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Lists how the actual state differs from the wanted one; tables are in order of name."""

    begun: bool  # False: nothing is captured yet, and ``up`` will capture everything
    added: tuple[AddedTable, ...]
    removed: tuple[RemovedTable, ...]
    unread: tuple[str, ...]  # captured tables whose rows are not in the lake
    unfit: tuple[PlanFinding, ...]  # captured tables that cannot be followed: only these stop
    refused: tuple[PlanFinding, ...]  # why ``apply-config`` would refuse to begin
    warned: tuple[PlanFinding, ...] = ()
    makes_publication: bool
    publish: tuple[str, ...]
    topics: tuple[str, ...]
    settings: tuple[str, ...]  # names of the connector's settings that change
    reload: tuple[str, ...]  # changed keys that the running job reloads
    restart: tuple[str, ...]  # changed keys that take effect only after ``down`` and ``up``

    @property
    def fit(self) -> bool:
        """Return whether every wanted table can be followed."""
        return not (self.refused or self.unfit)

    @property
    def empty(self) -> bool:
        """Return whether ``apply-config`` would change nothing."""
        changes = (
            *(self.added, self.removed, self.unread),
            *(self.publish, self.topics, self.settings, self.reload),
        )
        return not any(changes)


def compare(now: Now, wanted: Wanted) -> Plan:
    """Return what has to change so that the actual state becomes the wanted one."""
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
        unread=tuple(unread_tables(now.ledger, (each.table for each in old if not each.refused))),
        unfit=tuple(refusal for each in old for refusal in each.refused),
        refused=(*wanted.refused, *(refusal for each in new for refusal in each.refused)),
        warned=wanted.warned,
        makes_publication=now.publication is None,
        publish=tuple(sorted(wanted.publication - (now.publication or frozenset()))),
        topics=tuple(sorted(wanted.topics - now.topics)),
        settings=tuple(_different(now.settings, wanted.settings)),
        reload=reload,
        restart=restart,
    )


def unread_tables(ledger: Mapping[str, bool] | None, captured: Iterable[str]) -> Iterator[str]:
    """Yield the captured tables whose rows are not in the lake.

    ``ledger`` says for each table at the newest cut whether its rows are in the lake. Without a
    ledger the first snapshot is still under way, and no table counts as unread.
    """
    if ledger is not None:
        yield from (table for table in captured if not ledger.get(table, False))


def is_reloaded(key: str) -> bool:
    """Return whether a running job reloads this configuration key."""
    return key.startswith(RELOADED)


def _keys(
    runs: Mapping[str, str], wanted: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys that differ from those the job runs with: the reloaded ones, the others."""
    if not runs:
        return (), ()
    changed = _different(runs, wanted)
    reload = tuple(key for key in changed if is_reloaded(key))
    return reload, tuple(key for key in changed if not is_reloaded(key))


def _different(one: Mapping[str, str], other: Mapping[str, str]) -> Collection[str]:
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
