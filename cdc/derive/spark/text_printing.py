"""Print functions of text for Spark."""

from sqlglot import exp

from cdc.derive.sql.text.printing import PlainTextPrinter


class SparkTextPrinter(PlainTextPrinter):
    """Print what Spark names in another way, or what it answers otherwise."""

    def startswith_sql(self, expression: exp.StartsWith) -> str:
        return f"STARTSWITH({self._given(expression)}, {self.sql(expression, 'expression')})"

    def left_sql(self, expression: exp.Left) -> str:
        """Print LEFT; a negative number leaves out that many of the last characters."""
        value, count = self._given(expression), expression.expression
        if not isinstance(count, exp.Neg):
            return f"LEFT({value}, {self.sql(count)})"
        return f"LEFT({value}, LENGTH({value}) - {self.sql(count.this)})"

    def right_sql(self, expression: exp.Right) -> str:
        """Print RIGHT; a negative number leaves out that many of the first characters."""
        value, count = self._given(expression), expression.expression
        if not isinstance(count, exp.Neg):
            return f"RIGHT({value}, {self.sql(count)})"
        return f"RIGHT({value}, LENGTH({value}) - {self.sql(count.this)})"
