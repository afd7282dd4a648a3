"""Bugs of folds: order, gaps, doubles, what is kept after a fault, what is refused."""

from typing import Final

from tests.mutants.mutant import Mutant

_KEPT: Final = ("tests/unit/derive/keep/test_folds.py",)
_BY_HAND: Final = ("tests/unit/derive/keep/test_folds_by_hand.py",)
_STREAMS: Final = ("tests/unit/derive/fold/test_stream.py",)
_READ: Final = ("tests/unit/derive/fold/test_refused.py",)
_ASKED: Final = ("tests/unit/client/derived/test_folds_asked.py",)


def _of(name: str, file: str, old: str, new: str, tests: tuple[str, ...]) -> Mutant:
    path = f"cdc/derive/{file}.py"
    return Mutant(name=f"folds: {name}", file=path, old=old, new=new, tests=tests)


DERIVED_FOLDS: Final = (
    _of(
        "events are in the order of arrival",
        "engine/folds",
        "[*fold.stream, fold.version, *ties]",
        "[*fold.stream, *ties]",
        _KEPT,
    ),
    _of(
        "a double is the one that the files have first",
        "engine/folds",
        "[*fold.stream, fold.version, *ties]",
        "[*fold.stream, fold.version]",
        _KEPT,
    ),
    _of(
        "a gap is passed over",
        "fold/stream",
        "    elif version > expected:\n",
        "    elif False:\n",
        _BY_HAND,
    ),
    _of(
        "a gap is noted and passed over",
        "fold/stream",
        "        if not folded.ended:\n",
        "        if True:\n",
        _BY_HAND,
    ),
    _of(
        "a double is applied twice",
        "fold/stream",
        "            _apply(folded, event, rules)\n",
        "            _apply(folded, event, rules)\n"
        "            if more:\n"
        "                _apply(folded, event, rules)\n",
        _BY_HAND,
    ),
    _of(
        "a double does not end the stream",
        "fold/stream",
        "            folded.fails(version, Kind.DOUBLE, ",
        "            folded.faults += [Fault(version, Kind.DOUBLE, '')] or (",
        _BY_HAND,
    ),
    _of(
        "what apply changed is kept after a refusal",
        "fold/stream",
        "None if state is None else dict(state)",
        "state",
        _STREAMS,
    ),
    _of(
        "an event after a refusal is applied",
        "fold/stream",
        "        self.ended = True\n",
        "        self.ended = kind is not Kind.REFUSED\n",
        _KEPT,
    ),
    _of(
        "a refused event counts as applied",
        "fold/stream",
        "        folded.state = _next(folded.state, event, rules)\n"
        "        folded.version = event.version\n",
        "        folded.version = event.version\n"
        "        folded.state = _next(folded.state, event, rules)\n",
        _KEPT,
    ),
    _of(
        "the reason of an error shows values",
        "fold/stream",
        "Kind.ERROR, type(error).__name__",
        "Kind.ERROR, repr(error)",
        _STREAMS,
    ),
    _of(
        "a decimal is rounded",
        "fold/values",
        "traps=[Inexact, InvalidOperation]",
        "traps=[InvalidOperation]",
        _STREAMS,
    ),
    _of(
        "decimals have the digits of the program around",
        "fold/stream",
        "        with localcontext(ARITHMETIC):\n",
        "        with localcontext():\n",
        _STREAMS,
    ),
    _of(
        "the header does not belong to the definition",
        "definition/fold_definition",
        "[*facts, types, canonical(module, HEADER)]",
        "[canonical(module, HEADER)]",
        _READ,
    ),
    _of(
        "a set has an order",
        "fold/purity",
        "isinstance(node, ast.Set) and id(node) not in members",
        "False",
        _READ,
    ),
    _of(
        "a fold may use all names of Python",
        "fold/purity",
        "{*_bound(module.tree), *BUILTINS, REFUSED}",
        "{*_bound(module.tree), *dir(builtins), REFUSED}",
        _READ,
    ),
    _of(
        "two files derive one table",
        "definition/folder",
        "if each.table == one.table and each is not one",
        "if False",
        _ASKED,
    ),
    _of(
        "a refused fold leaves its faults out",
        "definition/declared",
        "    return tables_of(Path(problem.file).name) or (None,)\n",
        "    return tables_of(Path(problem.file).name)[:1] or (None,)\n",
        _ASKED,
    ),
)
