"""Walk the tree of a predicate, accept only what is known, and collect its columns."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from sqlglot import exp

from cdc.events.structure.declared import SourceColumn
from cdc.source.predicate.kinds import is_own, kind_of
from cdc.source.predicate.operand import CONSTANTS, Operand, is_operand
from cdc.source.predicate.parse import (
    PredicateError,
    folded_name,
    no_column,
    not_understood,
    only,
    quoted_name,
    refuse_word,
)
from cdc.source.predicate.texts import Texts, column_name, fill_template, joined
from cdc.tables import TableId

_COMPARED: Final[Mapping[type[exp.Expr], tuple[str, str]]] = {
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
"""Each comparison's operator, and its operator with the sides exchanged."""
_EQUALITY: Final = frozenset({"=", "<>"})


class TreeReader:
    """Translates the tree of a predicate; ``types`` and ``collated`` collect its columns.

    Raises PredicateError for anything it does not know.
    """

    def __init__(
        self, table: TableId, columns: Sequence[SourceColumn], enums: frozenset[str]
    ) -> None:
        self.table = table
        self.known = {column.name: column for column in columns}
        self.enums = enums
        self.types: dict[str, str] = {}
        self.collated: set[str] = set()

    def condition(self, node: exp.Expr) -> Texts:
        """Return the condition in all spellings; raise PredicateError if it is not allowed."""
        node = node.unnest()
        reads: dict[type[exp.Expr], Callable[[exp.Expr], Texts]] = {
            exp.And: partial(self._chain, "AND"),
            exp.Or: partial(self._chain, "OR"),
            exp.Not: self._not,
            exp.Is: self._is_null,
            exp.In: self._among,
            exp.Between: self._between,
            exp.Like: self._like,
            exp.Column: self._flag,
            **dict.fromkeys(_COMPARED, self._comparison),
        }
        read = reads.get(type(node))
        if read is None:
            raise not_understood(node)
        return read(node)

    def _chain(self, word: str, node: exp.Expr) -> Texts:
        return joined(word, [self.condition(part) for part in node.flatten()])

    def _not(self, node: exp.Expr) -> Texts:
        return fill_template("NOT ({})", self.condition(node.this))

    def _is_null(self, node: exp.Expr) -> Texts:
        only(node, "this", "expression", "negate")
        if not isinstance(node.expression, exp.Null):
            raise PredicateError("uses IS with something other than NULL", node, "compare with =")
        column = self._column(node.this)
        word, distinct = ("NOT ", "") if node.args.get("negate") else ("", "NOT ")
        texts = fill_template(f"{{}} IS {word}NULL", self._name(column))
        if not is_own(column):
            return texts
        # IS NULL of a composite value looks at its fields.
        source = f"{self._name(column).source} IS {distinct}DISTINCT FROM NULL"
        return Texts(source, texts.lake, texts.text)

    def _flag(self, node: exp.Expr) -> Texts:
        column = self._column(node)
        if column.pg.name != "bool" or column.is_text:
            raise PredicateError(
                f"uses column {column.name} ({column.pg.name}) as a condition",
                node,
                "compare it with a constant",
            )
        return self._name(column)

    def _comparison(self, node: exp.Expr) -> Texts:
        only(node, "this", "expression")
        sign, exchanged = _COMPARED[type(node)]
        left, right = node.this.unnest(), node.expression.unnest()
        if not is_operand(left):
            left, right, sign = right, left, exchanged
        if is_operand(left) is is_operand(right):
            raise _not_one_operand(left, right)
        operand = self._operand(left)
        if sign not in _EQUALITY:
            operand.refuse_order(left)
        return fill_template(f"{{}} {sign} {{}}", operand.texts, operand.constant(right))

    def _between(self, node: exp.Expr) -> Texts:
        only(node, "this", "low", "high")
        operand = self._operand(node.this.unnest())
        operand.refuse_order(node)
        low, high = (operand.constant(node.args[end]) for end in ("low", "high"))
        return fill_template("{} BETWEEN {} AND {}", operand.texts, low, high, loose=True)

    def _among(self, node: exp.Expr) -> Texts:
        only(node, "this", "expressions")
        operand = self._operand(node.this.unnest())
        if not node.expressions:
            raise PredicateError("has an empty list", node)
        values = [operand.constant(value) for value in node.expressions]
        places = ", ".join(["{}"] * len(values))
        texts = fill_template(f"{{}} IN ({places})", operand.texts, *values)
        if not operand.kind.apart:
            return texts
        chain = joined("OR", [fill_template("{} = {}", operand.texts, value) for value in values])
        return Texts(texts.source, chain.closed.lake, texts.text)

    def _like(self, node: exp.Expr) -> Texts:
        only(node, "this", "expression", "negate")
        operand = self._operand(node.this.unnest())
        word = "NOT LIKE" if node.args.get("negate") else "LIKE"
        return fill_template(
            f"{{}} {word} {{}}", operand.texts, operand.pattern(node.expression.unnest())
        )

    def _operand(self, node: exp.Expr) -> Operand:
        if isinstance(node, exp.Mod):
            only(node, "this", "expression")
            return self._plain_operand(node.this.unnest()).remainder(node.expression)
        return self._plain_operand(node)

    def _plain_operand(self, node: exp.Expr) -> Operand:
        if not isinstance(node, exp.Column):
            raise _no_operand(node)
        column = self._column(node)
        kind = kind_of(column, is_enum=column.name in self.enums)
        if isinstance(kind, str):
            raise PredicateError(
                f"compares column {column.name}: {kind}",
                node,
                "use only IS NULL or IS NOT NULL on it",
            )
        if kind.collated:
            self.collated.add(column.name)
        name = self._name(column)
        texts = Texts(kind.source.format(name.source), kind.lake.format(name.lake), name.text)
        return Operand(column, kind, texts)

    def _column(self, node: exp.Expr) -> SourceColumn:
        node = node.unnest()
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise not_understood(node)
        only(node, "this", "table", "db")
        qualifier = tuple(
            folded_name(node.args[part]) for part in ("db", "table") if node.args.get(part)
        )
        if qualifier and qualifier != (self.table.schema, self.table.name)[-len(qualifier) :]:
            raise PredicateError(f"names a column of another table, {'.'.join(qualifier)}", node)
        return self._known(node.this)

    def _known(self, name: exp.Identifier) -> SourceColumn:
        refuse_word(name)
        column = self.known.get(folded_name(name))
        if column is None:
            raise no_column(name, self.table, self.known)
        if not column.arrives:
            raise PredicateError(
                f"names column {column.name}, which is not in the lake: {column.reason}",
                name,
            )
        if "${" in column.name:
            raise PredicateError(f"names column {column.name}, whose name Spark cannot quote", name)
        self.types[column.name] = column.type
        return column

    def _name(self, column: SourceColumn) -> Texts:
        return column_name(column.name, quoted_name(column.name))


def _not_one_operand(left: exp.Expr, right: exp.Expr) -> PredicateError:
    if is_operand(left):
        return PredicateError("compares two columns", right, "compare each with a constant")
    return _no_operand(right if _is_constant(left) else left)


def _no_operand(node: exp.Expr) -> PredicateError:
    if _is_constant(node):
        return PredicateError("compares constants, but no column", node)
    return not_understood(node)


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node, CONSTANTS) and node.find(exp.Column) is None
