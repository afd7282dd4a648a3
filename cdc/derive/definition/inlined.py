"""Write a derived table's query so that it names captured tables only, as the source has them."""

from collections.abc import Mapping

from sqlglot import exp, parse_one

from cdc.derive.definition.definition import Definition
from cdc.tables import TableId


def inlined(definition: Definition, known: Mapping[TableId, Definition]) -> str:
    """Return the query for Postgres; each derived input is a subquery in it."""
    tree = parse_one(definition.postgres, read="postgres")
    for table in list(tree.find_all(exp.Table)):
        below = known.get(TableId(table.db, table.name))
        if below is not None:
            query = parse_one(inlined(below, known), read="postgres")
            table.replace(exp.Subquery(this=query, alias=_alias(table)))
    return tree.sql("postgres")


def beyond_sql(definition: Definition, known: Mapping[TableId, Definition]) -> Definition | None:
    """Return the definition that the query is or reads, and for which it cannot be written.

    That is no query, or has late rows. That some rows are final can be written, for the table whose
    rows they are.
    """
    late = definition.late
    kinds = (definition.pattern, definition.fold, definition.history, definition.late_rows)
    if any(kind is not None for kind in kinds):
        return definition
    if late is not None and late.policy == "aside":
        return definition
    read = [known[t] for t in definition.inputs if t in known and definition.reads(t)]
    below = (one if one.late is not None else beyond_sql(one, known) for one in read)
    return next((one for one in below if one is not None), None)


def _alias(table: exp.Table) -> exp.TableAlias:
    name = exp.to_identifier(table.alias_or_name, quoted=True)
    return exp.TableAlias(this=name)
