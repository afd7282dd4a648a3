"""Chooses what calculates a whole query, and loads what is to be compared with the table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import load, row_count
from cdc.derive.engine.large import Large, NotBySparkError
from cdc.derive.step.judged import query_at
from cdc.derive.step.limits import Limits
from cdc.errors import CdcError, ErrorKind
from cdc.tables import TableId

_BY_SPARK: Final = "wal2lake_by_spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeQuery:
    """Holds the query for a definition's rows in a database; ``refused`` is why Spark gave none."""

    text: str
    engine: str = "local"  # or "spark"
    refused: str = ""


def load_whole(
    database: Calculator,
    definition: Definition,
    inputs: Mapping[TableId, Input],
    opened: Mapping[TableId, DeltaTable],
    large: Large | None,
) -> WholeQuery:
    """Load the inputs, or the rows that Spark gives where the inputs are large."""
    refused = ""
    if large is not None and large.takes(definition, sum(map(row_count, opened.values()))):
        try:
            with large.result(definition, inputs) as result:
                database.keep(_BY_SPARK, result.rows())
            return WholeQuery(text=result.query(_BY_SPARK), engine="spark")
        except NotBySparkError as error:
            refused = str(error)
    load(database, opened, definition)
    return WholeQuery(text=query_at(definition, opened), refused=refused)


def refuse_large(
    definition: Definition, inputs: Iterable[DeltaTable], limits: Limits, why: str
) -> None:
    """Raise TABLE_STOPPED for a table that is not to be calculated as a whole over so many rows."""
    if definition.refresh != "incremental":
        return
    total = sum(map(row_count, inputs))
    if total > limits.full_rows:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"its inputs have {total:,} rows, and it can only be calculated as a whole: {why}",
            remedy="set refresh: full in the definition, or raise derived.full_rows",
        )
