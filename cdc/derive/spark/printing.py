"""Print a normalized tree for Spark, which calculates a definition as a witness only.

Spark reads Postgres's spelling with ``SETTINGS``. What it would answer differently is spelled in
another way, or it has a guard: an expression that asks for the type of a value and raises an error
that begins with ``REFUSED`` and names what is not said. Tables are views, whose names are
``schema.table`` as one word.
"""

from typing import ClassVar, Final

from sqlglot import exp

from cdc.derive.spark.guards import DAYS, error, is_filter, is_zoneless, series, when
from cdc.derive.spark.text_printing import SparkTextPrinter
from cdc.derive.sql.event_window_printing import ROW, Spelling
from cdc.derive.sql.printing import Printer
from cdc.events.values.sql_text import postgres_name, spark_string

_TYPES: Final[dict[exp.DType, str]] = {
    exp.DType.DOUBLE: "DOUBLE",
    exp.DType.TEXT: "STRING",
    exp.DType.TIMESTAMP: "TIMESTAMP_NTZ",
    exp.DType.TIMESTAMPTZ: "TIMESTAMP",
}
_WHOLE: Final = frozenset({exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT})
_NO_TEXT: Final = "^(double|float|interval)"
_FRACTION: Final = "(decimal|double|float)"
_NO_TIME: Final = exp.Cast(this=exp.Null(), to=exp.DataType(this=exp.DType.TIMESTAMP))
_MICROSECOND: Final = "INTERVAL '0.000001' SECOND"


class _SparkPrinter(SparkTextPrinter, Printer):
    """Print what Spark answers as DuckDB and Postgres do."""

    guards = True
    TRANSFORMS: ClassVar = {
        node: printer for node, printer in Printer.TRANSFORMS.items() if node is not exp.Sum
    }

    def _spelling(self) -> Spelling:
        return Spelling(self._microseconds, self._interval, series)

    def _microseconds(self, time: str) -> str:
        column = f"{ROW}.{postgres_name(time)}"
        text = f"UNIX_MICROS(CAST({column} AS TIMESTAMP))"
        condition = f"TYPEOF({column}) RLIKE '^timestamp'"
        return when(condition, text, "a window of event time of a value of this type")

    def _interval(self, microseconds: str) -> str:
        return f"{microseconds} * {_MICROSECOND}"

    def table_parts(self, expression: exp.Table) -> str:
        schema = expression.args.get("db")
        name = expression.name if schema is None else f"{schema.name}.{expression.name}"
        return postgres_name(name)

    def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
        """Give a table its own name, which its columns are called by."""
        if expression.args.get("db") is not None and not expression.alias:
            alias = exp.TableAlias(this=exp.to_identifier(expression.name, quoted=True))
            expression.set("alias", alias)
        return super().table_sql(expression, sep)

    def literal_sql(self, expression: exp.Literal) -> str:
        text = str(expression.this)
        return spark_string(text) if expression.is_string else text

    def datatype_sql(self, expression: exp.DataType) -> str:
        own = _TYPES.get(expression.this)
        return own or super().datatype_sql(expression)

    def sum_sql(self, expression: exp.Sum) -> str:
        """Multiply by 1BD: a sum of whole numbers is a decimal then, no other sum becomes one."""
        value, distinct = expression.this, ""
        if isinstance(value, exp.Distinct):
            (value,), distinct = value.expressions, "DISTINCT "
        return f"SUM({distinct}({self.sql(value)}) * 1BD)"

    def filter_sql(self, expression: exp.Filter) -> str:
        """Spark has no FILTER before OVER: NULL is left out as well."""
        aggregate = expression.this.copy()
        value = aggregate.this
        distinct = value if isinstance(value, exp.Distinct) else None
        counted = exp.Literal.number(1) if isinstance(value, exp.Star) else value
        inner = distinct.expressions[0] if distinct is not None else counted
        case = exp.Case(ifs=[exp.If(this=expression.expression.this.copy(), true=inner.copy())])
        if distinct is not None:
            distinct.set("expressions", [case])
        else:
            aggregate.set("this", case)
        return self.sql(aggregate)

    def in_sql(self, expression: exp.In) -> str:
        """As a value, IN (SELECT ...) is never NULL in Spark."""
        if expression.args.get("query") is None or is_filter(expression):
            return super().in_sql(expression)
        return f"CAST({error('IN (SELECT ...) outside WHERE')} AS BOOLEAN)"

    def neg_sql(self, expression: exp.Neg) -> str:
        """Multiply: the sign of a decimal with more than 34 digits would round it."""
        if isinstance(expression.this, exp.Literal):
            return f"-{self.sql(expression, 'this')}"
        return f"({self.sql(expression, 'this')} * -1)"

    def abs_sql(self, expression: exp.Abs) -> str:
        value = self.sql(expression, "this")
        negative = f"TYPEOF({value}) LIKE 'decimal%' AND {value} < 0"
        return f"(CASE WHEN {negative} THEN {value} * -1 ELSE ABS({value}) END)"

    def ordered_sql(self, expression: exp.Ordered) -> str:
        """A frame of an interval needs a timestamp where the column is a date."""
        window = expression.parent.parent if expression.parent is not None else None
        if isinstance(window, exp.Window) and window.args.get("spec") is not None:
            ordered = expression.copy()
            ordered.set("this", exp.Coalesce(this=ordered.this, expressions=[_NO_TIME.copy()]))
            return super().ordered_sql(ordered)
        return super().ordered_sql(expression)

    def add_sql(self, expression: exp.Add) -> str:
        return self._moved(expression, "+")

    def sub_sql(self, expression: exp.Sub) -> str:
        text = self._moved(expression, "-")
        if isinstance(expression.right.unnest(), exp.Interval):
            return text
        return self._unless(text, expression, "^date date$", "a date minus a date")

    def mul_sql(self, expression: exp.Mul) -> str:
        """Spark multiplies an interval by a decimal exactly, and the others by way of a double."""
        text = self.binary(expression, "*")
        pair = f"^interval.* {_FRACTION}|^{_FRACTION}.* interval"
        return self._unless(text, expression, pair, "an interval times a number with a fraction")

    def _moved(self, expression: exp.Binary, sign: str) -> str:
        """A date that is moved by an interval is a timestamp; a time keeps its type."""
        if not isinstance(expression.right.unnest(), exp.Interval):
            return self.binary(expression, sign)
        left, right = self.sql(expression.left), self.sql(expression.right)
        return f"COALESCE({left}, {self.sql(_NO_TIME)}) {sign} {right}"

    def dpipe_sql(self, expression: exp.DPipe) -> str:
        return " || ".join(self._part(one) for one in (expression.left, expression.right))

    def _part(self, node: exp.Expr) -> str:
        text = node.is_string or isinstance(node.unnest(), exp.DPipe)
        return self.sql(node) if text else self._text(node)

    def _text(self, node: exp.Expr) -> str:
        text, kind = f"CAST({self.sql(node)} AS STRING)", self._type(node)
        if not self.guards:
            return text
        zone = f"CASE {kind} WHEN 'timestamp' THEN '+00' ELSE '' END"
        given = f"NOT {kind} RLIKE {spark_string(_NO_TEXT)}"
        return when(given, f"{text} || {zone}", "the text of a value of this type")

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        value, to = expression.this, expression.to
        if not isinstance(value, exp.Literal | exp.Null):
            if to.this == exp.DType.TEXT:
                return self._text(value)
            if to.this in _WHOLE and self.guards:
                return self._rounded(value, self.sql(to))
        return super().cast_sql(expression, safe_prefix)

    def _rounded(self, node: exp.Expr, to: str) -> str:
        """Round to a whole number: a double to an even one, decimals away from zero."""
        value = self.sql(node)
        even = f"CAST(RINT(CAST({value} AS DOUBLE)) AS {to})"
        away = f"CAST(ROUND({value}) AS {to})"
        return f"(CASE {self._type(node)} WHEN 'double' THEN {even} ELSE {away} END)"

    def floor_sql(self, expression: exp.Floor) -> str:
        text = f"FLOOR({self.sql(expression, 'this')})"
        return self._only(text, expression.this, "decimal", "floor of double precision")

    def ceil_sql(self, expression: exp.Ceil) -> str:
        text = f"CEIL({self.sql(expression, 'this')})"
        return self._only(text, expression.this, "decimal", "ceil of double precision")

    def timestamptrunc_sql(self, expression: exp.TimestampTrunc) -> str:
        """Take away what is cut off, which keeps the type."""
        value, unit = self.sql(expression, "this"), str(expression.args["unit"].name).upper()
        cut = f"CAST({value} AS TIMESTAMP) - DATE_TRUNC({spark_string(unit)}, {value})"
        return f"({value} - ({cut}))" if self.guards else value

    def extract_sql(self, expression: exp.Extract) -> str:
        unit, value = str(expression.this.name).upper(), self.sql(expression, "expression")
        if unit != "EPOCH":
            return DAYS.get(unit, "EXTRACT({unit} FROM {value})").format(unit=unit, value=value)
        count = f"CAST(UNIX_MICROS(CAST({value} AS TIMESTAMP)) AS DECIMAL(20, 0))"
        return f"({count} * 0.000001BD)"

    def attimezone_sql(self, expression: exp.AtTimeZone) -> str:
        """Of two instants that have one time on a clock Spark takes the first, Postgres the last.

        So only UTC leads from a time on a clock to an instant.
        """
        value, zone = self.sql(expression, "this"), expression.args["zone"].name
        if is_zoneless(expression.this) and zone == "UTC":
            return f"CAST(CAST({value} AS TIMESTAMP_NTZ) AS TIMESTAMP)"
        local = f"CAST({value} AS TIMESTAMP_NTZ)"
        text = f"CONVERT_TIMEZONE('UTC', {spark_string(zone)}, {local})"
        what = "AT TIME ZONE of a timestamp without zone"
        return self._only(text, expression.this, "timestamp$", what)

    def _type(self, node: exp.Expr) -> str:
        """Return an expression that is the type; what has no part in it is left out."""
        return f"TYPEOF({_PlainPrinter(dialect='postgres', comments=False).generate(node)})"

    def _only(self, text: str, node: exp.Expr, kind: str, what: str) -> str:
        """Return an expression that is ``text`` if the type of the node begins so, or raises."""
        if not self.guards:
            return text
        return when(f"{self._type(node)} RLIKE {spark_string(f'^({kind}|void)')}", text, what)

    def _unless(self, text: str, operation: exp.Binary, pair: str, what: str) -> str:
        """Return an expression that raises if the types of both sides are like ``pair``."""
        sides = operation.left, operation.right
        if not self.guards or any(one.is_int or one.is_string for one in sides):
            return text
        types = f"CONCAT({self._type(sides[0])}, ' ', {self._type(sides[1])})"
        return when(f"NOT {types} RLIKE {spark_string(pair)}", text, what)


class _PlainPrinter(_SparkPrinter):
    """Print an expression that has the same kind of type, for a guard."""

    guards = False


def spark(tree: exp.Expr) -> str:
    """Return the query for Spark, with guards; it is printed from a copy, which this changes."""
    return _SparkPrinter(dialect="postgres", comments=False).generate(tree)
