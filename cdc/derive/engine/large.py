"""Defines how queries over many rows are calculated as a whole outside this process.

Another engine calculates, and the committer of derived tables commits what it gives, as it commits
what is calculated here: the meaning, the digests of rows and the commits are the same.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import rows
from cdc.derive.engine.output_types import Output
from cdc.lake.files.delta import delta_table
from cdc.tables import TableId


class NotBySparkError(Exception):
    """Says why Spark cannot calculate a query, or not with its meaning."""


@dataclass(frozen=True, slots=True)
class Result:
    """Gives the rows of a query, at ``path``, and the types that they have in the lake."""

    path: str
    outputs: Sequence[Output]

    def query(self, name: str) -> str:
        """Return what selects the columns from a table ``name`` that has ``rows``."""
        columns = (f"{column(n)}::{o.type} AS {o.quoted}" for n, o in enumerate(self.outputs))
        return f"SELECT {', '.join(columns)} FROM {name}"  # noqa: S608 - our names

    def rows(self) -> pa.RecordBatchReader:
        """Return a stream of the rows."""
        return rows(delta_table(self.path), [column(n) for n in range(len(self.outputs))])


class Large(Protocol):
    """Calculates queries over many rows."""

    def takes(self, definition: Definition, count: int) -> bool:
        """Return whether it is to calculate this over so many rows."""

    def result(
        self, definition: Definition, inputs: Mapping[TableId, Input]
    ) -> AbstractContextManager[Result]:
        """Give the rows of a query that it takes; they are deleted after the block.

        Raises NotBySparkError, and CONFIG for a query that does not fit its inputs.
        """


def column(number: int) -> str:
    """Return the name that a column has at the path, by its place: any name can be selected."""
    return f"c{number}"
