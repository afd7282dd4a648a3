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
    """Return the definition that the query is or reads, and that is no query, if there is one."""
    kinds = (definition.pattern, definition.fold, definition.history)
    if any(kind is not None for kind in kinds):
        return definition
    below = (beyond_sql(known[table], known) for table in definition.inputs if table in known)
    return next((one for one in below if one is not None), None)


def _alias(table: exp.Table) -> exp.TableAlias:
    name = exp.to_identifier(table.alias_or_name, quoted=True)
    return exp.TableAlias(this=name)
