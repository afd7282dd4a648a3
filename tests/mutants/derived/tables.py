"""Bugs of derived tables: of the difference, of the cut that a table is at, of what it inherits."""

from typing import Final

from tests.mutants.mutant import Mutant

_KEPT: Final = tuple(
    f"tests/unit/derive/keep/{name}.py" for name in ("test_derived_tables", "test_states")
)
_WRITTEN: Final = ("tests/unit/derive/keep/test_writer.py",)
_ASKED: Final = ("tests/unit/client/derived/test_asked.py",)
_BY_SPARK: Final = ("tests/spark/derive/test_by_spark.py",)
_LARGE: Final = ("tests/spark/derive/test_large_queries.py",)
_SAID: Final = ("tests/source/derive/test_dialect.py",)
_SAID_BY_SPARK: Final = ("tests/spark/derive/test_dialect.py",)
DERIVED: Final = (
    Mutant(
        name="derived: equal rows are counted once",
        file="cdc/derive/step/difference.py",
        old='    by = f"{ROW_HASH}, {COPY}"\n',
        new="    by = ROW_HASH\n",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: rows that are gone stay",
        file="cdc/derive/step/writer.py",
        old="        return {path: rows.tolist() for path, rows in found.rows_by_file().items()}\n",
        new="        return {}\n",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: a row that is to go and is not there is overlooked",
        file="cdc/derive/step/writer.py",
        old="        if np.any(found.file < 0):\n",
        new="        if np.any(found.file < -1):\n",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: a table that cannot be written to stays as it is",
        file="cdc/derive/step/step.py",
        old='            ready = self._whole(None, f"it is made anew: {error}")\n',
        new="            raise\n",
        tests=_WRITTEN,
    ),
    Mutant(
        name="derived: equal rows are not numbered",
        file="cdc/derive/engine/numbered.py",
        old="    if not database.values(twins):\n",
        new="    if database.values(twins):\n",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: NULL has the digest of an empty text",
        file="cdc/derive/engine/digest.py",
        old=", 'N')\" for",
        new=", '0:')\" for",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: two rows may have one key",
        file="cdc/derive/step/difference.py",
        old="    if not key:\n        return\n",
        new="    if key or not key:\n        return\n",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: rows of another definition are taken for its own",
        file="cdc/derive/step/step.py",
        old="table is not None and mark.is_of(table) else",
        new="table is not None else",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: a column keeps the type that its input had",
        file="cdc/derive/step/step.py",
        old="        return replace(self.mark, columns=types)\n",
        new="        return self.mark\n",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: a late table is said to be at the cut",
        file="cdc/derive/keep/derived_tables.py",
        old="        if entry.at_cut == cut or entry.state not in _CURRENT:\n",
        new="        if entry.version >= 0:\n",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: a table is calculated before the one that it reads is committed",
        file="cdc/derive/keep/beside.py",
        old="self._last is not None and self._last.table in inputs:",
        new="self._last is None:",
        tests=("tests/unit/derive/turns/test_beside.py",),
    ),
    Mutant(
        name="derived: what no cut waits for does not yield",
        file="cdc/derive/keep/derived_tables.py",
        old="        pool = self._behind if is_behind else self._pool\n",
        new="        pool = self._pool\n",
        tests=("tests/unit/derive/turns/test_yielding.py",),
    ),
    Mutant(
        name="derived: the flags of its inputs are forgotten",
        file="cdc/derive/keep/inputs_at.py",
        old="        if entry.state != _EQUAL:\n",
        new="        if False:\n",
        tests=(*_KEPT, *_ASKED),
    ),
    Mutant(
        name="derived: a failure is not forgotten when the inputs change",
        file="cdc/derive/keep/derived_tables.py",
        old="or not tried.inputs.give_the_rows_of(inputs):",
        new="or not (tried.failure or tried.inputs.give_the_rows_of(inputs)):",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: an input of an older cut",
        file="cdc/client/derived/at_cut.py",
        old="    return Input.of(entry)\n",
        new="    return Input(entry.path, max(entry.version - 1, 0))\n",
        tests=_ASKED,
    ),
    Mutant(
        name="derived: verification looks for missing rows only",
        file="cdc/client/derived/verify.py",
        old="        extra=(found - wanted).total(),\n",
        new="",
        tests=_ASKED,
    ),
    Mutant(
        name="derived: Spark does not look at what is stored",
        file="cdc/client/derived/by_spark.py",
        old="found.withColumn(_COUNT, F.lit(-1))",
        new="found.limit(0).withColumn(_COUNT, F.lit(-1))",
        tests=_BY_SPARK,
    ),
    Mutant(
        name="derived: Spark rounds the sign of a decimal",
        file="cdc/derive/spark/printing.py",
        old="return f\"({self.sql(expression, 'this')} * -1)\"",
        new="return f\"(-{self.sql(expression, 'this')})\"",
        tests=_SAID_BY_SPARK,
    ),
    Mutant(
        name="derived: lower() changes letters outside ASCII",
        file="cdc/derive/sql/text/printing.py",
        old="        return self._letters(expression, ascii_uppercase, ascii_lowercase)\n",
        new="        return f\"LOWER({self.sql(expression.this, 'this')})\"\n",
        tests=_SAID,
    ),
    Mutant(
        name="derived: Spark takes no characters where all but some are asked for",
        file="cdc/derive/spark/text_printing.py",
        old='        return f"LEFT({value}, LENGTH({value}) - {self.sql(count.this)})"\n',
        new='        return f"LEFT({value}, {self.sql(count)})"\n',
        tests=_SAID_BY_SPARK,
    ),
    Mutant(
        name="derived: Spark calculates floats",
        file="cdc/derive/engine/large_queries.py",
        old='        if (kind if isinstance(kind, str) else kind["elementType"]) in _SIGNED:\n',
        new="        if False:\n",
        tests=_LARGE,
    ),
    Mutant(
        name="derived: Spark's columns in the order of their names",
        file="cdc/derive/engine/large.py",
        old="for n, o in enumerate(self.outputs))\n",
        new="for n, o in enumerate(sorted(self.outputs, key=lambda o: o.name)))\n",
        tests=_LARGE,
    ),
    Mutant(
        name="derived: what Spark has calculated stays aside",
        file="cdc/derive/engine/large_queries.py",
        old="            delete_table(path)\n",
        new="            pass\n",
        tests=_LARGE,
    ),
)
