"""Only cdc/events/values/sql_text.py puts quotes around a text, for every parser of SQL.

Quoted text elsewhere is a constant. A value that is put between quotes by hand may contain a
quote, and Spark replaces a ``${..}`` in it by the value of a setting.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ONLY_HERE = ROOT / "cdc" / "events" / "sql_text.py"
QUOTES = "'\"`"
NOT_SQL = {
    "cdc/cli/init.py": "YAML",
    "cdc/stack/servers/connect.py": "JAAS",
}
"""Modules that double a quote for another language."""
SAID = re.compile(
    r"\b(SELECT|WHERE|CREATE|ALTER|DROP|DELETE|CASE|WHEN|THEN|ELSE|CAST|AS|AND|OR|IN|SET|TABLE|FROM|"
    r"RLIKE|COMMENT|IF|struct|concat|coalesce|array)\b"
)


def sources() -> list[Path]:
    found = [*ROOT.glob("cdc/**/*.py"), *ROOT.glob("jobs/**/*.py")]
    return sorted(path for path in found if path != ONLY_HERE)


def doubled(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that escape a quote: ``text.replace("'", ..)``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            quote = isinstance(first, ast.Constant) and first.value in {*QUOTES}
            if node.func.attr == "replace" and quote:
                yield node.lineno


def between(tree: ast.AST) -> Iterator[int]:
    """Yield the lines with an f-string of SQL that puts a value between two quotes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or not SAID.search(_constants(node)):
            continue
        for before, middle, after in zip(
            node.values, node.values[1:], node.values[2:], strict=False
        ):
            if isinstance(middle, ast.FormattedValue) and _quoted(_text(before), _text(after)):
                yield node.lineno


def _quoted(before: str, after: str) -> bool:
    """Return whether a quote opens right before the value or closes right after it."""
    return any(
        before.endswith(quote)
        and after.startswith(quote)
        and (before.count(quote) % 2 == 1 or quote == "`")
        for quote in QUOTES
    )


def _constants(node: ast.JoinedStr) -> str:
    return " ".join(map(_text, node.values))


def _text(node: ast.AST) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ""


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_other_module_quotes(path: Path) -> None:
    tree = ast.parse(path.read_text())
    escaped = [] if str(path.relative_to(ROOT)) in NOT_SQL else list(doubled(tree))

    assert escaped == []
    assert list(between(tree)) == []


@pytest.mark.parametrize(
    "code",
    [
        "f\"topic = '{topic}' AND landing <= {n}\"",
        'f"CREATE VIEW `{name}` AS x"',
        "f'SELECT \"{name}\" FROM t'",
        "f\"CASE '{a}' WHEN '{b}' THEN 1\"",
    ],
)
def test_the_check_sees_a_text_between_quotes(code: str) -> None:
    assert list(between(ast.parse(code)))


@pytest.mark.parametrize("code", ['x.replace("\'", "\'\'")', "x.replace('`', '``')"])
def test_the_check_sees_an_escape(code: str) -> None:
    assert list(doubled(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ["f\"CASE WHEN {a} THEN 'x' ELSE {b} END\"", "f\"'{name}' is none\""]
)
def test_the_check_knows_a_constant_and_a_message(code: str) -> None:
    assert list(between(ast.parse(code))) == []
