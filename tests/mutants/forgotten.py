"""Bugs of forgetting deleted rows where tables are derived from them."""

from typing import Final

from tests.mutants.mutant import Mutant

_LEFT: Final = "tests/operations/test_j_forget.py"
_CHOSEN: Final = "tests/unit/operations/test_forget_derived.py"


def _of(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    path = f"cdc/operations/forget/{file}.py"
    return Mutant(name=f"forgotten: {name}", file=path, old=old, new=new, tests=tests)


FORGOTTEN: Final = (
    _of("derived tables keep older versions", "handler", "derived.delete_older(begins)", "", _LEFT),
    _of(
        "cuts stay whose versions are gone",
        "handler",
        "give_up_cuts(self.job, cut, self.reporter)",
        "pass",
        _LEFT,
    ),
    _of("one over a derived table", "derived", "reached.add(one.table)", "pass", _CHOSEN),
    _of("a history is made anew", "derived", "one.is_of_events or ", "", _CHOSEN),
    _of("closed windows are made anew", "derived", " or _has_final_rows(one)", "", _CHOSEN),
    _of(
        "a changed definition is taken",
        "derived",
        ' or entry.definition not in {"", one.hash}',
        "",
        _CHOSEN,
    ),
    Mutant(
        name="forgotten: a table that is made anew leaves copies",
        file="cdc/derive/keep/table_steps.py",
        old="        if anew:\n            self._resident.close()",
        new="        if False:\n            self._resident.close()",
        tests=("tests/unit/derive/keep/test_shared_inputs.py",),
    ),
    _of("what was made of left tables", "left_over", "(names | found)", "names", _CHOSEN),
)
