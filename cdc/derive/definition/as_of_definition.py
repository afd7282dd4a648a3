"""Let the definitions read histories where they ask for tables as they were."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from sqlglot import exp

from cdc.derive.as_of.choosing import Declared, Histories, UnkeptError
from cdc.derive.as_of.rewriting import Rewriting
from cdc.derive.definition.definition import Definition
from cdc.derive.late.rule import Bound
from cdc.derive.sql import printing
from cdc.derive.sql.nodes import AS_OF
from cdc.derive.sql.problem import Place, Problem
from cdc.tables import TableId


def over_histories(
    definitions: Sequence[Definition], refused: Collection[str]
) -> tuple[list[Definition], list[Problem]]:
    """Return the definitions, of which none asks for a table as it was, and the problems.

    Those of ``refused`` files, and those with a problem, stay as they are.
    """
    histories = _histories(definitions)
    read, problems = [], []
    for one in definitions:
        try:
            asks = one.file not in refused and _asks(one)
            read.append(_rewritten(one, histories) if asks else one)
        except UnkeptError as error:
            read.append(one)
            problems.append(Problem(one.file, *error.place, error.what, error.remedy))
    return read, problems


def _histories(definitions: Sequence[Definition]) -> Histories:
    return Histories(
        declared={
            one.table: Declared(of=one.inputs[0], track=one.history.track)
            for one in definitions
            if one.history is not None
        },
        others={one.table for one in definitions if one.history is None},
    )


def _asks(definition: Definition) -> bool:
    query = definition.query
    return query is not None and any(AS_OF in table.args for table in query.find_all(exp.Table))


def _rewritten(definition: Definition, histories: Histories) -> Definition:
    assert definition.query is not None  # noqa: S101 - it asks for something
    written = Rewriting(definition.query, histories)
    _refuse_aside(definition, written)
    text = printing.postgres(written.tree)
    inputs = dict(_inputs(definition, written))
    return replace(
        definition,
        query=written.tree,
        duckdb=printing.duckdb(written.tree),
        postgres=text,
        inputs=tuple(inputs),
        places=tuple(inputs.values()),
        hash=sha256(json.dumps([definition.hash, text]).encode()).hexdigest(),
    )


def _inputs(definition: Definition, written: Rewriting) -> Iterator[tuple[TableId, Place]]:
    """Yield the inputs: a history has the place of the table that it stands for."""
    gone = {old for old, _ in written.moved} - written.tables
    for table, place in zip(definition.inputs, definition.places, strict=True):
        yield from ((new, place) for old, new in written.moved if old == table)
        if table not in gone:
            yield table, place


def _refuse_aside(definition: Definition, written: Rewriting) -> None:
    """Refuse windows whose late rows would be put aside from a table that is not read."""
    late = definition.late
    if late is not None and late.policy == "aside" and late.table in written.by_rows:
        place = dict(zip(definition.inputs, definition.places, strict=True))[late.table]
        what = f"late: policy: aside takes the rows of {late.table}, and AS OF _commit its history"
        raise UnkeptError(place, what, "write AS OF a column with the time, or policy: keep")
    if late is not None and late.policy == "aside" and isinstance(late.window, Bound):
        what = f"late: policy: aside of {late.table}, which is joined, is refused beside AS OF"
        raise UnkeptError(definition.places[-1], what, "derive one over the other, or policy: keep")
