"""Deleting what the lake and Kafka have of a table that is not captured any more.

The topic itself stays, without its records: made anew, its offsets would begin again, and the log
and the order of a table are by offset. Its events stay in the log.
"""

from collections.abc import Callable, Collection
from typing import Final

from deltalake import DeltaTable

from cdc.client.plan_inputs import size
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.kafka.empty_topic import empty_topic
from cdc.lake.layout import log_path, reading_path, readings_path, table_path
from cdc.lake.records.readings import Readings
from cdc.lake.table.positions import MARK, landed_position, open_table
from cdc.operations.desk.desk import Handler
from cdc.operations.desk.reporter import Reporter
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import captured
from cdc.state.endpoints import Endpoints
from cdc.state.operation import Operation, TableResult
from cdc.tables import TableId, matches

Remove = Callable[[str], None]
"""Deletes all below a path of the lake; nothing happens where there is nothing."""

COMMAND: Final = "purge"
_COMMITS: Final = 50  # looked at to tell whether a table is one of ours


def handler(current: Callable[[], Config], endpoints: Endpoints, remove: Remove) -> Handler:
    """Of the operation ``purge``; ``current`` is the configuration that the job runs with then."""

    def run(operation: Operation, reporter: Reporter) -> None:
        config = current()
        tables = [TableId.parse(name) for name in operation.tables]
        refuse_captured(config, tables, _captured(config, endpoints))
        for table in map(TableId.parse, reporter.left(operation.tables)):
            reporter.point()
            reporter.done(_purge(config, endpoints, table, reporter, remove=remove))

    return run


def refuse_captured(
    config: Config, tables: Collection[TableId], known: Collection[TableId] = ()
) -> None:
    """Raises CONFIG for a table that ``source.tables`` names, CONFLICT for one that is captured."""
    for table in tables:
        table_path(config, table)  # for its error about a name that is no directory's
        if matches(table, config.source.tables):
            raise CdcError(
                ErrorKind.CONFIG,
                f"table {table} is named by source.tables: what is kept is not purged",
                remedy="take it out of source.tables first",
            )
        if table in known:
            raise CdcError(
                ErrorKind.CONFLICT,
                f"table {table} is still captured",
                remedy="wal2lake apply-config, without --purge at first",
            )


def refuse_unknown(config: Config, tables: Collection[TableId]) -> None:
    """Raises CONFIG for a table of which the lake has nothing, or nothing of ours."""
    for table in tables:
        found = open_table(table_path(config, table))
        if found is None and not Readings(readings_path(config)).of(str(table)):
            raise CdcError(
                ErrorKind.CONFIG,
                f"the lake has no table {table}",
                remedy="names are case-sensitive: wal2lake plan names what is taken out",
            )
        if found is not None and not _is_ours(found):
            raise CdcError(
                ErrorKind.CONFLICT,
                f"the Delta table at {table_path(config, table)} was not made by wal2lake",
                remedy="delete it yourself, if nobody needs it",
            )


def _is_ours(table: DeltaTable) -> bool:
    return any(MARK in str(commit.get("userMetadata")) for commit in table.history(_COMMITS))


def _captured(config: Config, endpoints: Endpoints) -> Collection[TableId]:
    return captured(worker_rest.configuration(endpoints.connect, config.name))


def _purge(
    config: Config, endpoints: Endpoints, table: TableId, reporter: Reporter, *, remove: Remove
) -> TableResult:
    """The Delta table last: as long as it is there, what was interrupted can be asked for again."""
    reporter.tell(table=str(table), phase="emptying the topic")
    topic = table.topic(config.name)
    reach(Failpoint.BEFORE_PURGE_TOPIC)
    emptied = empty_topic(endpoints.kafka, topic, before=_landed(config, topic))
    reach(Failpoint.AFTER_PURGE_TOPIC)
    reporter.tell(phase="deleting the readings")
    reach(Failpoint.BEFORE_PURGE_INDEX)
    Readings(readings_path(config)).forget(str(table))
    reach(Failpoint.AFTER_PURGE_INDEX)
    reach(Failpoint.BEFORE_PURGE_READINGS)
    remove(reading_path(config, table, 0).rpartition("/")[0])
    reach(Failpoint.AFTER_PURGE_READINGS)
    reporter.tell(phase="deleting the table")
    path = table_path(config, table)
    found = open_table(path)
    gone = 0 if found is None else size(found)
    reach(Failpoint.BEFORE_PURGE_TABLE)
    remove(path)
    reach(Failpoint.AFTER_PURGE_TABLE)
    told = f"{gone:,} bytes deleted; " + ("its topic is empty" if emptied else "it had no topic")
    return TableResult(table=str(table), note=told)


def _landed(config: Config, topic: str) -> int | None:
    """The offset after what has landed: where landing goes on if the table is taken in again."""
    landed = landed_position(log_path(config))
    last = None if landed is None else landed.offsets.get(topic)
    return None if last is None else last + 1
