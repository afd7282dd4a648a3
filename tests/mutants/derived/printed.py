"""Bugs of how a definition is brought into one form, and printed."""

from typing import Final

from tests.mutants.mutant import Mutant

_DEFINITION: Final = "tests/unit/derive/definition"
_QUOTED: Final = f"{_DEFINITION}/test_definition.py"


def _of(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    path = f"cdc/derive/sql/{file}.py"
    return Mutant(name=f"printed: {name}", file=path, old=old, new=new, tests=tests)


DERIVED_PRINTED: Final = (
    _of(
        "a printer changes the tree",
        "printing",
        'expression.args.get("nulls_first")',
        'expression.args.pop("nulls_first", None)',
        f"{_DEFINITION}/test_printing.py",
    ),
    _of("names are not folded", "normal", 'name.set("this", folded_name(name))', "pass", _QUOTED),
    _of("names are not quoted", "normal", '"quoted", True', '"quoted", False', _QUOTED),
    _of(
        "mixed set operations are taken",
        "queries",
        "yield from _mixed(report, node)",
        "pass",
        f"{_DEFINITION}/test_refused.py",
    ),
)
