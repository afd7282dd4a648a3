"""Parse a file in Python, and report problems at the places of its nodes. Nothing of it runs."""

import ast
import warnings
from dataclasses import dataclass
from types import CodeType
from typing import Final

from cdc.derive.sql.problem import Place, Problem

LONGEST: Final = 100_000
_SIMPLIFY: Final = "split it into functions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """Holds the syntax tree of a file, and its code, which is compiled but has not run."""

    file: str
    text: str
    tree: ast.Module
    code: CodeType

    def problem(self, node: ast.AST, message: str, remedy: str) -> Problem:
        """Return a problem at a node."""
        line, column = self.place(node)
        return Problem(self.file, line, column, message, remedy)

    def place(self, node: ast.AST) -> Place:
        """Return the line and column of a node, in characters; (1, 1) for the whole file."""
        line, bytes_before = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        before = self.text.split("\n")[line - 1 : line]
        return line, len("".join(before).encode()[:bytes_before].decode(errors="replace")) + 1


def read_module(file: str, text: str) -> tuple[Module | None, list[Problem]]:
    """Return the module of a text; None if Python does not accept it, or warns of it."""
    if len(text) > LONGEST:
        what = f"it is longer than {LONGEST} characters"
        return None, [Problem(file, 1, 1, what, "split the table")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)
            warnings.simplefilter("error", DeprecationWarning)  # of an invalid escape in a string
            tree = ast.parse(text, filename=file)
            # A statement of assert means the same, however this program was started.
            code = compile(text, file, "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        what = f"it is not Python: {error.msg}"
        line, column = max(error.lineno or 1, 1), max(error.offset or 1, 1)
        return None, [Problem(file, line, column, what, "correct it: try it with python")]
    except (RecursionError, MemoryError):
        return None, [Problem(file, 1, 1, "it is nested too deeply", _SIMPLIFY)]
    except ValueError:  # it has a zero byte, or text that is no UTF-8
        return None, [Problem(file, 1, 1, "it has a character that Python refuses", "remove it")]
    return Module(file=file, text=text, tree=tree, code=code), []


def canonical(module: Module, without: str) -> str:
    """Return a text that is equal for files that differ in comments, layout and docstrings only.

    The value of the constant ``without`` changes nothing either.
    """
    tree = ast.parse(module.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            node.body = [each for each in node.body if not is_text(each)] or [ast.Pass()]
    return "\n".join(ast.dump(each) for each in tree.body if without not in targets(each))


def is_text(statement: ast.stmt) -> bool:
    """Return whether the statement is a text alone, such as a docstring."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def targets(statement: ast.stmt) -> list[str]:
    """Return the names to which the statement assigns a value; none if it is no assignment."""
    match statement:
        case ast.Assign(targets=nodes):
            return [node.id for node in nodes if isinstance(node, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []
