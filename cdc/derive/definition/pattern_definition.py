"""Read a definition of kind pattern."""

import json
from hashlib import sha256

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.front_matter import FrontMatter, key_problems
from cdc.derive.pattern.pattern import read_pattern
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.tables import TableId


def pattern_definition(
    report: Reporter, table: TableId, front: FrontMatter, text: str
) -> tuple[Definition | None, list[Problem]]:
    """Return the definition of the text, or its problems.

    Its rows have no key unless one is given: which columns tell matches apart does not show.
    """
    try:
        read, problems = read_pattern(report, text, front.bounds)
    except RecursionError:
        remedy = "define more variables with a condition each"
        return None, [report.at(0, "an expression is nested too deeply", remedy)]
    if read is None:
        return None, problems
    wrong = key_problems(report.file, front, read.outputs)
    if wrong:
        return None, wrong
    key = tuple(front.key)
    return Definition(
        table=table,
        file=report.file,
        doc=front.doc,
        refresh=front.refresh,
        key=key,
        inputs=(read.table,),
        columns=read.outputs,
        duckdb=read.duckdb,
        postgres="",
        hash=sha256(json.dumps([read.text, key]).encode()).hexdigest(),
        pattern=read.pattern,
        places=(read.place,),
    ), []
