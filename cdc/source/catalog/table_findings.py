"""Find what is wrong with the patterns, the relations that match them, and their columns."""

import re
from dataclasses import replace
from typing import Final

from cdc.events.names import (
    RefusedName,
    case_twins,
    column_refusals,
    table_collisions,
    table_refusal,
)
from cdc.events.structure.declared import SourceColumn
from cdc.source.catalog.pg_class import Relation
from cdc.source.server.finding import Finding
from cdc.tables import TableId, matches

_WILD: Final = re.compile(r"[*?\[]")
_KINDS: Final = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "p": "a partitioned table (name its partitions instead)",
}


def unmatched(patterns: list[str], tables: list[TableId]) -> list[Finding]:
    """Refuse each pattern that matches no table."""
    return [
        Finding.error(
            pattern,
            "this pattern in source.tables matches no table that the role can see",
            remedy="correct the pattern, or create the table first; names are case-sensitive",
        )
        for pattern in patterns
        if not any(matches(table, [pattern]) for table in tables)
    ]


def not_a_table(relation: Relation, patterns: list[str]) -> Finding:
    """Warn about a relation that a wildcard matches, refuse one that is named literally."""
    subject = str(relation.table)
    named = any(pattern == subject and not _WILD.search(pattern) for pattern in patterns)
    message = f"is {_KINDS[relation.kind]}: the WAL holds no changes under its name"
    make = Finding.error if named else Finding.warning
    return make(subject, message, remedy="remove it from source.tables")


def unfit(relation: Relation) -> list[Finding]:
    """Refuse a table without WAL, and one of which the role cannot read every row."""
    subject = str(relation.table)
    problems = (
        (
            relation.persistence != "p",
            "is unlogged or temporary: its changes are not in the WAL",
            f"ALTER TABLE {subject} SET LOGGED, or remove it from source.tables",
        ),
        (
            not relation.readable,
            "the role may not read it",
            f"GRANT SELECT ON {subject} to the role",
        ),
        (
            relation.row_security,
            "row security applies to the role, so the snapshot would miss rows",
            "ALTER ROLE ... BYPASSRLS, or connect as the table's owner",
        ),
    )
    return [
        Finding.error(subject, message, remedy=remedy)
        for has_problem, message, remedy in problems
        if has_problem
    ]


def bad_names(table: TableId, columns: tuple[SourceColumn, ...]) -> list[Finding]:
    """Refuse names that Kafka, Avro, Spark or Delta reject, or that would collide there."""
    of_table = table_refusal(table)
    of_columns = column_refusals(table, [column.name for column in columns])
    refusals = [*([of_table] if of_table else []), *of_columns]
    return [_refused(refusal) for refusal in refusals]


def _refused(refusal: RefusedName) -> Finding:
    finding = Finding.error(str(refusal.table), refusal.reason, remedy=refusal.remedy)
    return replace(finding, table=refusal.table)


def shared_names(relations: list[Relation]) -> list[Finding]:
    """Report tables whose names collide; the finding names the table created later."""
    by_age = sorted(relations, key=lambda relation: relation.oid)
    tables = [relation.table for relation in by_age]
    refused = [replace(_refused(refusal), of_new=True) for refusal in table_collisions(tables)]
    twins = [
        Finding.warning(
            str(later),
            f"its name differs from {earlier} only in case: Spark's catalogue, and disks that "
            "ignore case, take them for one table",
            remedy="rename one of them if you use such a catalogue or disk",
        )
        for earlier, later in case_twins(tables)
    ]
    return refused + twins


def without_columns(subject: str, columns: tuple[SourceColumn, ...]) -> list[Finding]:
    """Refuse a table without columns, or without any that can be captured.

    The first kind makes the connector fail. Of the second kind the lake would never have a row.
    """
    if any(column.arrives for column in columns):
        return []
    lack = "no column that can be captured" if columns else "no columns"
    return [
        Finding.error(
            subject,
            f"has {lack}",
            remedy="remove it from source.tables, or add a column to it",
        )
    ]


def column_findings(
    subject: str, columns: tuple[SourceColumn, ...], key: tuple[str, ...]
) -> list[Finding]:
    """Refuse a key with a column that does not arrive; warn about all others with a reason."""
    findings = []
    for column in columns:
        name = f"{subject}.{column.name}"
        if not column.arrives and column.name in key:
            findings.append(
                Finding.error(
                    name,
                    f"is part of the key and will not arrive: {column.reason}",
                    remedy="choose another key, or remove the table from source.tables",
                )
            )
        elif not column.arrives:
            findings.append(Finding.warning(name, f"will not arrive: {column.reason}"))
        elif column.reason:
            findings.append(Finding.warning(name, f"arrives, but {column.reason}"))
    return findings
