"""Define the project's one error type, its kinds, and how a caller reacts to each kind.

The default reaction is to stop and tell a person: only the kinds marked ``retry`` are transient.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class ErrorKind(Enum):
    """Groups errors: two are of different kinds if callers react differently to them."""

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
    """Says what is broken between source, log and lake; printed in brackets before the message."""

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
    Reason.POSITION_LOST: "the connector's position was deleted after it had sent events",
    Reason.SNAPSHOT_INTERRUPTED: "the first snapshot broke off, and part of it is in the lake",
    Reason.SNAPSHOT_REPEATED: "the connector took another snapshot after its stream had begun",
    Reason.SNAPSHOT_BLIND: "a table was rewritten during the first snapshot, which saw no rows",
    Reason.SOURCE_RESTORED: "the source's WAL ends before changes it sent: an older backup",
    Reason.SOURCE_PROMOTED: "the source is on another timeline: a promoted standby or a recovery",
    Reason.SOURCE_REPLACED: "the source is another cluster: its system identifier differs",
    Reason.TOPIC_GONE: "a topic whose events have landed was deleted",
    Reason.TOPIC_RECREATED: "a topic was deleted and created again: its id in Kafka differs",
    Reason.TOPIC_SHORTENED: "events were removed from a topic before they landed",
    Reason.TOPIC_CUT_OFF: "a topic ends before the last event that has landed",
    Reason.TOPIC_PARTITIONS: "a topic has several partitions, so its offsets give no order",
    Reason.OTHER_PIPELINE: "the lake belongs to a pipeline with another name",
    Reason.OTHER_LAKE: "the connector began in an epoch that the lake does not know",
    Reason.EPOCH_BEGAN: "changes of a table were lost when a new epoch began",
    Reason.TABLE_EDITED: "another program made a commit to a Delta table",
    Reason.TABLE_RESTORED: "another program ran RESTORE on a Delta table",
    Reason.TABLE_OLDER: "a Delta table was replaced by an older copy of itself",
    Reason.TABLE_GONE: "the files of a Delta table are gone",
    Reason.TABLE_UNREADABLE: "the files of a Delta table cannot be read",
    Reason.SECOND_JOB: "another job holds the lake or the state directory",
}
"""The meaning of each reason code, for docs/reference/exit-codes.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Says how a caller reacts to errors of a kind."""

    exit_code: int  # with which a command ends
    retry: bool  # True only if trying again unchanged can help


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
    """Carries the message, the detail and the remedy of an error.

    ``message`` is a lower-case statement that names the thing and the place; ``detail`` adds
    facts; ``remedy`` tells the reader what to do. None of them contains a row's value or a secret.
    ``reason`` is the code of what is broken between source, log and lake, if something is.
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
        """Return how a caller reacts to the error's kind."""
        return POLICY[self.kind]

    @property
    def coded(self) -> str:
        """Return the message, preceded by the reason's code in brackets if there is a reason."""
        return coded(self.reason, self.message)

    def __str__(self) -> str:
        parts = [self.coded]
        if self.detail:
            parts.append(self.detail)
        if self.remedy:
            parts.append(f"remedy: {self.remedy}")
        return "; ".join(parts)


def coded(reason: Reason | None, message: str) -> str:
    """Return the message, preceded by the reason's code in brackets if there is a reason."""
    return message if reason is None else f"[{reason.value}] {message}"
