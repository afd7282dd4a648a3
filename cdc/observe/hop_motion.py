"""Decide hop by hop whether changes move, from repeated looks at counters.

A counter is only compared with its own earlier value, because each hop has its own unit. A live
connector commits a heartbeat every five seconds, so the first hop always has work. If one hop
stops, the hops after it run out of work and do not count as standing still.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

LIMIT_SECONDS: Final = 40.0
"""A hop that has work and has not been seen to do any for this long stands still."""
_STEP_SECONDS: Final = 15.0
"""The longest time that counts between two looks, because nothing was observed in between."""


class Hop(StrEnum):
    """Names a part of a change's path from the source to the tables."""

    CAPTURE = "source to Kafka"
    LAND = "Kafka to log"
    APPLY = "log to tables"


class Motion(StrEnum):
    """Says whether a hop does its work."""

    MOVES = "moves"
    BEHIND = "behind"  # works, but has not finished for longer than the limit
    STANDS = "stands still"


@dataclass(frozen=True, slots=True, kw_only=True)
class HopCounters:
    """Holds one look at the counters. None means unknown and counts as unchanged."""

    at: float  # seconds of a monotonic clock
    sent: Hashable  # how many events Kafka has, for readers of committed records
    landed: Hashable
    turns: Hashable  # changes whenever a round ends with nothing left to do
    decoding: bool = False  # the source works for the connector
    working: bool = False  # the job computes


@dataclass(frozen=True, slots=True, kw_only=True)
class HopProgress:
    """Holds the last look, and when each counter last changed, in seconds of observed time."""

    last: HopCounters
    now: float = 0.0
    sent_at: float = 0.0
    landed_at: float = 0.0
    turned_at: float = 0.0
    decoded_at: float = 0.0
    worked_at: float = 0.0
    ahead_at: float | None = None
    """When Kafka first had more events than at the last landing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HopMotion:
    """Says whether a hop moves, and for how many seconds it has had work without a result."""

    hop: Hop
    motion: Motion
    seconds: float


def next_progress(before: HopProgress | None, seen: HopCounters) -> HopProgress:
    """Return the progress after one more look; ``before`` is None at the first look."""
    if before is None:
        return HopProgress(last=seen)
    last = before.last
    now = before.now + min(max(0.0, seen.at - last.at), _STEP_SECONDS)
    sent = _changed(last.sent, seen.sent)
    landed = _changed(last.landed, seen.landed)
    ahead = None if landed else before.ahead_at
    return HopProgress(
        last=_with_last_known(last, seen),
        now=now,
        sent_at=now if sent else before.sent_at,
        landed_at=now if landed else before.landed_at,
        turned_at=now if _changed(last.turns, seen.turns) else before.turned_at,
        decoded_at=now if seen.decoding else before.decoded_at,
        worked_at=now if seen.working else before.worked_at,
        ahead_at=now if ahead is None and sent and not landed else ahead,
    )


def hop_motions(progress: HopProgress) -> list[HopMotion]:
    """Return the motion of every hop, from the source on.

    While nothing new comes into Kafka, landing counts as moving: offsets alone do not show whether
    something is left to land, because an aborted transaction takes offsets too.
    """
    now, ahead = progress.now, progress.ahead_at
    capture = _judged(Hop.CAPTURE, now - progress.sent_at, now - progress.decoded_at)
    has_input = ahead is not None and capture.motion is Motion.MOVES
    return [
        capture,
        _judged(Hop.LAND, now - (ahead or 0.0) if has_input else 0.0, now - progress.worked_at),
        _judged(Hop.APPLY, now - progress.turned_at, now - progress.worked_at),
    ]


def _judged(hop: Hop, waited: float, idle: float) -> HopMotion:
    """Judge a hop ``waited`` seconds without a result and ``idle`` seconds without any work."""
    if waited < LIMIT_SECONDS:
        motion = Motion.MOVES
    else:
        motion = Motion.BEHIND if idle < LIMIT_SECONDS else Motion.STANDS
    return HopMotion(hop=hop, motion=motion, seconds=waited)


def _changed(before: Hashable, after: Hashable) -> bool:
    return after is not None and after != before


def _with_last_known(last: HopCounters, seen: HopCounters) -> HopCounters:
    """Return the new look, with the last known value for each counter that is unknown."""
    return replace(
        seen,
        sent=last.sent if seen.sent is None else seen.sent,
        landed=last.landed if seen.landed is None else seen.landed,
        turns=last.turns if seen.turns is None else seen.turns,
    )
