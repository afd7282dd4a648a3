"""Read the definitions of a folder."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from sqlglot import exp

from cdc.derive.as_of.reading import read_as_of
from cdc.derive.definition.definition import Definition
from cdc.derive.definition.file_names import FOLD, QUERY, tables_of
from cdc.derive.definition.fold_definition import fold_definitions
from cdc.derive.definition.front_matter import FrontMatter, front_matter, key_problems
from cdc.derive.definition.history_definition import history_definition
from cdc.derive.definition.late_definition import with_late
from cdc.derive.definition.pattern_definition import pattern_definition
from cdc.derive.sql import printing
from cdc.derive.sql.columns import columns, key_of_groups
from cdc.derive.sql.cut_time import CutTime
from cdc.derive.sql.inputs import inputs
from cdc.derive.sql.normal import normalize
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.derive.sql.statement import statement
from cdc.derive.sql.tree import tree_problems
from cdc.tables import CONTROL_SCHEMA, TableId

Read = tuple[list[Definition], list[Problem]]


def read_definitions(folder: Path) -> tuple[list[Definition], list[Problem]]:
    """Read every ``*.sql`` and ``*.py`` in the folder, sorted by name; a missing folder has none.

    A file with a problem gives no definition.
    """
    definitions = []
    problems = []
    for path in sorted([*folder.glob(f"*{QUERY}"), *folder.glob(f"*{FOLD}")]):
        read, found = _read(path)
        problems.extend(found)
        definitions.extend(read)
    twice = list(_defined_twice(definitions))
    refused = {problem.file for problem in twice}
    return [one for one in definitions if one.file not in refused], [*problems, *twice]


def _defined_twice(definitions: Sequence[Definition]) -> Iterator[Problem]:
    for one in definitions:
        others = (each for each in definitions if each.table == one.table and each is not one)
        for other in others:
            what = f"{one.table} is defined in {other.file} too"
            yield Problem(one.file, 1, 1, what, "keep one of the two files")


def _read(path: Path) -> tuple[list[Definition], list[Problem]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        what = f"it cannot be read: {str(error.strerror).lower()}"
        return [], [Problem(str(path), 1, 1, what, "make the file readable")]
    except UnicodeDecodeError:
        return [], [Problem(str(path), 1, 1, "it is not text in UTF-8", "save it as UTF-8")]
    return read_file(str(path), path.name, text)


def read_file(file: str, name: str, text: str) -> Read:
    """Read the definitions of a text; ``name`` is the file's name without its folder."""
    if not name.endswith(FOLD):
        return _read_query(file, name, text)
    tables = tables_of(name)
    if not tables:
        return [], [_nameless(file, FOLD)]
    return fold_definitions(file, tables[0], text)


def read_definition(file: str, name: str, text: str) -> tuple[Definition | None, list[Problem]]:
    """Read the definition of the table that a text in SQL is named for, as ``read_file`` does."""
    read, problems = _read_query(file, name, text)
    return (read[-1] if read else None), problems


def _read_query(file: str, name: str, text: str) -> Read:
    """Read the definition of a text in SQL, and before it that of its late rows, if any."""
    tables = tables_of(name)
    if not tables:
        return [], [_nameless(file, QUERY)]
    (table,) = tables
    front, problems = front_matter(file, text)
    report = Reporter(file, text)
    if front.kind != "view":
        read = pattern_definition if front.kind == "pattern" else history_definition
        definition, wrong = read(report, table, front, text)
        problems = sorted([*problems, *wrong])
        return ([] if problems or definition is None else [definition]), problems
    query, unread = statement(report, text)
    problems += unread
    if query is None:
        return [], sorted(problems)
    try:
        problems += read_as_of(report, query) or tree_problems(report, query)
        if problems:
            return [], sorted(set(problems))
        definition, problems = _definition(report, table, front, query)
        return with_late(definition, front, text) if definition is not None else ([], problems)
    except RecursionError:
        return [], [report.at(0, "the query is nested too deeply", "split it by WITH")]


def _nameless(file: str, suffix: str) -> Problem:
    remedy = f"call it <schema>.<table>{suffix}; the schema {CONTROL_SCHEMA} is taken"
    return Problem(file, 1, 1, "the file's name names no table", remedy)


def _definition(
    report: Reporter, table: TableId, front: FrontMatter, query: exp.Query
) -> tuple[Definition | None, list[Problem]]:
    names, problems = columns(report, query)
    places, wrong = inputs(report, query)
    problems += [*wrong, *key_problems(report.file, front, names)]
    if problems:
        return None, sorted(problems)
    normal = normalize(query)
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
        is_timed=normal.find(CutTime) is not None,
        places=tuple(places.values()),
    ), []
