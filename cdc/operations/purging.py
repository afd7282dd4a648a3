"""Deletes what the lake and Kafka have of a table that is not captured any more.

The topic itself stays, without its records: in a new topic the offsets would begin again, and both
the log and the order of a table depend on offsets. The table's events stay in the log.
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
from cdc.state.operation import Operation, TableResult
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId, matches

Remove = Callable[[str], None]
"""Deletes everything below a path of the lake; does nothing where the path does not exist."""

COMMAND: Final = "purge"
_COMMITS: Final = 50  # how many to search for our mark, to tell whether wal2lake wrote a table


def handler(pipeline: Pipeline, remove: Remove) -> Handler:
    """Return the handler of ``purge``; ``pipeline`` has the configuration the job runs with."""

    def run(operation: Operation, reporter: Reporter) -> None:
        tables = [TableId.parse(name) for name in operation.tables]
        refuse_captured(pipeline.config, tables, _captured(pipeline))
        for table in map(TableId.parse, reporter.remaining(operation.tables)):
            reporter.safe_point()
            reporter.done(_purge(pipeline, table, reporter, remove=remove))

    return run


def refuse_captured(
    config: Config, tables: Collection[TableId], still_captured: Collection[TableId] = ()
) -> None:
    """Raise CONFIG for a table that ``source.tables`` names, CONFLICT for one still captured."""
    for table in tables:
        table_path(config, table)  # for its error about a name that cannot be a directory
        if matches(table, config.source.tables):
            raise CdcError(
                ErrorKind.CONFIG,
                f"table {table} is named by source.tables, so it is not purged",
                remedy="remove it from source.tables first",
            )
        if table in still_captured:
            raise CdcError(
                ErrorKind.CONFLICT,
                f"table {table} is still captured",
                remedy="run wal2lake apply-config first, without --purge",
            )


def refuse_unknown(config: Config, tables: Collection[TableId]) -> None:
    """Raise CONFIG for a table that the lake does not have, CONFLICT for another writer's."""
    for table in tables:
        opened = open_table(table_path(config, table))
        if opened is None and not Readings(readings_path(config)).of(str(table)):
            raise CdcError(
                ErrorKind.CONFIG,
                f"the lake has no table {table}",
                remedy="check the name, also its case: wal2lake plan lists the removed tables",
            )
        if opened is not None and not _is_ours(opened):
            raise CdcError(
                ErrorKind.CONFLICT,
                f"the Delta table at {table_path(config, table)} was not created by wal2lake",
                remedy="delete it yourself if nobody needs it",
            )


def _is_ours(table: DeltaTable) -> bool:
    return any(MARK in str(commit.get("userMetadata")) for commit in table.history(_COMMITS))


def _captured(pipeline: Pipeline) -> Collection[TableId]:
    return captured(worker_rest.configuration(pipeline.endpoints.connect, pipeline.name))


def _purge(
    pipeline: Pipeline, table: TableId, reporter: Reporter, *, remove: Remove
) -> TableResult:
    """Delete everything of one table, its Delta table last.

    As long as the Delta table exists, an interrupted purge can be requested again.
    """
    config = pipeline.config
    reporter.tell(table=str(table), phase="emptying the topic")
    topic = table.topic(pipeline.name)
    reach(Failpoint.BEFORE_PURGE_TOPIC)
    emptied = empty_topic(pipeline.endpoints.kafka, topic, before=_landed(config, topic))
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
    opened = open_table(path)
    deleted = 0 if opened is None else size(opened)
    reach(Failpoint.BEFORE_PURGE_TABLE)
    remove(path)
    reach(Failpoint.AFTER_PURGE_TABLE)
    topic_note = "its topic is empty" if emptied else "it had no topic"
    return TableResult(table=str(table), note=f"{deleted:,} bytes deleted; {topic_note}")


def _landed(config: Config, topic: str) -> int | None:
    """Return the offset after the last landed event, where landing would continue; else None."""
    landed = landed_position(log_path(config))
    last = None if landed is None else landed.offsets.get(topic)
    return None if last is None else last + 1
