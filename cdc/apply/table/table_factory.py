"""Opens, creates and copies tables of the lake, so that events can be applied to them."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_content import TableContent
from cdc.events.schema import TableSchema
from cdc.lake.commit.create import create
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table import store
from cdc.lake.table.positions import Position


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

    def stored(
        self, session: SparkSession, path: str, position: Position, wanted: TableSchema
    ) -> AppliedTable:
        """Return the table at ``path`` with the columns and the structure that it has there.

        ``wanted`` names the table, and is its schema where the Delta table does not say one.
        """
        schema = store.read_schema(path, wanted.table) or wanted
        structure = store.read_structure(path)
        content = TableContent(schema=schema, position=position, structure=structure)
        return self.opened(session, path, content)

    def opened(self, session: SparkSession, path: str, content: TableContent) -> AppliedTable:
        """Return the table at ``path``, which holds ``content``; nothing is read or written."""
        return AppliedTable(session, path, content, self.context)

    def created(self, session: SparkSession, path: str, content: TableContent) -> AppliedTable:
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
