"""Refuse by name what would make a fold depend on more than its events.

A fold may use the names that it defines, those of a list, and what modules of a list offer, without
what reads a clock, a time zone of the machine, or the order of a set. It guards against accidents:
whoever writes a definition may run code in the job, and could get around it.
"""

import ast
import builtins
from collections.abc import Iterator
from typing import Final

from cdc.derive.fold.module import Module
from cdc.derive.sql.cut_time import NAME as CUT_TIME
from cdc.derive.sql.problem import Problem

MODULES: Final = (
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "functools",
    "itertools",
    "json",
    "math",
    "re",
    "typing",
)
"""What a fold may import."""
REFUSED: Final = "Refused"
"""The exception that a fold raises for an event that cannot be."""
_FUNCTIONS: Final = """
    abs all any ascii bin bool bytes callable chr classmethod complex dict divmod enumerate filter
    float format hex int isinstance issubclass iter len list map max min next oct ord pow property
    range repr reversed round slice sorted staticmethod str sum super tuple zip
    False None True NotImplemented Ellipsis __build_class__ __debug__
""".split()  # noqa: SIM905 - a list of words
BUILTINS: Final = {
    name: value
    for name, value in vars(builtins).items()
    if name in _FUNCTIONS or (isinstance(value, type) and issubclass(value, Exception))
}
"""The names that are there without an import."""
_FROM_EVENTS: Final = "a fold knows its state and its event only: use a column of the event"
_NO_ORDER: Final = ("the order of a set differs from run to run", "write a tuple, a list or a dict")
_ZONE: Final = (
    "{} depends on the time zone of the machine",
    "add a timedelta to a datetime in UTC, or subtract one from it",
)
_CLOCK: Final = ("{} reads the clock", "use a column of the event")
_CHANGES: Final = ("a default that can change is kept from one event to the next", "write None")
_CONTEXT: Final = ("{} changes how others calculate", "use quantize with a rounding")
_NAMED: Final = {
    **dict.fromkeys(("now", "utcnow", "today"), _CLOCK),
    **dict.fromkeys(("fromtimestamp", "utcfromtimestamp", "astimezone", "timestamp"), _ZONE),
    **dict.fromkeys(("getcontext", "setcontext", "DefaultContext"), _CONTEXT),
    **dict.fromkeys(("set", "frozenset"), _NO_ORDER),
    **dict.fromkeys(("hash", "id"), ("{} differs from run to run", "compare the values")),
}
_ATTRIBUTES: Final = frozenset(_NAMED) - {"set", "frozenset", "hash", "id"}


def purity_problems(module: Module) -> Iterator[Problem]:
    """Yield a problem for each use of what a fold may not use."""
    bound = {*_bound(module.tree), *BUILTINS, REFUSED}
    members = {id(node) for node in _looked_in(module.tree)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.arguments):
            yield from (module.problem(each, *_CHANGES) for each in _changing(node))
        complaint = _complaint(node, bound)
        if complaint is None and isinstance(node, ast.Set) and id(node) not in members:
            complaint = _NO_ORDER
        if complaint is not None:
            yield module.problem(node, *complaint)


def _complaint(node: ast.AST, bound: set[str]) -> tuple[str, str] | None:
    match node:
        case ast.Import(names=names):
            return _imported([each.name for each in names])
        case ast.ImportFrom(module=name, names=names, level=level):
            return _imported(["." * level + (name or "")]) or _taken(names)
        case ast.Name(id=name, ctx=ast.Load()) if name not in bound:
            return _unknown(name)
        case ast.Attribute(attr=name):
            return _attribute(name)
        case _:
            return _refused(node)


def _refused(node: ast.AST) -> tuple[str, str] | None:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) if _is_internal(name):
            return f"{name} is a name of Python's own", "choose another name"
        case ast.Global() | ast.Nonlocal():
            return "a fold keeps nothing beside its state", "return it as a column of the state"
        case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            return "a fold waits for nothing", "write plain functions"
        case ast.SetComp():
            return _NO_ORDER
        case _:
            return None


def _imported(names: list[str]) -> tuple[str, str] | None:
    refused = [name for name in names if name not in MODULES]
    return (f"import of {refused[0]} is refused", f"use {', '.join(MODULES)}") if refused else None


def _taken(names: list[ast.alias]) -> tuple[str, str] | None:
    if names[0].name == "*":
        return "import of * is refused", "name what you use"
    return next(filter(None, (_attribute(each.name) for each in names)), None)


def _attribute(name: str) -> tuple[str, str] | None:
    if _is_internal(name):
        return f"{name} is a name of Python's own", _FROM_EVENTS
    return _worded(name) if name in _ATTRIBUTES else None


def _unknown(name: str) -> tuple[str, str]:
    if name in _NAMED:
        return _worded(name)
    if name == CUT_TIME:
        return f"{name} is refused in a fold", "name cut_time() in a view over the fold"
    if hasattr(builtins, name):
        return f"{name} is refused in a fold", _FROM_EVENTS
    return f"unknown name {name}", "define or import it"


def _worded(name: str) -> tuple[str, str]:
    what, remedy = _NAMED[name]
    return what.format(name), remedy


def _changing(node: ast.arguments) -> Iterator[ast.expr]:
    """Yield the defaults of parameters that may be changed by a call."""
    for default in [*node.defaults, *node.kw_defaults]:
        if isinstance(default, ast.List | ast.Dict | ast.ListComp | ast.DictComp | ast.Call):
            yield default


def _is_internal(name: str) -> bool:
    return name.startswith("__")


def _looked_in(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield what stands to the right of ``in``: a set there has no order that shows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                if isinstance(operator, ast.In | ast.NotIn):
                    yield right


def _bound(tree: ast.AST) -> Iterator[str]:
    """Yield every name that the file gives to something, wherever it does."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=str(name), ctx=ast.Store()) | ast.arg(arg=str(name)):
                yield name
            case ast.FunctionDef(name=str(name)) | ast.ClassDef(name=str(name)):
                yield name
            case ast.alias(name=name, asname=given):
                yield given or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
