"""Finds derived tables that the lake still has and no cut: their definitions are gone."""

from collections.abc import Iterator, Mapping

from pyarrow import fs

from cdc.derive.step.mark import is_derived, mark_facts
from cdc.lake.files.store_of import store_of
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.positions import open_table

Inputs = Mapping[str, frozenset[str]]
"""The tables that a derived table was made of, by its name."""


def left_over(lake: str, row: LedgerRow) -> Inputs:
    """Return the derived tables below the lake's path that the cut does not have."""
    found = {}
    for name, path in _tables(lake):
        table = None if row.readable(name) is not None else open_table(path)
        if table is not None and is_derived(table):
            found[name] = frozenset(mark_facts(table)["inputs"])
    return found


def reached(names: frozenset[str], inputs: Inputs) -> list[str]:
    """Return the tables that were made of one of these, or of another that was."""
    found: set[str] = set()
    while more := {one for one in inputs if inputs[one] & (names | found)} - found:
        found |= more
    return sorted(found)


def _tables(lake: str) -> Iterator[tuple[str, str]]:
    """Yield the name and path of each place where the lake may have a table."""
    for schema in _folders(lake):
        for table in _folders(f"{lake}/{schema}"):
            yield f"{schema}.{table}", f"{lake}/{schema}/{table}"


def _folders(path: str) -> list[str]:
    listed = store_of(path).tree.get_file_info(fs.FileSelector("", allow_not_found=True))
    return [one.base_name for one in listed if one.type == fs.FileType.Directory]
