"""TPC-H's tables under its refresh functions, and with rows of other tables updated. Pure.

RF1 inserts orders with their items, RF2 deletes some: four of five changed rows are theirs.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.derived.table_rows import Change, Changes, TableRows, set_column
from tests.suites.tpch.tables import tables

_HELD_BACK: Final = 0.1
"""The part of the orders that comes later."""
_UPDATED: Final = {
    "supplier": "s_acctbal",
    "customer": "c_acctbal",
    "part": "p_brand",
    "partsupp": "ps_supplycost",
    "orders": "o_orderdate",
    "lineitem": "l_quantity",
}
"""The column of each table that gets values of other rows."""
_PER_ORDER: Final = 5  # rows: the order and about four items


@dataclass
class Warehouse:
    """The rows of all tables as they are now."""

    seed: int
    scale: float
    tables: dict[str, TableRows] = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        made = dict(tables(self.scale))
        keys = made["orders"]["o_orderkey"].to_numpy()
        first = keys[int(len(keys) * (1 - _HELD_BACK))]
        self._later = {
            "orders": made["orders"].filter(pc.field("o_orderkey") >= first),
            "lineitem": made["lineitem"].filter(pc.field("l_orderkey") >= first),
        }
        made["orders"] = made["orders"].filter(pc.field("o_orderkey") < first)
        made["lineitem"] = made["lineitem"].filter(pc.field("l_orderkey") < first)
        self.tables = {name: TableRows(rows) for name, rows in made.items()}

    def changed(self, rows: int) -> Changes:
        """Change about so many rows; raises ValueError if no more orders can come."""
        orders = max(1, rows * 2 // 5 // _PER_ORDER)
        added, changes = self._coming(orders), dict[str, Change]()
        gone = self._going(orders)
        for name, column in _UPDATED.items():
            table, size = self.tables[name], max(1, rows // 5 // len(_UPDATED) // 2)
            left = np.setdiff1d(table.numbers(), gone.get(name, np.empty(0, dtype=np.int64)))
            some = self._random.choice(left, min(size, len(left)), replace=False)
            other = table.at(self._random.choice(left, len(some)))
            parts = [set_column(table.at(some), column, other[column].combine_chunks())]
            parts += [added[name]] if name in added else []
            changes[name] = Change(
                np.append(some, gone.get(name, some[:0])), pa.concat_tables(parts)
            )
        for name, change in changes.items():
            self.tables[name].apply(change)
        return changes

    def _coming(self, orders: int) -> dict[str, pa.Table]:
        """Take the next orders and their items: RF1."""
        coming = self._later["orders"].slice(0, orders)
        if coming.num_rows < orders:
            raise ValueError(f"TPC-H at scale {self.scale} has no more orders to come")
        keys = coming["o_orderkey"].combine_chunks()
        items = self._later["lineitem"].filter(pc.is_in(pc.field("l_orderkey"), keys))
        self._later["orders"] = self._later["orders"].slice(orders)
        return {"orders": coming, "lineitem": items}

    def _going(self, orders: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Return the numbers of some orders and of their items: RF2."""
        found = self._random.choice(self.tables["orders"].numbers(), orders, replace=False)
        keys = self.tables["orders"].at(found)["o_orderkey"].to_numpy()
        items = self.tables["lineitem"]
        theirs = np.isin(items.rows["l_orderkey"].to_numpy(), keys) & items.live
        return {"orders": found, "lineitem": np.flatnonzero(theirs)}
