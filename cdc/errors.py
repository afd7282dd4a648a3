"""One error type, one list of kinds, one table that says what each kind means for a caller.

The default is "stop and tell a person": only the kinds marked ``retry`` are transient.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class ErrorKind(Enum):
    """What went wrong, as far as the reaction to it differs."""

    CONFIG = "config"
    PREREQUISITE = "prerequisite"
    UNREACHABLE = "unreachable"
    SOURCE_NOT_READY = "source_not_ready"
    CONFLICT = "conflict"
    TIMEOUT = "timeout"
    DIFFERENT = "different"
    TABLE_STOPPED = "table_stopped"
    BAD_EVENT = "bad_event"
    DISK_FULL = "disk_full"
    SERVER_FAILED = "server_failed"
    CHAIN_BROKEN = "chain_broken"
    CANCELLED = "cancelled"
    STANDS_STILL = "stands_still"
    STARTING = "starting"
    BEHIND = "behind"
    INTERNAL = "internal"


class Reason(Enum):
    """What was found broken between source, log and lake; printed in brackets before words."""

    SLOT_GONE = "slot-gone"
    SLOT_LOST = "slot-lost"
    SLOT_RECREATED = "slot-recreated"
    POSITION_LOST = "position-lost"
    SNAPSHOT_INTERRUPTED = "snapshot-interrupted"
    SNAPSHOT_REPEATED = "snapshot-repeated"
    SNAPSHOT_BLIND = "snapshot-blind"
    SOURCE_RESTORED = "source-restored"
    SOURCE_PROMOTED = "source-promoted"
    SOURCE_REPLACED = "source-replaced"
    TOPIC_GONE = "topic-gone"
    TOPIC_RECREATED = "topic-recreated"
    TOPIC_SHORTENED = "topic-shortened"
    TOPIC_CUT_OFF = "topic-cut-off"
    TOPIC_PARTITIONS = "topic-partitions"
    OTHER_PIPELINE = "other-pipeline"
    OTHER_LAKE = "other-lake"
    EPOCH_BEGAN = "epoch-began"
    TABLE_EDITED = "table-edited"
    TABLE_RESTORED = "table-restored"
    TABLE_OLDER = "table-older"
    TABLE_GONE = "table-gone"
    TABLE_UNREADABLE = "table-unreadable"
    SECOND_JOB = "second-job"


MEANING: Final[dict[Reason, str]] = {
    Reason.SLOT_GONE: "the replication slot was dropped",
    Reason.SLOT_LOST: "Postgres removed WAL that the slot needed",
    Reason.SLOT_RECREATED: "the slot begins after the connector's last event",
    Reason.POSITION_LOST: "the connector's position was deleted, and events of it are there",
    Reason.SNAPSHOT_INTERRUPTED: "the first snapshot broke off, and a part of it is in the lake",
    Reason.SNAPSHOT_REPEATED: "the connector took another snapshot behind its stream",
    Reason.SNAPSHOT_BLIND: "a table was rewritten under the first snapshot, which saw no row",
    Reason.SOURCE_RESTORED: "the source's WAL ends before what came from it: an older backup",
    Reason.SOURCE_PROMOTED: "the source is on another timeline: a standby, or a recovery",
    Reason.SOURCE_REPLACED: "the source is another cluster (system identifier)",
    Reason.TOPIC_GONE: "a topic whose events have landed was deleted",
    Reason.TOPIC_RECREATED: "a topic is another one of the same name (Kafka's id)",
    Reason.TOPIC_SHORTENED: "events were removed from a topic before they landed",
    Reason.TOPIC_CUT_OFF: "a topic ends before the last event that has landed",
    Reason.TOPIC_PARTITIONS: "a topic has more than one partition, so offsets are no order",
    Reason.OTHER_PIPELINE: "the lake is of a pipeline with another name",
    Reason.OTHER_LAKE: "the connector began in an epoch that the lake does not know",
    Reason.EPOCH_BEGAN: "changes of a table were lost when a new epoch began",
    Reason.TABLE_EDITED: "somebody else made a commit to a Delta table",
    Reason.TABLE_RESTORED: "somebody else took a Delta table back with RESTORE",
    Reason.TABLE_OLDER: "a Delta table is an older copy of itself",
    Reason.TABLE_GONE: "the files of a Delta table are gone",
    Reason.TABLE_UNREADABLE: "the files of a Delta table cannot be read",
    Reason.SECOND_JOB: "another job holds the lake or the state directory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a caller reacts to a kind."""

    exit_code: int  # of the command line
    retry: bool  # True only where trying again unchanged can help


POLICY: Final[dict[ErrorKind, Policy]] = {
    ErrorKind.DIFFERENT: Policy(exit_code=1, retry=False),
    ErrorKind.CONFIG: Policy(exit_code=2, retry=False),
    ErrorKind.PREREQUISITE: Policy(exit_code=3, retry=False),
    ErrorKind.UNREACHABLE: Policy(exit_code=4, retry=True),
    ErrorKind.SOURCE_NOT_READY: Policy(exit_code=5, retry=False),
    ErrorKind.CONFLICT: Policy(exit_code=6, retry=False),
    ErrorKind.TIMEOUT: Policy(exit_code=7, retry=False),
    ErrorKind.TABLE_STOPPED: Policy(exit_code=8, retry=False),
    ErrorKind.BAD_EVENT: Policy(exit_code=9, retry=False),
    ErrorKind.DISK_FULL: Policy(exit_code=10, retry=False),
    ErrorKind.SERVER_FAILED: Policy(exit_code=11, retry=False),
    ErrorKind.CHAIN_BROKEN: Policy(exit_code=12, retry=False),
    ErrorKind.CANCELLED: Policy(exit_code=13, retry=False),
    ErrorKind.STANDS_STILL: Policy(exit_code=14, retry=False),
    ErrorKind.STARTING: Policy(exit_code=15, retry=True),
    ErrorKind.BEHIND: Policy(exit_code=16, retry=True),
    ErrorKind.INTERNAL: Policy(exit_code=70, retry=False),
}


class CdcError(Exception):
    """What happened, its detail and what to do about it.

    ``message`` is a lower-case statement that names the thing and the place; ``detail`` adds
    facts; ``remedy`` says what the reader can do. A row value or a secret is in none of them.
    ``reason`` is its code where something was found broken.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        detail: str = "",
        remedy: str = "",
        reason: Reason | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason
        self.message = message
        self.detail = detail
        self.remedy = remedy

    @property
    def policy(self) -> Policy:
        return POLICY[self.kind]

    @property
    def coded(self) -> str:
        """The message, with the code of the reason before it where there is one."""
        return coded(self.reason, self.message)

    def __str__(self) -> str:
        parts = [self.coded]
        if self.detail:
            parts.append(self.detail)
        if self.remedy:
            parts.append(f"remedy: {self.remedy}")
        return "; ".join(parts)


def coded(reason: Reason | None, message: str) -> str:
    return message if reason is None else f"[{reason.value}] {message}"
