"""The import rule: pure code knows no engine, DataFrame code never runs one.

Pure modules import the standard library, pydantic, parsers (yaml, fastavro, sqlglot, pyroaring) and
each other. DataFrame modules add pyspark.sql and neither read, write nor run anything. All other
modules are edges; the command line and the jobs are on top and no module imports them.
"""

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PURE = (
    "cdc",
    "cdc.config.*",
    "cdc.errors",
    "cdc.tables",
    "cdc.events.*",
    "cdc.observe.causes",
    "cdc.observe.hop_motion",
    "cdc.state.atomic_file",
    "cdc.state.file_lock",
    "cdc.state.untrusted_json",
    "cdc.state.operation",
    "cdc.state.requests",
    "cdc.kafka.same_topic",
    "cdc.lake.commit.deletion_vector",
    "cdc.lake.commit.log_entry",
    "cdc.lake.commit.protocol",
    "cdc.lake.commit.replay",
    "cdc.lake.commit.table_metadata",
    "cdc.lake.commit.z85",
    "cdc.lake.table.merge_plan",
    "cdc.lake.table.row_hash",
    "cdc.source.connector.failure",
    "cdc.source.predicate.constants",
    "cdc.source.predicate.kinds",
    "cdc.source.predicate.operand",
    "cdc.source.predicate.parse",
    "cdc.source.predicate.predicate",
    "cdc.source.predicate.tree_reader",
    "cdc.source.predicate.texts",
    "cdc.source.rows.hstore",
    "cdc.source.rows.masking",
    "cdc.source.rows.spelling",
    "cdc.apply.changes.arrays",
    "cdc.apply.changes.casts",
    "cdc.apply.changes.columns",
    "cdc.apply.changes.conversion",
    "cdc.apply.changes.failures",
    "cdc.apply.changes.from_avro",
    "cdc.apply.changes.intervals",
    "cdc.apply.changes.lacking",
    "cdc.apply.changes.postgres_text",
    "cdc.apply.changes.postgres_times",
    "cdc.apply.changes.reasons",
    "cdc.apply.changes.scalars",
    "cdc.apply.changes.unchanged",
    "cdc.apply.local.avro_reader",
    "cdc.apply.local.change",
    "cdc.apply.local.changed_keys",
    "cdc.apply.local.decode",
    "cdc.apply.local.identity",
    "cdc.apply.local.lake_rows",
    "cdc.apply.local.multiset",
    "cdc.apply.local.not_local",
    "cdc.apply.local.reduce",
    "cdc.apply.local.row_reader",
    "cdc.apply.rounds.whole_transactions",
    "cdc.apply.rounds.stuck_transaction",
    "cdc.apply.refused.too_many_refused",
    "cdc.derive.as_of.*",
    "cdc.derive.definition.*",
    "cdc.derive.fold.*",
    "cdc.derive.history.*",
    "cdc.derive.late.*",
    "cdc.derive.log.decoding",
    "cdc.derive.log.ends",
    "cdc.derive.log.event",
    "cdc.derive.log.filled",
    "cdc.derive.log.lacking",
    "cdc.derive.pattern.*",
    "cdc.derive.spark.*",
    "cdc.derive.sql.*",
    "cdc.operations.resnapshot.text_forms",
    "cdc.client.plan",
    "cdc.client.read.at",
    "cdc.client.selection",
)
FRAMES = (
    "cdc.apply.changes.decode",
    "cdc.apply.changes.reduce",
    "cdc.apply.difference.row_difference",
    "cdc.operations.resnapshot.values",
)
TOP = ("cdc.cli", "cdc.__main__", "jobs")

ENGINES = frozenset({"pyspark", "delta", "deltalake", "psycopg", "confluent_kafka", "httpx"})
PARSERS = frozenset({"yaml", "fastavro", "sqlglot", "pyroaring"})
PURE_LIBRARIES = frozenset({"pydantic", "pydantic_core"}) | PARSERS | sys.stdlib_module_names
RUNS = frozenset({"read", "readStream", "write", "writeTo", "writeStream"})
RUNS_WHEN_CALLED = frozenset(
    {
        "checkpoint",
        "collect",
        "count",
        "first",
        "foreach",
        "foreachPartition",
        "head",
        "isEmpty",
        "localCheckpoint",
        "show",
        "tail",
        "take",
        "toArrow",
        "toLocalIterator",
        "toPandas",
    }
)


# Each module is imported by a child of its own that has nothing but the parsers loaded.
LOADED = """
import importlib, json, os, sys
for name in sys.argv[2:]:
    importlib.import_module(name)
for name in json.loads(sys.argv[1])["modules"]:
    if not (child := os.fork()):
        importlib.import_module(name)
        print(name, *set(sys.modules) & set(json.loads(sys.argv[1])["engines"]), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{name} cannot be imported")
"""


@functools.cache
def modules() -> dict[str, Path]:
    found = {}
    for path in sorted([*ROOT.glob("cdc/**/*.py"), *ROOT.glob("jobs/**/*.py")]):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def listed(name: str, patterns: tuple[str, ...]) -> bool:
    return any(
        name == pattern or (pattern.endswith(".*") and f"{name}.".startswith(pattern[:-1]))
        for pattern in patterns
    )


def imports(source: str) -> Iterator[str]:
    """Return the modules imported at any depth; ``from a import b`` names ``a`` and ``a.b``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def foreign(source: str, *, libraries: frozenset[str], own: tuple[str, ...]) -> list[str]:
    """Return the imports of ``source`` that are in neither ``libraries`` nor ``own``."""
    known = modules()
    return [
        name
        for name in imports(source)
        if (name.partition(".")[0] not in libraries and name.partition(".")[0] != "cdc")
        or (name in known and not listed(name, own) and not is_room(name))
    ]


def actions(source: str) -> list[str]:
    """Return the calls that read, write or run a DataFrame; ``F.count`` and its kin do not."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in RUNS:
            found.append(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver = node.func.value
            function = isinstance(receiver, ast.Name) and receiver.id == "F"
            if node.func.attr in RUNS_WHEN_CALLED and not function:
                found.append(node.func.attr)
    return found


def is_top(name: str) -> bool:
    return any(name == top or name.startswith(f"{top}.") for top in TOP)


def is_room(name: str) -> bool:
    """Return whether the module is a folder, which holds only a docstring."""
    return modules()[name].name == "__init__.py"


def pure_modules() -> list[str]:
    return [name for name in modules() if listed(name, PURE)]


def frame_modules() -> list[str]:
    return [name for name in modules() if listed(name, FRAMES)]


def engines_loaded_by(names: list[str]) -> dict[str, list[str]]:
    """Return for each module the engines that its import loads, directly or not."""
    asked = json.dumps({"modules": names, "engines": sorted(ENGINES)})
    ready = sorted(PARSERS | {"pydantic"})
    command = [sys.executable, "-c", LOADED, asked, *ready]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    lines = [line.split() for line in run.stdout.splitlines()]
    return {name: engines for name, *engines in lines}


def test_a_pure_module_loads_no_engine() -> None:
    loaded = engines_loaded_by(pure_modules())

    assert loaded == {name: [] for name in pure_modules()}


def test_the_check_sees_an_engine_that_is_loaded_indirectly() -> None:
    assert engines_loaded_by(["cdc.stack.embedded"])["cdc.stack.embedded"]


@pytest.mark.parametrize("name", pure_modules())
def test_a_pure_module_names_only_pure_ones(name: str) -> None:
    source = modules()[name].read_text()

    assert foreign(source, libraries=PURE_LIBRARIES, own=PURE) == []


@pytest.mark.parametrize("name", frame_modules())
def test_a_dataframe_module_names_only_pure_ones_and_pyspark(name: str) -> None:
    source = modules()[name].read_text()
    libraries = PURE_LIBRARIES | {"pyspark"}

    assert foreign(source, libraries=libraries, own=PURE + FRAMES) == []
    assert [
        found
        for found in imports(source)
        if found.startswith("pyspark") and not found.startswith("pyspark.sql")
    ] == []


@pytest.mark.parametrize("name", frame_modules())
def test_a_dataframe_module_runs_nothing(name: str) -> None:
    assert actions(modules()[name].read_text()) == []


def test_nothing_below_imports_the_command_line_or_a_job() -> None:
    below = {name: path for name, path in modules().items() if not is_top(name)}
    offenders = {
        name: used
        for name, path in below.items()
        if (used := [found for found in imports(path.read_text()) if is_top(found)])
    }

    assert offenders == {}


def test_the_lists_name_modules_that_exist() -> None:
    named = [name.removesuffix(".*") for name in PURE + FRAMES]

    assert [name for name in named if name not in modules()] == []


@pytest.mark.parametrize(
    "source",
    ["import pyspark", "from deltalake import DeltaTable", "def f():\n    import psycopg"],
)
def test_the_check_sees_an_engine_in_a_pure_module(source: str) -> None:
    assert foreign(source, libraries=PURE_LIBRARIES, own=PURE)


def test_the_check_sees_an_edge_in_a_pure_module() -> None:
    edge = "cdc.stack.embedded"

    assert foreign(f"import {edge}", libraries=PURE_LIBRARIES, own=PURE)


@pytest.mark.parametrize("code", ["df.count()", "df.write.save()", "spark.read", "df.collect()"])
def test_the_check_sees_an_action(code: str) -> None:
    assert actions(code)


def test_the_check_knows_a_column_function() -> None:
    assert actions("F.count('*'); F.first(x)") == []
