"""Read the YAML front matter in the first comment of a definition."""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from cdc.derive.definition.definition import Refresh
from cdc.derive.sql.problem import Problem

LATER: Final = ("changes", "emit", "kind", "late", "within")
"""Keys that definitions will have, but do not have yet."""
_COMMENT: Final = re.compile(
    r"\s*/\*[ \t]*---[ \t]*\n(?P<yaml>.*?)^[ \t]*---\s*\*/", re.DOTALL | re.MULTILINE
)
_BEGINS: Final = re.compile(r"\s*/\*\s*---")


class FrontMatter(BaseModel):
    """The keys of the front matter."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    doc: str = ""
    refresh: Refresh = "incremental"
    key: list[str] = Field(default=[], min_length=1)


@dataclass(frozen=True, slots=True)
class _Place:
    file: str
    first: int  # the line of the file at which the YAML begins

    def problem(self, line: int, column: int, message: str, remedy: str) -> Problem:
        """Return a problem at a line and column of the YAML, both counted from 0."""
        return Problem(self.file, self.first + line, column + 1, message, remedy)


def front_matter(file: str, text: str) -> tuple[FrontMatter, list[Problem]]:
    """Return the front matter of a file's text; the defaults if it has none or has problems."""
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
        return FrontMatter.model_validate(raw), []
    except ValidationError as error:
        return FrontMatter(), [_explain(place, node, each) for each in error.errors()]


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
    name = str(error["loc"][0])
    mark = next(
        (key.start_mark for key, _ in node.value if str(key.value) == name), node.start_mark
    )
    message, remedy = _message(name, error)
    return place.problem(mark.line, mark.column, message, remedy)


def _message(name: str, error: ErrorDetails) -> tuple[str, str]:
    if name in LATER:
        return f"{name} is not supported yet", "remove it"
    if error["type"] == "extra_forbidden":
        near = get_close_matches(name, FrontMatter.model_fields, n=1)
        keys = ", ".join(FrontMatter.model_fields)
        return f"unknown key {name}", f"did you mean {near[0]}?" if near else f"keys are {keys}"
    text = error["msg"]
    return f"{name}: {text[:1].lower()}{text[1:]}", "correct the value"
