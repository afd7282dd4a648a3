"""Define what a file of a derived table declares."""

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from cdc.derive.fold.fold import Fold
from cdc.derive.history.history import History
from cdc.derive.late.rule import LateRule
from cdc.derive.pattern.pattern import Pattern
from cdc.derive.sql.problem import Place
from cdc.tables import TableId

Refresh = Literal["incremental", "auto", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Describes a derived table: its name, its query and how it is kept."""

    table: TableId
    file: str  # as it was given, for messages
    doc: str
    refresh: Refresh
    key: tuple[str, ...]  # empty: rows are counted as a multiset
    inputs: tuple[TableId, ...]  # distinct, in order of first use
    columns: tuple[str, ...]  # of the output, in order
    duckdb: str
    postgres: str  # empty for what the source cannot calculate: patterns, folds, histories
    hash: str  # of query and key: comments, layout, doc and refresh do not change it
    pattern: Pattern | None = None  # whose matches ``duckdb`` reads
    query: exp.Query | None = field(default=None, compare=False, repr=False)
    """What ``duckdb`` and ``postgres`` are printed from; None for patterns, folds and histories."""
    fold: Fold | None = None  # whose states or faults ``duckdb`` reads
    late: LateRule | None = None  # which rows are late, and which windows are final
    late_rows: LateRule | None = None  # of the table that has the late rows, which has no query
    is_timed: bool = False  # it names cut_time(): each cut has another
    history: History | None = None  # of its only input; ``duckdb`` says its columns alone
    places: tuple[Place, ...] = field(default=(), compare=False)  # of the first use of each input

    def reads(self, table: TableId) -> bool:
        """Return whether the rows of an input are read, and not its watermark alone."""
        return self.late is None or table != self.late.rows or self.late.policy == "aside"

    @property
    def is_of_events(self) -> bool:
        """Return whether it is made of the log's events: a history, or late rows.

        The log may no longer have all that they had; all other rows follow from the inputs.
        """
        return self.history is not None or self.late_rows is not None
