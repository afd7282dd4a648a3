"""Whether changes move, hop by hop: decided from what was seen over time.

Counters are only compared with what they were before: each hop has its own unit. A connector that
lives commits a heartbeat every five seconds, so the first hop always has something to bring, and
whatever stops one hop stops those behind it with nothing to do.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

LIMIT_SECONDS: Final = 40.0
"""A hop that has something to do, and was not seen to do it for so long, stands still."""
_STEP_SECONDS: Final = 15.0
"""The most that counts of the time between two looks: who did not look saw nothing stand still."""


class Hop(StrEnum):
    """A part of the way of a change."""

    CAPTURE = "source to Kafka"
    LAND = "Kafka to log"
    APPLY = "log to tables"


class Motion(StrEnum):
    """How a hop is at it."""

    MOVES = "moves"
    BEHIND = "behind"  # works, and has not come to an end for longer than the limit
    STANDS = "stands still"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look. None is what could not be seen; it counts as not having changed."""

    at: float  # seconds of a clock that does not go back
    sent: Hashable  # how much Kafka has of what lands, for readers of committed records
    landed: Hashable
    turns: Hashable  # of the rounds: another value after each that had nothing left to do
    decoding: bool = False  # the source is at work for the connector
    working: bool = False  # the job computes


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What was seen last and since when; times are seconds of looking."""

    last: Seen
    now: float = 0.0
    sent_at: float = 0.0
    landed_at: float = 0.0
    turned_at: float = 0.0
    decoded_at: float = 0.0
    worked_at: float = 0.0
    ahead_at: float | None = None
    """Since when there is more in Kafka than when something landed last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """A hop, and for how many seconds it has had something to do and not done it."""

    hop: Hop
    motion: Motion
    seconds: float


def step(before: Progress | None, seen: Seen) -> Progress:
    """Take one look in."""
    if before is None:
        return Progress(last=seen)
    last = before.last
    now = before.now + min(max(0.0, seen.at - last.at), _STEP_SECONDS)
    sent = _changed(last.sent, seen.sent)
    landed = _changed(last.landed, seen.landed)
    ahead = None if landed else before.ahead_at
    return Progress(
        last=_known(last, seen),
        now=now,
        sent_at=now if sent else before.sent_at,
        landed_at=now if landed else before.landed_at,
        turned_at=now if _changed(last.turns, seen.turns) else before.turned_at,
        decoded_at=now if seen.decoding else before.decoded_at,
        worked_at=now if seen.working else before.worked_at,
        ahead_at=now if ahead is None and sent and not landed else ahead,
    )


def moving(progress: Progress) -> list[Moving]:
    """Every hop, from the source on.

    While nothing more comes into Kafka it is not told whether there is something left to land: a
    transaction that was aborted takes offsets too.
    """
    now, ahead = progress.now, progress.ahead_at
    capture = _judged(Hop.CAPTURE, now - progress.sent_at, now - progress.decoded_at)
    comes = ahead is not None and capture.motion is Motion.MOVES
    return [
        capture,
        _judged(Hop.LAND, now - (ahead or 0.0) if comes else 0.0, now - progress.worked_at),
        _judged(Hop.APPLY, now - progress.turned_at, now - progress.worked_at),
    ]


def _judged(hop: Hop, waited: float, idle: float) -> Moving:
    """``waited`` without result, ``idle`` without a sign of work."""
    if waited < LIMIT_SECONDS:
        motion = Motion.MOVES
    else:
        motion = Motion.BEHIND if idle < LIMIT_SECONDS else Motion.STANDS
    return Moving(hop=hop, motion=motion, seconds=waited)


def _changed(before: Hashable, after: Hashable) -> bool:
    return after is not None and after != before


def _known(last: Seen, seen: Seen) -> Seen:
    """What could not be seen this time is as it was."""
    return replace(
        seen,
        sent=last.sent if seen.sent is None else seen.sent,
        landed=last.landed if seen.landed is None else seen.landed,
        turns=last.turns if seen.turns is None else seen.turns,
    )
