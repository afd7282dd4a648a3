"""Read the two sides of a comparison in a predicate: a column, and its constants."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc.events.structure.declared import SourceColumn
from cdc.source.predicate.constants import Constant, integer, whole
from cdc.source.predicate.kinds import Kind
from cdc.source.predicate.parse import PredicateError, not_understood, only
from cdc.source.predicate.texts import Texts, fill_template

CONSTANTS: Final = (exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Cast)
_FORMS: Final[Mapping[bool, str]] = {True: "string", False: "number"}


@dataclass(frozen=True, slots=True)
class Operand:
    """Stands for a column, or its remainder by a constant, on one side of a comparison."""

    column: SourceColumn
    kind: Kind
    texts: Texts

    def constant(self, node: exp.Expr) -> Texts:
        """Spell the constant in the column's type; raise PredicateError if it does not fit."""
        given = given_constant(node)
        kind, column = self.kind, self.column
        fits = given.form in kind.forms and (not given.cast or given.cast in kind.casts)
        texts = kind.read(given, column) if fits else None
        if texts is None:
            cast = f" as {given.cast}" if given.cast else ""
            raise PredicateError(
                f"compares column {column.name} ({column.pg.name}) with {given.shown}{cast}, "
                f"which is not {kind.name}",
                node,
                f"write {kind.name}",
            )
        return texts

    def pattern(self, node: exp.Expr) -> Texts:
        """Spell the pattern of a LIKE so that both engines read its backslashes alike.

        Raises PredicateError if it is no plain string, or the column does not allow LIKE.
        """
        if not self.kind.patterns:
            raise PredicateError(
                f"uses LIKE on column {self.column.name} ({self.column.pg.name})",
                node,
                "use LIKE only on columns of type text or varchar",
            )
        if not (isinstance(node, exp.Literal) and node.is_string):
            raise PredicateError("has a pattern that is not a plain string", node)
        given = Constant(text=_same_pattern(node), form="string")
        texts = self.kind.read(given, self.column)
        if texts is None:
            raise not_understood(node)
        return texts

    def refuse_order(self, node: exp.Expr) -> None:
        """Raise PredicateError if the order of the column's values is not the same in Spark."""
        if self.kind.unordered:
            raise PredicateError(
                f"compares column {self.column.name} ({self.column.pg.name}) by order: "
                f"{self.kind.unordered}",
                node,
                "compare it with =, <> or IN",
            )

    def remainder(self, node: exp.Expr) -> "Operand":
        """Return the column's remainder by a constant, which both engines sign like the column.

        Raises PredicateError unless it is an integer column and a nonzero integer.
        """
        given = given_constant(node)
        divisor = whole(given) if given.form == "number" else None
        if not self.kind.divisible or not divisor:
            raise PredicateError(
                "uses % on something other than an integer column and a nonzero integer constant",
                node,
                "write it as id % 10 = 3",
            )
        # As bigint, so that no divisor is too large for the column's type.
        texts = fill_template("{} % {}", self.texts, integer(divisor, "int8"), loose=True)
        closed = texts.closed
        return Operand(self.column, self.kind, Texts(closed.source, closed.lake, texts.text))


def is_operand(node: exp.Expr) -> bool:
    """Return whether the node is a column, or the remainder of one."""
    return isinstance(node, exp.Column) or (
        isinstance(node, exp.Mod) and isinstance(node.this.unnest(), exp.Column)
    )


def given_constant(node: exp.Expr) -> Constant:
    """Return the constant as it was typed; raise PredicateError for anything else."""
    node = node.unnest()
    if isinstance(node, exp.Boolean):
        return Constant(text=str(bool(node.this)).lower(), form="boolean")
    if isinstance(node, exp.Literal):
        return Constant(text=str(node.this), form=_FORMS[node.is_string])
    if isinstance(node, exp.Neg):
        return _negative(node)
    if type(node) is exp.Cast:
        return _typed(node)
    raise not_understood(node)


def _negative(node: exp.Neg) -> Constant:
    inner = given_constant(node.this)
    if inner.form != "number" or inner.text.startswith("-"):
        raise not_understood(node)
    return Constant(text=f"-{inner.text}", form="number", cast=inner.cast)


def _typed(node: exp.Cast) -> Constant:
    """Read ``date '..'`` or ``'..'::date``; refuse a type with a length: it may cut values."""
    only(node, "this", "to")
    inner, to = node.this.unnest(), node.to
    if not isinstance(inner, (exp.Literal, exp.Boolean)) or any(
        value for name, value in to.args.items() if name != "this"
    ):
        raise not_understood(node)
    given = given_constant(inner)
    return Constant(text=given.text, form=given.form, cast=str(to.this.value))


def _same_pattern(node: exp.Literal) -> str:
    """Return the pattern without needless escapes, which Spark refuses."""
    characters, pattern = iter(str(node.this)), ""
    for character in characters:
        if character != "\\":
            pattern += character
            continue
        escaped = next(characters, "")
        if not escaped:
            raise PredicateError("has a pattern that ends with its escape character", node)
        pattern += f"\\{escaped}" if escaped in "\\%_" else escaped
    return pattern
