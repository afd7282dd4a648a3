"""The two sides of a comparison in a predicate: a column, and the constants it is compared with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc.events.structure.declared import SourceColumn
from cdc.source.predicate.constants import Given, integer, whole
from cdc.source.predicate.kinds import Kind
from cdc.source.predicate.parse import PredicateError, not_understood, only
from cdc.source.predicate.texts import Texts, filled

CONSTANTS: Final = (exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Cast)
_FORMS: Final[Mapping[bool, str]] = {True: "string", False: "number"}


@dataclass(frozen=True, slots=True)
class Operand:
    """A column as it stands in a comparison."""

    column: SourceColumn
    kind: Kind
    texts: Texts

    def constant(self, node: exp.Expr) -> Texts:
        """The constant in the column's type; raises PredicateError where it is none of it."""
        given = given_constant(node)
        kind, column = self.kind, self.column
        well = given.form in kind.forms and (not given.cast or given.cast in kind.casts)
        made = kind.read(given, column) if well else None
        if made is None:
            cast = f" as {given.cast}" if given.cast else ""
            raise PredicateError(
                f"compares column {column.name}, which is {column.pg.name}, with "
                f"{given.shown}{cast}: not {kind.name}",
                node,
                f"write {kind.name}",
            )
        return made

    def pattern(self, node: exp.Expr) -> Texts:
        """The pattern of a LIKE, with a backslash only where both engines read one alike."""
        if not self.kind.patterns:
            raise PredicateError(
                f"asks LIKE of column {self.column.name}, which is {self.column.pg.name}",
                node,
                "LIKE is for columns of type text and varchar",
            )
        if not (isinstance(node, exp.Literal) and node.is_string):
            raise PredicateError("has a pattern that is not a plain string", node)
        given = Given(text=_same_pattern(node), form="string")
        made = self.kind.read(given, self.column)
        if made is None:
            raise not_understood(node)
        return made

    def refuse_order(self, node: exp.Expr) -> None:
        if self.kind.unordered:
            raise PredicateError(
                f"orders by column {self.column.name}, which is {self.column.pg.name}: "
                f"{self.kind.unordered}",
                node,
                "compare it by =, <> or IN",
            )

    def remainder(self, node: exp.Expr) -> "Operand":
        """After a division by the constant: it has the sign of the column's value in both."""
        given = given_constant(node)
        divisor = whole(given) if given.form == "number" else None
        if not self.kind.divisible or not divisor:
            raise PredicateError(
                "has a remainder of something else than an integer column and a constant but 0",
                node,
                "write it as id % 10 = 3",
            )
        # Of bigints: no divisor is too large for the column's type.
        texts = filled("{} % {}", self.texts, integer(divisor, "int8"), loose=True)
        closed = texts.closed
        return Operand(self.column, self.kind, Texts(closed.source, closed.lake, texts.text))


def is_operand(node: exp.Expr) -> bool:
    """Whether it is a side with a column; the other one is a constant."""
    return isinstance(node, exp.Column) or (
        isinstance(node, exp.Mod) and isinstance(node.this.unnest(), exp.Column)
    )


def given_constant(node: exp.Expr) -> Given:
    """A constant as it was typed; raises PredicateError for anything else."""
    node = node.unnest()
    if isinstance(node, exp.Boolean):
        return Given(text=str(bool(node.this)).lower(), form="boolean")
    if isinstance(node, exp.Literal):
        return Given(text=str(node.this), form=_FORMS[node.is_string])
    if isinstance(node, exp.Neg):
        return _negative(node)
    if type(node) is exp.Cast:
        return _typed(node)
    raise not_understood(node)


def _negative(node: exp.Neg) -> Given:
    inner = given_constant(node.this)
    if inner.form != "number" or inner.text.startswith("-"):
        raise not_understood(node)
    return Given(text=f"-{inner.text}", form="number", cast=inner.cast)


def _typed(node: exp.Cast) -> Given:
    """``date '..'``, ``'..'::date``: of a type without a length, which would change the value."""
    only(node, "this", "to")
    inner, to = node.this.unnest(), node.to
    if not isinstance(inner, (exp.Literal, exp.Boolean)) or any(
        value for name, value in to.args.items() if name != "this"
    ):
        raise not_understood(node)
    given = given_constant(inner)
    return Given(text=given.text, form=given.form, cast=str(to.this.value))


def _same_pattern(node: exp.Literal) -> str:
    """With no sign escaped that needs not be: Spark refuses such a pattern."""
    signs, made = iter(str(node.this)), ""
    for sign in signs:
        if sign != "\\":
            made += sign
            continue
        escaped = next(signs, "")
        if not escaped:
            raise PredicateError("has a pattern that ends with its escape character", node)
        made += f"\\{escaped}" if escaped in "\\%_" else escaped
    return made
