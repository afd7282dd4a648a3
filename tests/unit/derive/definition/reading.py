"""Read definitions from texts in tests."""

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_definition
from cdc.derive.sql.problem import Problem


def definition(text: str, name: str = "marts.sales.sql") -> Definition:
    read, problems = read_definition(name, name, text)
    assert problems == []
    assert read is not None
    return read


def problems(text: str, name: str = "marts.sales.sql") -> list[Problem]:
    read, found = read_definition(name, name, text)
    assert (read is None) == bool(found)
    return found


def problem(text: str) -> Problem:
    (found,) = problems(text)
    return found
