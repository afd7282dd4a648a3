"""Compare two tables of the lake row by row, by all of their values, as multisets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deltalake import DeltaTable

from cdc.derive.engine.calculator import Calculator, calculator
from cdc.derive.engine.digest import digest
from cdc.derive.engine.inputs import columns, rows
from cdc.derive.step.limits import Limits
from cdc.events.names import OURS
from cdc.events.values.sql_text import postgres_name

FIRST_KEYS: Final = 10
_BUILT, _SERVED, _DIFFERING = '"built"', '"served"', '"differing"'
_SURPLUS: Final = '"_cdc_surplus"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Says how a served table differs from one that was built anew."""

    missing: int = 0  # rows that were built and are not served
    extra: int = 0  # rows that are served only
    keys: Sequence[Mapping[str, Any]] = ()  # the first of both, in order
    columns: str = ""  # how the columns differ, and nothing was counted; empty if they do not

    @property
    def equal(self) -> bool:
        """Return whether both have the same rows."""
        return not (self.missing or self.extra or self.columns)


def likeness(
    built: DeltaTable, served: DeltaTable, key: Sequence[str], allowed: Limits
) -> Likeness:
    """Compare two tables; rows are named by the key, and without one by all of their columns."""
    ours, theirs = _typed(built), _typed(served)
    if ours != theirs:
        return Likeness(columns=f"it has ({ours}), and the served table ({theirs})")
    with calculator(allowed.memory_mb, allowed.scratch) as database:
        for name, table in ((_BUILT, built), (_SERVED, served)):
            database.keep(name, rows(table, columns(table)))
        return _counted(database, key or columns(built))


def _typed(table: DeltaTable) -> str:
    fields = [one for one in table.schema().fields if not one.name.startswith(OURS)]
    return ", ".join(f"{one.name} {getattr(one.type, 'type', 'array')}" for one in fields)


def _counted(database: Calculator, key: Sequence[str]) -> Likeness:
    row = digest(database.outputs(f"SELECT * FROM {_BUILT}"))  # noqa: S608 - our name
    listed = ", ".join(map(postgres_name, key))
    sides = " UNION ALL ".join(
        f"SELECT {listed}, {row} AS _cdc_row, {sign} AS {_SURPLUS} FROM {name}"  # noqa: S608
        for name, sign in ((_BUILT, 1), (_SERVED, -1))
    )
    some = ", ".join(f"any_value({name}) AS {name}" for name in map(postgres_name, key))
    database.run(
        f"CREATE TABLE {_DIFFERING} AS SELECT {some}, sum({_SURPLUS}) AS {_SURPLUS} "  # noqa: S608
        f"FROM ({sides}) GROUP BY _cdc_row HAVING sum({_SURPLUS}) <> 0"
    )
    return Likeness(
        missing=_sum(database, f"greatest({_SURPLUS}, 0)"),
        extra=_sum(database, f"greatest(-{_SURPLUS}, 0)"),
        keys=database.rows(
            f"SELECT DISTINCT {listed} FROM {_DIFFERING} ORDER BY ALL LIMIT {FIRST_KEYS}"  # noqa: S608
        ).to_pylist(),
    )


def _sum(database: Calculator, expression: str) -> int:
    ((found,),) = database.values(f"SELECT coalesce(sum({expression}), 0) FROM {_DIFFERING}")  # noqa: S608
    return int(str(found))
