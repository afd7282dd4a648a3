"""Opens, creates and copies tables of the lake, so that events can be applied to them."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_content import TableContent
from cdc.events.schema import TableSchema
from cdc.lake.create.table import create
from cdc.lake.own_session import AnySession, OwnSession
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table import store
from cdc.lake.table.positions import Position

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableFactory:
    """Makes every applied table of one lake: the job's own, shadows and rebuilt ones.

    Each table needs a session that no other table uses.
    """

    context: ApplyContext

    @property
    def quarantine(self) -> Quarantine:
        """Return where the tables put refused events."""
        return self.context.quarantine

    @property
    def placeholder(self) -> str:
        """Return what the connector sends for a large value that did not change."""
        return self.context.placeholder

    def close(self) -> None:
        """Give up the thread that works beside the commits."""
        if self.context.driver is not None:
            self.context.driver.executor.shutdown(cancel_futures=True)

    def beside(self, work: Callable[[], T]) -> T:
        """Do the work in the thread that cleans old versions, after what it has begun."""
        driver = self.context.driver
        return work() if driver is None else driver.executor.submit(work).result()

    def drop_caches(self, table: str) -> None:
        """Delete what was made of a table's files outside the lake, while nobody applies to it.

        The index of its keys is made again when it is asked, the comparison of two ways is not.
        """
        if (driver := self.context.driver) is not None:
            for folder in (driver.index_directory, driver.check_directory):
                shutil.rmtree(folder / table, ignore_errors=True)

    def stored(
        self, session: AnySession, path: str, position: Position, wanted: TableSchema
    ) -> AppliedTable:
        """Return the table at ``path`` with the columns and the structure that it has there.

        ``wanted`` names the table, and is its schema where the Delta table does not say one.
        """
        schema, structure = store.read_content(path, wanted.table)
        content = TableContent(schema=schema or wanted, position=position, structure=structure)
        return self.opened(session, path, content)

    def opened(self, session: AnySession, path: str, content: TableContent) -> AppliedTable:
        """Return the table at ``path``, which holds ``content``; nothing is read or written."""
        return AppliedTable(OwnSession.of(session), path, content, self.context)

    def created(self, session: AnySession, path: str, content: TableContent) -> AppliedTable:
        """Create the empty table at ``path`` and return it."""
        create(session, path, content.schema, content.position, content.structure)
        return self.opened(session, path, content)

    def copied(
        self, session: SparkSession, path: str, rows: DataFrame, content: TableContent
    ) -> AppliedTable:
        """Write the table at ``path`` in one commit, with these rows, and return it."""
        store.replace(session, path, rows, content.schema, content.position, content.structure)
        return self.opened(session, path, content)

    def for_rebuild(self) -> "TableFactory":
        """Return a factory of tables that are rebuilt from recorded events, without the source."""
        return replace(self, context=self.context.for_rebuild())

    def with_quarantine(self, quarantine: Quarantine) -> "TableFactory":
        """Return a factory of tables whose refused events go to another quarantine."""
        return replace(self, context=replace(self.context, quarantine=quarantine))
