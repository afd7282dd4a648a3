"""Read the definitions of a folder."""

import json
from hashlib import sha256
from pathlib import Path

from sqlglot import exp

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.front_matter import FrontMatter, front_matter, key_problems
from cdc.derive.definition.pattern_definition import pattern_definition
from cdc.derive.sql import printing
from cdc.derive.sql.columns import columns, key_of_groups
from cdc.derive.sql.inputs import inputs
from cdc.derive.sql.normal import normalized
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.derive.sql.statement import statement
from cdc.derive.sql.tree import tree_problems
from cdc.tables import CONTROL_SCHEMA, TableId

Read = tuple[Definition | None, list[Problem]]


def read_definitions(folder: Path) -> tuple[list[Definition], list[Problem]]:
    """Read every ``*.sql`` in the folder, sorted by name; a missing folder has none.

    A file with a problem gives no definition.
    """
    definitions = []
    problems = []
    for path in sorted(folder.glob("*.sql")):
        definition, found = _read(path)
        problems.extend(found)
        if definition is not None:
            definitions.append(definition)
    return definitions, problems


def _read(path: Path) -> Read:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        what = f"it cannot be read: {str(error.strerror).lower()}"
        return None, [Problem(str(path), 1, 1, what, "make the file readable")]
    except UnicodeDecodeError:
        return None, [Problem(str(path), 1, 1, "it is not text in UTF-8", "save it as UTF-8")]
    return read_definition(str(path), path.name, text)


def read_definition(file: str, name: str, text: str) -> Read:
    """Read one definition from its text; ``name`` is the file's name without its folder."""
    table = table_of(name)
    if table is None:
        remedy = f"call it <schema>.<table>.sql; the schema {CONTROL_SCHEMA} is taken"
        return None, [Problem(file, 1, 1, "the file's name names no table", remedy)]
    front, problems = front_matter(file, text)
    report = Reporter(file, text)
    if front.kind == "pattern":
        definition, wrong = pattern_definition(report, table, front, text)
        return (None if problems else definition), sorted([*problems, *wrong])
    query, unread = statement(report, text)
    problems += unread
    if query is None:
        return None, sorted(problems)
    try:
        problems += tree_problems(report, query)
        return (
            (None, sorted(set(problems))) if problems else _definition(report, table, front, query)
        )
    except RecursionError:
        return None, [report.at(0, "the query is nested too deeply", "split it by WITH")]


def table_of(name: str) -> TableId | None:
    """Return the table that a file of this name derives; None if it names none."""
    parts = name.removesuffix(".sql").split(".")
    if len(parts) != len(("schema", "table")) or not all(parts) or parts[0] == CONTROL_SCHEMA:
        return None
    return TableId(*parts)


def _definition(report: Reporter, table: TableId, front: FrontMatter, query: exp.Query) -> Read:
    names, problems = columns(report, query)
    places, wrong = inputs(report, query)
    problems += [*wrong, *key_problems(report.file, front, names)]
    if problems:
        return None, sorted(problems)
    normal = normalized(query)
    key = tuple(front.key) or key_of_groups(normal)
    text = printing.postgres(normal)
    return Definition(
        table=table,
        file=report.file,
        doc=front.doc,
        refresh=front.refresh,
        key=key,
        inputs=tuple(places),
        columns=names,
        duckdb=printing.duckdb(normal),
        postgres=text,
        hash=sha256(json.dumps([text, key]).encode()).hexdigest(),
        query=normal,
        places=tuple(places.values()),
    ), []
