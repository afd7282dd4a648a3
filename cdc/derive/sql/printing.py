"""Print a normalized tree for Postgres and for DuckDB.

Both print Postgres's spelling, which DuckDB reads; only what DuckDB would answer differently is
spelled in another way. Where that depends on the type of a value, which no definition shows, DuckDB
gets a guard: it asks for the type while it plans, and raises instead of answering.
"""

from typing import ClassVar, Final

from sqlglot import exp
from sqlglot.generators.postgres import PostgresGenerator

from cdc.derive.sql.event_window import ARGUMENT
from cdc.derive.sql.event_window_printing import ROW, Spelling, printed
from cdc.derive.sql.text import printing as text_printing
from cdc.derive.sql.text.printing import DuckTextPrinter, TextPrinter
from cdc.events.values.sql_text import postgres_name

GUARDED = "of a value of this type differs from Postgres"
"""What the error of a guard says at run time."""
Types = tuple[str, ...]
"""Prefixes of DuckDB's names of types."""

_FLOATS: Final = ("DOUBLE", "FLOAT")
_INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_TIMES: Final = ("TIMESTAMP",)
_CASTS: Final[dict[exp.DType, Types]] = {
    exp.DType.SMALLINT: (*_INTEGERS, *_FLOATS, "DECIMAL"),
    exp.DType.INT: (*_INTEGERS, *_FLOATS, "DECIMAL", "BOOLEAN"),
    exp.DType.BIGINT: (*_INTEGERS, *_FLOATS, "DECIMAL"),
    exp.DType.DECIMAL: (*_INTEGERS, "DECIMAL", "VARCHAR"),
    exp.DType.DOUBLE: (*_INTEGERS, *_FLOATS, "DECIMAL", "VARCHAR"),
    exp.DType.TEXT: (*_INTEGERS, *_TIMES, "DECIMAL", "VARCHAR", "DATE", "BOOLEAN"),
    exp.DType.DATE: (*_TIMES, "DATE", "VARCHAR"),
    exp.DType.TIMESTAMP: (*_TIMES, "DATE", "VARCHAR"),
    exp.DType.TIMESTAMPTZ: (*_TIMES, "DATE", "VARCHAR"),
    exp.DType.BOOLEAN: ("BOOLEAN", "INTEGER"),
}
"""The types from which a cast gives the same value in DuckDB as in Postgres."""
_TEXTS: Final = (*_INTEGERS, *_TIMES, "DECIMAL", "VARCHAR", "DATE", "BOOLEAN")
_MICROSECONDS: Final = "CAST(0.000001 AS DECIMAL(7, 6))"
_OF_TIMES: Final = frozenset({"HOUR", "MINUTE", "SECOND"})
_SMALL, _LARGE = 2**31, 2**63
_OWN: Final = frozenset(
    {exp.Ceil, exp.Floor, exp.Round, exp.Select, exp.TimestampTrunc, *text_printing.OWN}
)
"""The nodes that are printed here although sqlglot has a printer for them in a table.

That of a SELECT rewrites the tree for joins and clauses that no definition has.
"""


class Printer(TextPrinter):
    """Print Postgres's spelling with the order of NULLs always written."""

    TRANSFORMS: ClassVar = {
        node: printer for node, printer in PostgresGenerator.TRANSFORMS.items() if node not in _OWN
    }

    def ordered_sql(self, expression: exp.Ordered) -> str:
        descending = bool(expression.args.get("desc"))
        nulls = "FIRST" if expression.args.get("nulls_first") else "LAST"
        direction = "DESC" if descending else "ASC"
        return f"{self.sql(expression, 'this')} {direction} NULLS {nulls}"

    def interval_sql(self, expression: exp.Interval) -> str:
        unit = str(expression.args["unit"].name).upper().removesuffix("S")
        return f"INTERVAL '{expression.this.name}' {unit}"

    def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
        window = expression.args.get(ARGUMENT)
        if window is None:
            return super().table_sql(expression, sep)
        query = printed(window, self.table_parts(expression), self._spelling())
        return f"{query}{sep}{postgres_name(expression.alias_or_name)}"

    def _spelling(self) -> Spelling:
        return Spelling(self._microseconds, self._interval)

    def _microseconds(self, time: str) -> str:
        return f"CAST(EXTRACT(EPOCH FROM {ROW}.{postgres_name(time)}) * 1000000 AS BIGINT)"

    def _interval(self, microseconds: str) -> str:
        return f"{microseconds} * INTERVAL '1 MICROSECOND'"

    def timestamptrunc_sql(self, expression: exp.TimestampTrunc) -> str:
        unit = str(expression.args["unit"].name).lower()
        return f"DATE_TRUNC('{unit}', {self.sql(expression, 'this')})"

    def round_sql(self, expression: exp.Round) -> str:
        return f"ROUND({self.sql(expression, 'this')}, {self.sql(expression, 'decimals')})"

    def floor_sql(self, expression: exp.Floor) -> str:
        return f"FLOOR({self.sql(expression, 'this')})"

    def ceil_sql(self, expression: exp.Ceil) -> str:
        return f"CEIL({self.sql(expression, 'this')})"


class _DuckPrinter(DuckTextPrinter, Printer):
    """Print what DuckDB answers as Postgres does."""

    guards = True

    def _microseconds(self, time: str) -> str:
        name = postgres_name(time)
        column = exp.column(exp.to_identifier(time, quoted=True), table=ROW.strip('"'), quoted=True)
        return self._guarded(f"EPOCH_US({ROW}.{name})", column, _TIMES, "a window of event time")

    def _interval(self, microseconds: str) -> str:
        return f"TO_MICROSECONDS({microseconds})"

    def literal_sql(self, expression: exp.Literal) -> str:
        """Give an integer its type: in DuckDB it would take that of its neighbour."""
        text = super().literal_sql(expression)
        if expression.is_string or not text.isdecimal():
            return text
        if isinstance(expression.parent, exp.DataTypeParam | exp.Substring | exp.Round):
            return text
        size = int(text)
        kind = "INTEGER" if size < _SMALL else "BIGINT" if size < _LARGE else "DECIMAL(38, 0)"
        return f"CAST({text} AS {kind})"

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        cast = super().cast_sql(expression, safe_prefix)
        value, to = expression.this, expression.to
        if isinstance(value, exp.Literal | exp.Null):
            return cast
        if to.this == exp.DType.DOUBLE:
            cast = f"CAST(CAST({self.sql(value)} AS VARCHAR) AS DOUBLE)"
        return self._guarded(cast, value, _CASTS[to.this], f"{to.sql('postgres').lower()}")

    def dpipe_sql(self, expression: exp.DPipe) -> str:
        text = self.binary(expression, "||")
        return self._guarded(text, [expression.left, expression.right], _TEXTS, "||")

    def mod_sql(self, expression: exp.Mod) -> str:
        text = self.binary(expression, "%")
        exact = (*_INTEGERS, "DECIMAL")
        return self._guarded(text, [expression.left, expression.right], exact, "%")

    def round_sql(self, expression: exp.Round) -> str:
        text = super().round_sql(expression)
        return self._guarded(text, expression.this, (*_INTEGERS, "DECIMAL"), "round")

    def floor_sql(self, expression: exp.Floor) -> str:
        text = super().floor_sql(expression)
        return self._guarded(text, expression.this, ("DOUBLE", "DECIMAL"), "floor")

    def ceil_sql(self, expression: exp.Ceil) -> str:
        text = super().ceil_sql(expression)
        return self._guarded(text, expression.this, ("DOUBLE", "DECIMAL"), "ceil")

    def timestamptrunc_sql(self, expression: exp.TimestampTrunc) -> str:
        text = super().timestamptrunc_sql(expression)
        return self._guarded(text, expression.this, _TIMES, "date_trunc")

    def attimezone_sql(self, expression: exp.AtTimeZone) -> str:
        text = super().attimezone_sql(expression)
        return self._guarded(text, expression.this, _TIMES, "AT TIME ZONE")

    def extract_sql(self, expression: exp.Extract) -> str:
        value, unit = self.sql(expression, "expression"), str(expression.this.name).upper()
        match unit:
            case "EPOCH":
                text = f"(CAST(EPOCH_US({value}) AS DECIMAL(20, 0)) * {_MICROSECONDS})"
            case "SECOND":
                whole = f"CAST(EXTRACT(MICROSECONDS FROM {value}) AS DECIMAL(8, 0))"
                text = f"({whole} * {_MICROSECONDS})"
            case _:
                text = f"EXTRACT({unit} FROM {value})"
        types = _TIMES if unit in _OF_TIMES else (*_TIMES, "DATE")
        return self._guarded(text, expression.expression, types, "extract")

    def _guarded(
        self, text: str, values: exp.Expr | list[exp.Expr], types: Types, what: str
    ) -> str:
        """Return an expression that is ``text`` if the values have one of the types, or raises."""
        if not self.guards:
            return text
        given = values if isinstance(values, list) else [values]
        tests = [
            _is_of(_printed(_PlainPrinter, value), types)
            for value in given
            if not (value.is_number or isinstance(value, exp.Null) or _is_text(value))
        ]
        if not tests:
            return text
        what = f"{what} {GUARDED}: cast the value first"
        message = self.sql(exp.Literal.string(what))
        return f"(CASE WHEN {' AND '.join(tests)} THEN {text} ELSE ERROR({message}) END)"


def _is_text(node: exp.Expr) -> bool:
    """Return whether a node is a chain of ||, whose parts have guards of their own."""
    return isinstance(node.unnest(), exp.DPipe)


class _PlainPrinter(_DuckPrinter):
    """Print an expression that has the same type, for a guard."""

    guards = False


def _is_of(text: str, types: Types) -> str:
    pattern = "|".join(('"NULL"', *types))
    return f"REGEXP_MATCHES(TYPEOF({text}), '^({pattern})')"


def postgres(tree: exp.Expr) -> str:
    """Return the query or expression for Postgres."""
    return _printed(Printer, tree)


def duckdb(tree: exp.Expr) -> str:
    """Return the query or expression for DuckDB, with guards."""
    return _printed(_DuckPrinter, tree)


def _printed(printer: type[Printer], tree: exp.Expr) -> str:
    """Print without the copy that sqlglot makes by default: nothing here changes the tree."""
    return printer(dialect="postgres", comments=False).generate(tree, copy=False)
