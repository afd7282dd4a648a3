"""Spark calculates the tables of Nexmark and TPC-H as they are after their last change."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.client.derived.by_spark import compare_in_spark
from cdc.derive.engine.input import Input
from cdc.tables import TableId
from tests.suites.kept import Schemas, World, defined, kept_through
from tests.suites.nexmark import events
from tests.suites.nexmark.queries import QUERIES as NEXMARK
from tests.suites.tpch import tables
from tests.suites.tpch.queries import QUERIES as TPCH

_SHAPES: Final = ("q4", "q5", "q6", "q9", "q11", "q14", "q15", "q21", "q22")


def differing(
    spark: SparkSession,
    folder: Path,
    queries: dict[str, str],
    schemas: Schemas,
    worlds: Iterable[World],
) -> dict[str, str]:
    """Return what Spark finds wrong with the last rows of the tables."""
    definitions = defined(queries)
    for _, found in kept_through(folder, definitions, schemas, worlds):
        entries = found
    inputs = {
        TableId("shop", name): Input(path, DeltaTable(path).version())
        for name in schemas
        for path in [f"{folder}/lake/shop/{name}"]
    }
    verdicts = {}
    for name, definition in definitions.items():
        stored = Input(entries[name].path, entries[name].version)
        own = {table: inputs[table] for table in definition.inputs}
        verdicts[name] = compare_in_spark(spark, definition, own, stored)
    return {name: str(verdict) for name, verdict in verdicts.items() if not verdict.equal}


def test_shapes_of_nexmark(spark: SparkSession, tmp_path: Path) -> None:
    """Joins, windows that hop, neighbours, ranks, sessions, filters, decimals and parts of text."""
    shapes = {name: NEXMARK[name] for name in _SHAPES}
    worlds = events.cuts(seed=11, count=2)

    assert differing(spark, tmp_path, shapes, events.SCHEMAS, worlds) == {}


@pytest.mark.deep
def test_tpch(spark: SparkSession, tmp_path: Path) -> None:
    schemas, worlds = tables.schemas(0.002), tables.cuts(0.002, seed=11, count=2)

    assert differing(spark, tmp_path, TPCH, schemas, worlds) == {}


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_all_of_nexmark(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    worlds = events.cuts(seed=seed, count=6, scale=4)

    assert differing(spark, tmp_path, NEXMARK, events.SCHEMAS, worlds) == {}
