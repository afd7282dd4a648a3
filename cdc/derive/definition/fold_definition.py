"""Read the two definitions of a file of kind fold: the states, and the faults beside them."""

import json
from dataclasses import replace
from hashlib import sha256

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.file_names import faults_of
from cdc.derive.definition.fold_header import HEADER, FoldHeader, fold_header
from cdc.derive.fold.fold import DETAIL, FAULT, FAULTS, STATES, VERSION, Fold
from cdc.derive.fold.module import Module, canonical, read_module
from cdc.derive.fold.purity import purity_problems
from cdc.derive.fold.shape import shape_problems
from cdc.derive.sql.problem import Place, Problem
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId


def fold_definitions(
    file: str, table: TableId, text: str
) -> tuple[list[Definition], list[Problem]]:
    """Return the definitions of the table and of its faults, or the problems of the text."""
    module, problems = read_module(file, text)
    if module is None:
        return [], problems
    header, node, problems = fold_header(module)
    problems += [*shape_problems(module), *purity_problems(module)]
    if header is None or problems:
        return [], sorted(set(problems))
    states = _states(module, table, header, module.place(node))
    return [states, _faults(states, header)], []


def _states(module: Module, table: TableId, header: FoldHeader, place: Place) -> Definition:
    columns = (*header.stream, VERSION, *header.columns)
    return Definition(
        table=table,
        file=module.file,
        doc=header.doc,
        refresh=header.refresh,
        key=tuple(header.stream),
        inputs=(header.table,),
        columns=columns,
        duckdb=_query(columns, STATES),
        postgres="",
        hash=_hash(module, header),
        fold=Fold(
            stream=tuple(header.stream),
            version=header.version,
            first=header.first,
            columns=header.state,
            code=module.code,
        ),
        places=(place,),
    )


def _faults(states: Definition, header: FoldHeader) -> Definition:
    columns = (*header.stream, VERSION, FAULT, DETAIL)
    return replace(
        states,
        table=faults_of(states.table),
        doc=f"What is wrong with the events of {states.table}.",
        key=(*header.stream, VERSION, FAULT),
        columns=columns,
        duckdb=_query(columns, FAULTS),
        hash=sha256(f"{states.hash} {FAULTS}".encode()).hexdigest(),
    )


def _query(columns: tuple[str, ...], table: str) -> str:
    listed = ", ".join(map(postgres_name, columns))
    return f"SELECT {listed} FROM {postgres_name(table)}"  # noqa: S608 - quoted names


def _hash(module: Module, header: FoldHeader) -> str:
    facts = [header.events, header.stream, header.version, header.first]
    types = [[column.name, str(column.type)] for column in header.state]
    text = json.dumps([*facts, types, canonical(module, HEADER)])
    return sha256(text.encode()).hexdigest()
