"""Hold what the tables of one lake share when events are applied to them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from cdc.apply.local.driver_commit import DriverSettings
from cdc.apply.table.table_content import Catalogue
from cdc.config import NO_MASKS, Job, Masks
from cdc.lake.records.quarantine import Quarantine
from cdc.tables import SchemaPolicy, TableId


def evolve(_: TableId) -> SchemaPolicy:
    """Return the policy that follows every change of structure."""
    return "evolve"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyContext:
    """Holds the policies of one lake, its quarantine, and what is known of the source.

    ``catalogue`` is asked where the source notes no changes of structure. No row of the first
    snapshot is of a later LSN than ``slot_lsn``, where that is known.
    """

    quarantine: Quarantine
    placeholder: str  # what the connector sends for a large value that did not change
    policy: Job
    schema_policy: Callable[[TableId], SchemaPolicy] = evolve
    masks: Masks = NO_MASKS
    catalogue: Catalogue | None = None
    slot_lsn: int | None = None  # where the first slot begins (cdc/capture/first_slot.py)
    driver: DriverSettings | None = None  # None: Spark applies every batch

    def for_rebuild(self) -> "ApplyContext":
        """Return the context of tables that are rebuilt from recorded events, without the source.

        What the source is now, and where its slot began, says nothing about their events.
        """
        return replace(self, catalogue=None, slot_lsn=None, driver=None)
