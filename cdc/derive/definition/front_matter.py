"""Read the YAML front matter in the first comment of a definition."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Final, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from cdc.derive.definition.definition import Refresh
from cdc.derive.definition.durations import is_duration, microseconds
from cdc.derive.definition.late_matter import Emit, LateMatter
from cdc.derive.pattern.pattern import Bounds
from cdc.derive.sql.problem import Place, Problem

PARTITION_ROWS: Final = 100_000
MOST_PARTITION_ROWS: Final = 1_000_000
_OF_PATTERNS: Final = ("within", "max_partition_rows")
_OF_VIEWS: Final = ("late", "emit")
_OF_HISTORIES: Final = ("table", "track")
_TABLE: Final = re.compile(r"[^.]+\.[^.]+")
_CHANGES: Final = "read the changes of any table with wal2lake changes, or cdc.changes"
_COMMENT: Final = re.compile(
    r"\s*/\*[ \t]*---[ \t]*\n(?P<yaml>.*?)^[ \t]*---\s*\*/", re.DOTALL | re.MULTILINE
)
_BEGINS: Final = re.compile(r"\s*/\*\s*---")


class FrontMatter(BaseModel):
    """Defines the keys of the front matter."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    doc: str = ""
    refresh: Refresh = "incremental"
    key: list[str] = Field(default=[], min_length=1)
    kind: Literal["view", "pattern", "history"] = "view"
    late: LateMatter | None = None
    emit: Emit = "updates"
    table: str | None = None
    track: list[str] = Field(default=[], min_length=1)
    within: Annotated[str, AfterValidator(is_duration)] | None = None
    max_partition_rows: int | None = Field(default=None, ge=1, le=MOST_PARTITION_ROWS)

    @field_validator("table")
    @classmethod
    def _is_table(cls, text: str | None) -> str | None:
        if text is not None and not _TABLE.fullmatch(text):
            raise ValueError("write schema.table: shop.customers")
        return text

    @property
    def bounds(self) -> Bounds:
        """Return how far a match may reach."""
        return Bounds(
            within=None if self.within is None else microseconds(self.within),
            most_rows=self.max_partition_rows or PARTITION_ROWS,
        )


@dataclass(frozen=True, slots=True)
class _Place:
    file: str
    first: int  # the line of the file at which the YAML begins

    def problem(self, line: int, column: int, message: str, remedy: str) -> Problem:
        """Return a problem at a line and column of the YAML, both counted from 0."""
        return Problem(self.file, self.first + line, column + 1, message, remedy)


def front_matter(file: str, text: str) -> tuple[FrontMatter, list[Problem]]:
    """Return the front matter of a file's text; the defaults if it has none or has problems.

    With problems in other keys it still has its kind, so that the rest of the text can be checked.
    """
    found = _COMMENT.match(text)
    if found is None:
        return FrontMatter(), _not_closed(file, text)
    place = _Place(file, text.count("\n", 0, found.start("yaml")) + 1)
    try:
        node = yaml.compose(found["yaml"], Loader=yaml.SafeLoader)
        raw = yaml.safe_load(found["yaml"])
    except yaml.YAMLError as error:
        return FrontMatter(), [_not_yaml(place, error)]
    return (FrontMatter(), []) if node is None else _checked(place, node, raw)


def _checked(place: _Place, node: yaml.Node, raw: object) -> tuple[FrontMatter, list[Problem]]:
    if not isinstance(node, yaml.MappingNode):
        remedy = "write keys: doc, refresh, key"
        return FrontMatter(), [place.problem(0, 0, "the front matter has no keys", remedy)]
    twice = _twice(place, node)
    if twice:
        return FrontMatter(), twice
    try:
        front = FrontMatter.model_validate(raw)
    except ValidationError as error:
        kind = raw.get("kind") if isinstance(raw, dict) else None
        front = FrontMatter(kind=kind if kind in {"pattern", "history"} else "view")
        return front, [_explain(place, node, each) for each in error.errors()]
    of_kinds = (_of_patterns, _of_histories, _of_views)
    return front, [problem for of in of_kinds for problem in of(place, node, front)]


def _of_patterns(place: _Place, node: yaml.MappingNode, front: FrontMatter) -> Iterator[Problem]:
    """Yield the problems of the keys that patterns have, and need."""
    given = [name for name in _OF_PATTERNS if getattr(front, name) is not None]
    if front.kind == "pattern" and not given:
        mark = _mark(node, "kind")
        what = "a pattern without within has no end"
        remedy = "write within: 10 minutes, or max_partition_rows: 10000"
        yield place.problem(mark.line, mark.column, what, remedy)
    for name in given if front.kind != "pattern" else ():
        mark = _mark(node, name)
        what = f"{name} is a key of patterns only"
        yield place.problem(mark.line, mark.column, what, "remove it, or write kind: pattern")


def _of_views(place: _Place, node: yaml.MappingNode, front: FrontMatter) -> Iterator[Problem]:
    """Yield the problems of the keys that only queries with windows have."""
    given = [name for name in _OF_VIEWS if name in front.model_fields_set]
    kinds = "histories" if front.kind == "history" else "patterns"
    for name in given if front.kind != "view" else ():
        mark = _mark(node, name)
        yield place.problem(mark.line, mark.column, f"{name} is no key of {kinds}", "remove it")
    if front.kind == "view" and front.emit == "final" and front.late is None:
        mark = _mark(node, "emit")
        what = "emit: final without late: no window would ever be final"
        remedy = "write late: {column: ts, allowed: 10 minutes, policy: aside}"
        yield place.problem(mark.line, mark.column, what, remedy)


def _of_histories(place: _Place, node: yaml.MappingNode, front: FrontMatter) -> Iterator[Problem]:
    """Yield the problems of the keys that histories have, need, or cannot have."""
    is_history = front.kind == "history"
    if is_history and front.table is None:
        mark = _mark(node, "kind")
        remedy = "write table: shop.customers"
        yield place.problem(mark.line, mark.column, "a history is of a table", remedy)
    wrong = ("key", "refresh") if is_history else _OF_HISTORIES
    what = "{} is no key of histories" if is_history else "{} is a key of histories only"
    remedy = "remove it" if is_history else "remove it, or write kind: history"
    for name in wrong:
        if name in front.model_fields_set:
            mark = _mark(node, name)
            yield place.problem(mark.line, mark.column, what.format(name), remedy)


def behind_front_matter(text: str) -> int:
    """Return where the front matter of a text ends; 0 if it has none."""
    found = _COMMENT.match(text)
    return 0 if found is None else found.end()


def _not_closed(file: str, text: str) -> list[Problem]:
    found = _BEGINS.match(text)
    if found is None:
        return []
    line = text.count("\n", 0, found.end()) + 1
    remedy = "begin it with a line /* --- and end it with a line --- */"
    return [Problem(file, line, 1, "the front matter is not closed", remedy)]


def _not_yaml(place: _Place, error: yaml.YAMLError) -> Problem:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    line, column = (mark.line, mark.column) if mark else (0, 0)
    what = error.problem if isinstance(error, yaml.MarkedYAMLError) else "a character is invalid"
    remedy = "indent with spaces, and quote values that contain : # * or {"
    return place.problem(line, column, f"the front matter is not YAML: {what}", remedy)


def _twice(place: _Place, node: yaml.MappingNode) -> list[Problem]:
    seen: set[str] = set()
    problems = []
    for key, _ in node.value:
        name = str(key.value)
        if name in seen:
            line, column = key.start_mark.line, key.start_mark.column
            problems.append(place.problem(line, column, f"{name} is given twice", "keep one"))
        seen.add(name)
    return problems


def _explain(place: _Place, node: yaml.MappingNode, error: ErrorDetails) -> Problem:
    path = [str(part) for part in error["loc"]]
    mark = _mark(node, *path)
    message, remedy = _message(path, error)
    return place.problem(mark.line, mark.column, message, remedy)


def _mark(node: yaml.MappingNode, name: str, *below: str) -> yaml.Mark:
    """Return where a key is, or the nearest above it that is there."""
    for key, value in node.value:
        if str(key.value) == name:
            found: yaml.Mark = key.start_mark
            is_deeper = below and isinstance(value, yaml.MappingNode)
            has = is_deeper and below[0] in {str(each.value) for each, _ in value.value}
            return _mark(value, *below) if has else found
    return node.start_mark


def key_place(text: str, *path: str) -> Place:
    """Return the line and column of a key of a text's front matter, which has no problems."""
    found = _COMMENT.match(text)
    node = yaml.compose(found["yaml"], Loader=yaml.SafeLoader) if found else None
    if found is None or not isinstance(node, yaml.MappingNode):
        return 1, 1
    mark = _mark(node, *path)
    return text.count("\n", 0, found.start("yaml")) + 1 + mark.line, mark.column + 1


def _message(path: Sequence[str], error: ErrorDetails) -> tuple[str, str]:
    name = ".".join(path)
    if name == "changes":
        return "changes needs no key", _CHANGES
    if error["type"] == "extra_forbidden":
        fields = FrontMatter.model_fields if len(path) == 1 else LateMatter.model_fields
        near = get_close_matches(path[-1], fields, n=1)
        keys = ", ".join(fields)
        return f"unknown key {name}", f"did you mean {near[0]}?" if near else f"keys are {keys}"
    if error["type"] == "model_type":
        return f"{name}: it has no keys", "write {column: ts, allowed: 10 minutes}"
    text = error["msg"].removeprefix("Value error, ")
    return f"{name}: {text[:1].lower()}{text[1:]}", "correct the value"


def key_problems(file: str, front: FrontMatter, names: Sequence[str]) -> list[Problem]:
    """Return what is wrong with the key, given the names of the output columns."""
    problems = [
        Problem(file, 1, 1, f"key: {name} is no output column", f"use one of {', '.join(names)}")
        for name in front.key
        if name not in names
    ]
    if len(set(front.key)) < len(front.key):
        problems.append(Problem(file, 1, 1, "key: a column is given twice", "keep one of them"))
    return problems
