"""Define a fold: which events, in which order, and what it keeps of them."""

from dataclasses import dataclass
from types import CodeType

from cdc.derive.fold.values import Column

VERSION = "version"
"""The column of the state that says which version was applied last, and of the faults."""
FAULT = "fault"
DETAIL = "detail"
STATES = "_cdc_states"
"""The tables that a fold's queries read."""
FAULTS = "_cdc_faults"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Describes a fold over the events of one table; its definition says which table."""

    stream: tuple[str, ...]  # the columns that tell the streams apart
    version: str  # the column that puts the events of a stream in order
    first: int  # the version of the first event of each stream
    columns: tuple[Column, ...]  # of the state
    code: CodeType  # of the file, which has not run
