"""Check a tree against the allow-list: every node, its arguments and its form."""

from collections.abc import Iterator
from typing import Final

from sqlglot import ErrorLevel, exp

from cdc.derive.sql import refused
from cdc.derive.sql.expressions import complaint
from cdc.derive.sql.nodes import NODES
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.derive.sql.queries import query_problems
from cdc.derive.sql.windows import window_complaint

_READ: Final = {kind: frozenset(arguments.split()) for kind, arguments in NODES.items()}
_LISTED = "docs/reference/derived-sql.md lists what may be used"
_REMEDIES: dict[type[exp.Expr], str] = {
    exp.RegexpLike: refused.WORDS["similar"],
    exp.RegexpILike: refused.WORDS["similar"],
    exp.Pow: "multiply",
    exp.Tuple: "compare the columns one by one",
    exp.ByteString: "write the text between plain quotes",
    exp.Any: "use IN",
    exp.All: "use NOT EXISTS",
}
_ARGUMENTS: dict[str, str] = {
    "order": refused.ORDER,
    "recursive": refused.RECURSIVE,
    "limit": refused.WORDS["limit"],
    "exclude": refused.FRAME,
}


def tree_problems(report: Reporter, query: exp.Query) -> list[Problem]:
    """Return the problems of a query; the rules for queries apply when all nodes are allowed."""
    nodes = list(query.walk(prune=_refuses))
    found = [problem for node in nodes for problem in _of_node(report, node)]
    return found or list(query_problems(report, nodes))


def _refuses(node: exp.Expr) -> bool:
    """Return whether what is below the node is not looked at."""
    return type(node) not in _READ or bool(_unread(node))


def _of_node(report: Reporter, node: exp.Expr) -> Iterator[Problem]:
    if type(node) not in _READ:
        remedy = _REMEDIES.get(type(node), _LISTED)
        yield report.on(node, f"{_shown(node)} is refused", remedy)
        return
    for argument in _unread(node):
        what = f"{argument.strip('_').upper()} is refused in {_shown(node)}"
        yield report.on(node, what, _ARGUMENTS.get(argument, _LISTED))
    wrong = complaint(node) or window_complaint(node)
    if wrong is not None:
        yield report.on(node, *wrong)


def _unread(node: exp.Expr) -> list[str]:
    """Return the arguments of a node that nobody reads."""
    read = _READ[type(node)]
    return [name for name, value in node.args.items() if value and name not in read]


def _shown(node: exp.Expr) -> str:
    if isinstance(node, exp.Query):
        return node.key.upper()
    return node.sql("postgres", unsupported_level=ErrorLevel.IGNORE)[:60]
