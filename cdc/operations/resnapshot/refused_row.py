"""Converts the texts of a reading, and parts its rows: those that the lake can hold, and others."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc.operations.resnapshot.arrow_values import ArrowRows, arrow_rows
from cdc.operations.resnapshot.target import Target


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """Records a row that the lake cannot hold: its key, as JSON, and the reason."""

    key: str
    reason: str


def converted(texts: pa.Table, target: Target) -> tuple[pa.Table, list[RefusedRow]]:
    """Return the rows in the columns of the lake's table, and those that it cannot hold."""
    followed = target.structure.followed
    made = arrow_rows(texts, [c.column for c in followed], [c.pg for c in followed])
    return parted(made, target.schema.key)


def parted(made: ArrowRows, key: Sequence[str]) -> tuple[pa.Table, list[RefusedRow]]:
    """Return the rows that can be kept, and the others; ``key`` names the columns of the key."""
    if made.reasons.null_count == len(made.reasons):
        return made.rows, []
    there = pc.is_valid(made.reasons)
    keys = made.rows.select(list(key)).filter(there).to_pylist()
    if not keys:  # a table without a key has a list of no names
        keys = [{} for _ in range(pc.sum(there).as_py())]
    reasons = made.reasons.filter(there).to_pylist()
    texts = ({name: _text(value) for name, value in one.items()} for one in keys)
    refused = [RefusedRow(json.dumps(t), r) for t, r in zip(texts, reasons, strict=True)]
    return made.rows.filter(pc.is_null(made.reasons)), refused


def _text(value: Any) -> str | None:  # noqa: ANN401 - of any type of the lake
    return None if value is None else str(value)
