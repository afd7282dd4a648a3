"""The queries of Nexmark and TPC-H as definitions, over tables of some size that change."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from bench.core.sizes import Sizes
from bench.derived.market import Market
from bench.derived.refreshed import Warehouse
from bench.derived.table_rows import TableRows
from cdc.derive.definition.definition import Definition
from tests.suites.kept import classes, defined
from tests.suites.nexmark import queries as nexmark
from tests.suites.tpch import queries as tpch


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A set of queries; ``make`` makes its tables from a seed."""

    name: str
    queries: Mapping[str, str]
    make: Callable[[int, Sizes], Market | Warehouse]

    @cached_property
    def definitions(self) -> Mapping[str, Definition]:
        """The definition of each query that is not refused."""
        return defined(self.queries)

    def kept(self, tables: Mapping[str, TableRows]) -> dict[str, str]:
        """Return how each query is kept: by which scope key, why as a whole, or why refused."""
        return classes(self.queries, {name: one.rows.schema for name, one in tables.items()})


NEXMARK: Final = Suite(
    name="Nexmark",
    queries=nexmark.QUERIES,
    make=lambda seed, sizes: Market(seed, sizes.derived_events),
)
TPCH: Final = Suite(
    name="TPC-H",
    queries=tpch.QUERIES,
    make=lambda seed, sizes: Warehouse(seed, sizes.derived_scale),
)
SUITES: Final = (NEXMARK, TPCH)
