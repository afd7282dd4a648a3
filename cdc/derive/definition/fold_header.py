"""Read the header of a fold, ``table = {...}``, from the syntax tree: nothing of the file runs."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from cdc.derive.definition.definition import Refresh
from cdc.derive.fold.fold import DETAIL, FAULT, VERSION
from cdc.derive.fold.module import Module, targets
from cdc.derive.fold.values import TYPES, Column, Type, type_of
from cdc.derive.sql.problem import Problem
from cdc.events.names import OURS
from cdc.tables import TableId

HEADER: Final = "table"
_WRITE: Final = (
    'write table = {"events": "schema.table", "stream": "column", "version": "column", '
    '"columns": {"name": "type"}}'
)
_MOST: Final = 2**63 - 1


def _listed(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return [value] if isinstance(value, str) else value


class FoldHeader(BaseModel):
    """Defines the keys of the header."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    events: str
    stream: Annotated[list[str], BeforeValidator(_listed)] = Field(min_length=1)
    version: str
    columns: dict[str, str] = Field(min_length=1)
    first: int = Field(default=1, ge=0, le=_MOST)
    doc: str = ""
    refresh: Refresh = "incremental"

    @field_validator("events")
    @classmethod
    def _is_table(cls, text: str) -> str:
        if [bool(part) for part in text.split(".")] != [True, True]:
            raise ValueError("write it as schema.table")
        return text

    @field_validator("columns")
    @classmethod
    def _have_types(cls, columns: dict[str, str]) -> dict[str, str]:
        for name, text in columns.items():
            if type_of(text) is None:
                raise ValueError(f"{name} is of type {text}; types are {TYPES}")
        return columns

    @property
    def table(self) -> TableId:
        """Return the table of the events."""
        return TableId(*self.events.split("."))

    @property
    def state(self) -> tuple[Column, ...]:
        """Return the columns of the state."""
        named = ((name, type_of(text)) for name, text in self.columns.items())
        return tuple(Column(name, kind) for name, kind in named if isinstance(kind, Type))


def fold_header(module: Module) -> tuple[FoldHeader | None, ast.AST, list[Problem]]:
    """Return the header, the node of the events' name, and the problems; None with any."""
    found = [each for each in module.tree.body if HEADER in targets(each)]
    if not found:
        return None, module.tree, [module.problem(module.tree, "the file has no header", _WRITE)]
    if len(found) > 1:
        return None, found[1], [module.problem(found[1], "table is given twice", "keep one")]
    node = getattr(found[0], "value", None)
    if not isinstance(node, ast.Dict):
        return None, found[0], [module.problem(found[0], "table is no dictionary", _WRITE)]
    return _read(_Keys(module, node))


class _Keys:
    """Finds the places of the header's keys."""

    def __init__(self, module: Module, node: ast.Dict) -> None:
        self.module, self.node = module, node

    def of(self, name: object) -> ast.AST:
        """Return the node of a key's value; that of the header if there is no such key."""
        nodes = (value for key, value in _pairs(self.node) if _constant(key) == name)
        return next(nodes, self.node)

    def problem(self, name: object, message: str, remedy: str) -> Problem:
        return self.module.problem(self.of(name), message, remedy)


def _read(keys: _Keys) -> tuple[FoldHeader | None, ast.AST, list[Problem]]:
    problems = [*_not_literal(keys), *_twice(keys)]
    if problems:
        return None, keys.node, problems
    try:
        header = FoldHeader.model_validate(ast.literal_eval(keys.node))
    except ValidationError as error:
        return None, keys.node, [_explained(keys, each) for each in error.errors()]
    problems = list(_misnamed(keys, header))
    return (None if problems else header), keys.of("events"), problems


def _not_literal(keys: _Keys) -> Iterator[Problem]:
    for key, value in _pairs(keys.node):
        if key is None or not isinstance(_constant(key), str):
            remedy = "write the keys as texts in quotes"
            yield keys.module.problem(key or value, "a key of the header is no text", remedy)
        try:
            ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            remedy = "write texts, numbers, lists and dictionaries only"
            yield keys.module.problem(value, "the header is read without running it", remedy)


def _twice(keys: _Keys) -> Iterator[Problem]:
    for node in ast.walk(keys.node):
        counts: Counter[object] = Counter()
        for key, _ in _pairs(node) if isinstance(node, ast.Dict) else ():
            name = _constant(key)
            counts[name] += 1
            if key is not None and counts[name] > 1:
                yield keys.module.problem(key, f"{name} is given twice", "keep one")


def _explained(keys: _Keys, error: ErrorDetails) -> Problem:
    name = str(error["loc"][0])
    if error["type"] == "missing":
        return keys.problem(name, f"the header has no {name}", _WRITE)
    if error["type"] == "extra_forbidden":
        near = get_close_matches(name, FoldHeader.model_fields, n=1)
        known = ", ".join(FoldHeader.model_fields)
        remedy = f"did you mean {near[0]}?" if near else f"keys are {known}"
        return keys.problem(name, f"unknown key {name}", remedy)
    text = error["msg"].removeprefix("Value error, ")
    return keys.problem(name, f"{name}: {text[:1].lower()}{text[1:]}", "correct the value")


def _misnamed(keys: _Keys, header: FoldHeader) -> Iterator[Problem]:
    """Yield the problems of the names that the two tables' columns would have."""
    state = [*header.stream, VERSION, *header.columns]
    for key, names in (("columns", state), ("stream", [*header.stream, VERSION, FAULT, DETAIL])):
        twice = _repeated(names)
        if twice is not None:
            what = f"two columns are called {twice}"
            yield keys.problem(key, what, "choose another name, or rename it in a view")
    for name in header.columns:
        if not name.isidentifier():
            yield keys.problem("columns", f"{name!r} is no name", "use letters, digits and _")
        if name.lower().startswith(OURS):
            what = f"{name} is a name of wal2lake's own"
            yield keys.problem("columns", what, "choose one that does not begin with _cdc_")


def _repeated(names: Sequence[str]) -> str | None:
    """Return a name that is there twice, in any case of its letters."""
    counts = Counter(name.lower() for name in names)
    return next((name for name in reversed(names) if counts[name.lower()] > 1), None)


def _pairs(node: ast.Dict) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    return zip(node.keys, node.values, strict=True)


def _constant(node: ast.AST | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None
