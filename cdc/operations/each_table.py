"""Handles an operation one table after the other."""

from collections.abc import Callable

from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.state.operation import Operation, TableResult
from cdc.tables import TableId

RunOne = Callable[[TableId, Operation, Reporter], TableResult]


def each_table(run_one: RunOne) -> Handler:
    """Return a handler that runs the tables that are not done yet, also after a crash."""

    def run(operation: Operation, reporter: Reporter) -> None:
        reporter.tell(tables=len(operation.tables))
        for name in reporter.remaining(operation.tables):
            reporter.tell(table=name)
            reporter.done(run_one(TableId.parse(name), operation, reporter))

    return run
