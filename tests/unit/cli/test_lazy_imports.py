"""Modules that are imported by name, when they are needed, exist and have what is used of them."""

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

CODE = Path(__file__).parents[3] / "cdc"


def lazy_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield module and attribute of each ``import_module("...").name``, also through a variable."""
    modules = {
        target.id: module
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target, value in assigned(node)
        if isinstance(target, ast.Name) and (module := literal_import(value))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = node.value.id if isinstance(node.value, ast.Name) else ""
            if module := literal_import(node.value) or modules.get(name):
                yield module, node.attr


def assigned(node: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target with its value; ``a, b = c, d`` has two."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def literal_import(node: ast.expr) -> str | None:
    """Return the module's name if the expression is ``import_module`` of a literal."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        argument = node.args[0] if node.args else None
        if node.func.id == "import_module" and isinstance(argument, ast.Constant):
            return str(argument.value)
    return None


@cache
def used() -> list[tuple[str, str]]:
    """Return what the code imports by name; it is read once, not when tests are collected."""
    files = CODE.rglob("*.py")
    return sorted({use for file in files for use in lazy_names(ast.parse(file.read_text()))})


def test_the_command_up_imports_by_name() -> None:
    assert ("cdc.capture.bootstrap", "establish") in used()
    assert any(module == "cdc.lake.records.epochs" for module, _ in used())  # through a variable


def test_what_is_imported_by_name_exists() -> None:
    missing = [use for use in used() if not hasattr(import_module(use[0]), use[1])]
    assert missing == []
