"""Check what a fold's file consists of: the header, constants, functions, and one ``apply``."""

import ast
from collections.abc import Iterator
from typing import Final

from cdc.derive.fold.module import Module, is_text
from cdc.derive.sql.problem import Problem

APPLY: Final = "apply"
_PARAMETERS: Final = ["state", "event"]
_WRITE: Final = "write def apply(state, event):"
_STATEMENTS: Final = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
)


def shape_problems(module: Module) -> Iterator[Problem]:
    """Yield what is wrong with the statements of the file itself, and with ``apply``."""
    for statement in module.tree.body:
        if not isinstance(statement, _STATEMENTS) and not is_text(statement):
            remedy = "keep imports, constants, functions and classes"
            yield module.problem(statement, "this statement is refused outside a function", remedy)
    found = [each for each in module.tree.body if _is_apply(each)]
    if not found:
        yield module.problem(module.tree, "the file has no function apply", _WRITE)
    for again in found[1:]:
        yield module.problem(again, "apply is given twice", "keep one")
    for each in found:
        yield from _apply_problems(module, each)


def _is_apply(statement: ast.stmt) -> bool:
    named = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return named and getattr(statement, "name", "") == APPLY


def _apply_problems(module: Module, apply: ast.stmt) -> Iterator[Problem]:
    if not isinstance(apply, ast.FunctionDef):
        yield module.problem(apply, "apply is no plain function", _WRITE)
        return
    for decorator in apply.decorator_list:
        yield module.problem(decorator, "apply has a decorator", "remove it")
    every = apply.args
    names = [arg.arg for arg in [*every.posonlyargs, *every.args]]
    more = [every.vararg, every.kwarg, *every.kwonlyargs, *every.defaults]
    if names != _PARAMETERS or any(more):
        yield module.problem(apply, "apply has other parameters than state and event", _WRITE)
