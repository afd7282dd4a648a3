"""Read a definition of kind history."""

import json
from hashlib import sha256

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.front_matter import FrontMatter, behind_front_matter
from cdc.derive.history.history import OWN, History
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId


def history_definition(
    report: Reporter, table: TableId, front: FrontMatter, text: str
) -> tuple[Definition | None, list[Problem]]:
    """Return the definition, or its problems; nothing may stand behind the front matter."""
    start = behind_front_matter(text)
    if text[start:].strip():
        at = start + len(text[start:]) - len(text[start:].lstrip())
        remedy = "remove it: the columns are those of the table"
        return None, [report.at(at, "a history has no query", remedy)]
    if front.table is None:
        return None, []  # said of the front matter
    of = TableId.parse(front.table)
    return Definition(
        table=table,
        file=report.file,
        doc=front.doc,
        refresh=front.refresh,
        key=(),
        inputs=(of,),
        columns=(),
        duckdb=_query(of, front.track),
        postgres="",
        hash=sha256(json.dumps(["history", front.table, front.track]).encode()).hexdigest(),
        history=History(track=tuple(front.track)),
        places=((1, 1),),
    ), []


def _query(of: TableId, track: list[str]) -> str:
    """Return a query that has the columns of the history, and needs those that are tracked."""
    needed = ", ".join(f"{name} AS {name}" for name in map(postgres_name, track))
    columns = f"* REPLACE ({needed})" if track else "*"
    own = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in OWN.items())
    source = f"{postgres_name(of.schema)}.{postgres_name(of.name)}"
    return f"SELECT {columns}, {own} FROM {source}"  # noqa: S608 - quoted names
