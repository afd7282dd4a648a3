"""Give a query for Postgres the order of text that the other engines have: that of its bytes."""

from collections.abc import Collection

from sqlglot import exp, parse_one

_ORDERS = (
    exp.Min,
    exp.Max,
    exp.Greatest,
    exp.Least,
    exp.Ordered,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Between,
)


def text_ordered(query: str, texts: Collection[str]) -> str:
    """Return a printed query for Postgres in which ``texts`` are compared by their bytes.

    ``texts`` names the columns that are text wherever the query has them, those of its subqueries
    included. Equality and grouping need nothing: a collation of Postgres finds equal only what is.
    """
    tree = parse_one(query, read="postgres")
    for column in list(tree.find_all(exp.Column)):
        if column.name in texts and column.find_ancestor(*_ORDERS) is not None:
            collated = exp.Collate(
                this=column.copy(), expression=exp.to_identifier("C", quoted=True)
            )
            column.replace(exp.Paren(this=collated))
    return tree.sql("postgres")
