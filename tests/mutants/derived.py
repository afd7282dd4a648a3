"""Bugs of derived tables: of the difference, of the cut that a table is at, of what it inherits."""

from typing import Final

from tests.mutants.mutant import Mutant

_KEPT: Final = tuple(
    f"tests/unit/derive/keep/{name}.py" for name in ("test_derived_tables", "test_states")
)
_ASKED: Final = ("tests/unit/client/derived/test_asked.py",)
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
        file="cdc/derive/step/commit.py",
        old='        .when_matched_delete(f"s.{GONE}")\n',
        new="",
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
        name="derived: the flags of its inputs are forgotten",
        file="cdc/derive/keep/inputs_at.py",
        old="        if entry.state != _EQUAL:\n",
        new="        if False:\n",
        tests=(*_KEPT, *_ASKED),
    ),
    Mutant(
        name="derived: a failure is not forgotten when the inputs change",
        file="cdc/derive/keep/derived_tables.py",
        old="tried.inputs != inputs.at or anew or",
        new="(tried.inputs != inputs.at and not tried.failure) or anew or",
        tests=_KEPT,
    ),
    Mutant(
        name="derived: an input of an older cut",
        file="cdc/client/derived/at_cut.py",
        old="    return Input(entry.path, entry.version)\n",
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
)
