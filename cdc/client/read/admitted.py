"""Tells which changes of a derived table are late rows that were admitted, and why.

Such a change is a commit of its own, with the reason in its mark.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from cdc.derive.definition.file_names import late_of
from cdc.derive.engine.calculator import Calculator
from cdc.derive.step.mark import facts_of
from cdc.events.values.sql_text import postgres_name, postgres_string
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.positions import open_table
from cdc.tables import TableId

ADMITTED: Final = "_cdc_admitted"
"""The column that says why a change corrects final rows; NULL of every other change."""


def has_late(table: str, row: LedgerRow) -> bool:
    """Return whether a derived table of the cut has late rows, which may be admitted."""
    entry = row.derived_entry(table)
    return entry is not None and row.derived_entry(str(late_of(TableId.parse(table)))) is not None


def reasons(path: str, after: int, upto: int) -> Mapping[int, str]:
    """Return the versions behind ``after`` that admitted rows, oldest first, each with why."""
    found = {}
    # At its newest version: delta-rs numbers the commits of an older one wrongly.
    table = open_table(path)
    for commit in reversed(table.history() if table else []):
        version = int(commit["version"])
        said = [str(one["reason"]) for one in facts_of(commit).get("admitted", ())]
        if said and after < version <= upto:
            found[version] = "; ".join(dict.fromkeys(said))
    return found


def told(database: Calculator, side: str, why: Mapping[int, str]) -> str:
    """Return ADMITTED for the rows of a side, as SQL; ``side_version`` are those of a commit."""
    names = [name for name, _ in database.types(f"SELECT * FROM {side}")]  # noqa: S608 - our names
    cases = "".join(_cases(side, names, why))
    return f"CASE{cases} END AS {ADMITTED}" if cases else f"CAST(NULL AS VARCHAR) AS {ADMITTED}"


def _cases(side: str, names: list[str], why: Mapping[int, str]) -> Iterator[str]:
    for version, reason in reversed([*why.items()]):
        same = " AND ".join(
            f"a.{name} IS NOT DISTINCT FROM {side}.{name}" for name in map(postgres_name, names)
        )
        there = f"SELECT TRUE FROM {side}_{version} AS a WHERE {same}"  # noqa: S608 - our names
        yield f" WHEN EXISTS ({there}) THEN {postgres_string(reason)}"
