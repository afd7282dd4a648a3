"""Chooses how a batch of a table is applied: by this process if it is small, otherwise by Spark."""

from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from cdc.apply.local.driver_commit import Committed, DriverBatch, DriverCommit
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_content import TableContent
from cdc.lake.upkeep.driver_upkeep import DriverUpkeep
from cdc.lake.upkeep.maintenance import Maintainer
from cdc.land.log_rows import LogRows
from cdc.state.pace import DRIVER
from cdc.tables import TableId

logger = structlog.get_logger(__name__)


@dataclass(slots=True)
class DriverWay:
    """Applies the small batches of one table; used by one thread at a time.

    Any thread may read ``last``: how the last batch was applied, and why not by this process.
    """

    commit: DriverCommit
    upkeep: DriverUpkeep
    most: int  # events of a batch; a larger one is Spark's
    last: str = ""

    @property
    def was_driver(self) -> bool:
        """Return whether this process applied the last batch."""
        return self.last == DRIVER

    def applied(
        self, content: TableContent, part: LogRows, upto: int, schemas: Mapping[int, str]
    ) -> Committed | None:
        """Apply the batch in one commit; return None if Spark has to apply it.

        Raises what ``DriverCommit.commit`` raises.
        """
        if part.events is None:
            self.last = "spark: its events are not in memory"
            return None
        if len(part.events) > self.most:
            self.last = f"spark: {len(part.events):,} events"
            return None
        batch = DriverBatch(
            schema=content.schema,
            position=content.position,
            events=part.events,
            upto=upto,
            schemas=schemas,
        )
        try:
            after = self.commit.commit(batch)
        except NotLocalError as why:
            self.last = f"spark: {why}"
            logger.info("left to spark", table=str(content.schema.table), reason=str(why))
            return None
        self.last = DRIVER
        return after


def driver_way(
    path: str, table: TableId, context: ApplyContext, maintainer: Maintainer
) -> DriverWay | None:
    """Return the way of the table at ``path``; None if Spark applies all of its batches."""
    if context.driver is None:
        return None
    commit = DriverCommit(
        path,
        str(table),
        context.driver,
        quarantine=context.quarantine,
        placeholder=context.placeholder,
        policy=context.policy,
    )
    upkeep = DriverUpkeep(commit.committer, maintainer, context.driver.executor)
    return DriverWay(commit, upkeep, context.policy.local_events)
