"""Writes and reads what a derived table's newest commit says: which definition, at which cut.

The mark is in the commit that has the rows, so both are there or neither is. Every commit of
upkeep repeats it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from deltalake import DeltaTable

from cdc.derive.engine.input import Input
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.commit_info import commit_info
from cdc.lake.table.positions import MARK
from cdc.tables import TableId

USER_METADATA: Final = "userMetadata"
"""Spark and delta-rs show it in a table's history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Says of which definition, cut and inputs a derived table's rows are."""

    definition: str  # hash
    cut: int
    epoch: int
    lsn: int | None
    inputs: Mapping[str, int] = field(default_factory=dict)  # table -> version
    ids: Mapping[str, str] = field(default_factory=dict)  # table -> its identity
    columns: Mapping[str, str] = field(default_factory=dict)  # name -> type in DuckDB's words
    cost: Mapping[str, Any] = field(default_factory=dict)  # of the step: the facts of a Cost
    late: Mapping[str, Any] = field(default_factory=dict)  # of a table of late rows: its LateState
    admitted: Sequence[Mapping[str, Any]] = ()
    """The late rows that count from this commit on: how many, why, and who asked for it when."""
    log: Mapping[str, Any] = field(default_factory=dict)
    """Of a history: how far it has the log, and since when (cdc/derive/history_step/reach.py)."""

    @classmethod
    def at(cls, definition: str, row: LedgerRow, inputs: Mapping[TableId, Input]) -> "Mark":
        """Return the mark of a definition's hash at the cut of ``row``, with these inputs."""
        versions = {str(table): one.version for table, one in inputs.items()}
        return cls(
            definition=definition, cut=row.cut, epoch=row.epoch, lsn=row.lsn, inputs=versions
        )

    def metadata(self) -> str:
        """Return the JSON text for a commit's ``userMetadata``."""
        return json.dumps({MARK: 1, "derived": 1, **asdict(self)})

    def is_of(self, table: DeltaTable) -> bool:
        """Return whether the table's rows are of the same definition, with the same types.

        A table whose newest commit is somebody else's has rows of no definition.
        """
        facts = mark_facts(table)
        return bool(facts) and (facts["definition"], list(facts["columns"].items())) == (
            self.definition,
            list(self.columns.items()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Says of what a table's rows are: the inputs, their identities, the types of the columns."""

    inputs: Mapping[TableId, int]
    ids: Mapping[TableId, str]
    columns: Mapping[str, str]


def origin(table: DeltaTable, definition: str) -> Origin | None:
    """Return of what the table's rows are; None if they are of another definition, or of none."""
    facts = mark_facts(table)
    if facts.get("definition") != definition:
        return None
    versions = {TableId.parse(name): version for name, version in facts["inputs"].items()}
    ids = {TableId.parse(name): one for name, one in facts.get("ids", {}).items()}
    return Origin(inputs=versions, ids=ids, columns=facts["columns"])


def log_facts(table: DeltaTable) -> dict[str, Any]:
    """Return the reach of a history; nothing if the table is none, or somebody else's."""
    return dict(mark_facts(table).get("log", {}))


def is_of_definition(table: DeltaTable, mark: Mark) -> bool:
    """Return whether the table's rows are of the mark's definition."""
    return mark_facts(table).get("definition") == mark.definition


def is_derived(table: DeltaTable) -> bool:
    """Return whether the table's newest commit is one of a derived table."""
    return bool(mark_facts(table))


def facts_of(commit: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the mark of a commit of the table's history says; nothing if it has none."""
    try:
        facts = json.loads(str(commit.get(USER_METADATA)))
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) and facts.get("derived") == 1 else {}


def mark_facts(table: DeltaTable) -> dict[str, Any]:
    """Return what the mark at the table's version says; nothing if it is somebody else's commit."""
    return facts_of(commit_info(table))
