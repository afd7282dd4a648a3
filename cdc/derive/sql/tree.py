"""Check a tree against the allow-list: every node, its arguments and its form."""

from collections.abc import Iterator

from sqlglot import ErrorLevel, exp

from cdc.derive.sql import refused
from cdc.derive.sql.expressions import complaint
from cdc.derive.sql.nodes import NODES
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.derive.sql.queries import query_problems
from cdc.derive.sql.windows import window_complaint

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
    found = list(_nodes(report, query))
    return found or list(query_problems(report, query))


def _nodes(report: Reporter, query: exp.Query) -> Iterator[Problem]:
    def refuses(node: exp.Expr) -> bool:
        return type(node) not in NODES or bool(_unread(node))

    for node in query.walk(prune=refuses):
        if type(node) not in NODES:
            remedy = _REMEDIES.get(type(node), _LISTED)
            yield report.on(node, f"{_shown(node)} is refused", remedy)
            continue
        for argument in _unread(node):
            what = f"{argument.strip('_').upper()} is refused in {_shown(node)}"
            yield report.on(node, what, _ARGUMENTS.get(argument, _LISTED))
        wrong = complaint(node) or window_complaint(node)
        if wrong is not None:
            yield report.on(node, *wrong)


def _unread(node: exp.Expr) -> list[str]:
    """Return the arguments of a node that nobody reads."""
    read = NODES[type(node)].split()
    return [name for name, value in node.args.items() if value and name not in read]


def _shown(node: exp.Expr) -> str:
    if isinstance(node, exp.Query):
        return node.key.upper()
    return node.sql("postgres", unsupported_level=ErrorLevel.IGNORE)[:60]
