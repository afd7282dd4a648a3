"""Topics and source that the lake follows, according to its log or to a newer epoch."""

from datetime import UTC, datetime

import pytest

from cdc.capture.recorded_origin import recorded_origin, recorded_topics
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.kafka.same_topic import ExpectedTopic
from cdc.lake.records.epochs import Epoch
from cdc.lake.table.positions import LandedPosition
from cdc.source.server.origin import Origin, refuse_other
from cdc.source.server.slot import LostChangesError

LANDED = LandedPosition(
    epoch=1,
    landing=7,
    offsets={"w.s.t": 41, "w.s.u": 5},
    topic_ids={"w.s.t": "a", "w.s.u": "b", "w.s.new": "c"},
    system="77",
    timeline=1,
)
EPOCH = Epoch(
    number=2,
    name="w",
    began_at=datetime(2026, 1, 2, tzinfo=UTC),
    reason="[topic-gone] topic w.s.t is gone",
    lsn=9,
    left_behind={"w.s.t": 60, "w.s.u": 4},
    topic_ids={"w.s.t": "z", "w.s.u": "b"},
    system="88",
    timeline=3,
)
TOPICS = ("w.s.t", "w.s.u", "w.s.new", "w.s.unknown")


def test_a_lake_without_a_log_follows_no_topics_and_no_source() -> None:
    assert recorded_topics(None, None, TOPICS) == {}
    assert recorded_origin(None, None) == Origin(system="", timeline=0)


def test_the_log_records_topics_and_source() -> None:
    assert recorded_topics(LANDED, None, TOPICS) == {
        "w.s.t": ExpectedTopic(id="a", last=41),
        "w.s.u": ExpectedTopic(id="b", last=5),
        "w.s.new": ExpectedTopic(id="c", last=-1),
    }
    assert recorded_topics(LANDED, None, ["w.s.u"]).keys() == {"w.s.u"}
    assert recorded_origin(LANDED, None) == Origin(system="77", timeline=1)


def test_an_epoch_in_which_nothing_has_landed_overrides_the_log() -> None:
    assert recorded_topics(LANDED, EPOCH, TOPICS)["w.s.t"] == ExpectedTopic(id="z", last=60)
    assert recorded_topics(LANDED, EPOCH, TOPICS)["w.s.u"] == ExpectedTopic(id="b", last=5)
    assert recorded_origin(LANDED, EPOCH) == Origin(system="88", timeline=3)


def test_a_log_that_is_in_the_epoch_overrides_it() -> None:
    within = LandedPosition(
        epoch=2, landing=8, offsets={}, topic_ids={"w.s.t": "z"}, system="88", timeline=4
    )
    assert recorded_topics(within, EPOCH, TOPICS) == {"w.s.t": ExpectedTopic(id="z", last=60)}
    assert recorded_origin(within, EPOCH) == Origin(system="88", timeline=4)


@pytest.mark.parametrize(
    ("now", "reached", "reason"),
    [
        (Origin(system="99", timeline=1, lsn=500), 400, Reason.SOURCE_REPLACED),
        (Origin(system="77", timeline=1, lsn=399), 400, Reason.SOURCE_RESTORED),
        (Origin(system="77", timeline=2, lsn=399), 400, Reason.SOURCE_RESTORED),
        (Origin(system="77", timeline=2, lsn=500), 400, Reason.SOURCE_PROMOTED),
    ],
)
def test_another_source_is_refused(now: Origin, reached: int, reason: Reason) -> None:
    with pytest.raises(CdcError) as caught:
        refuse_other(recorded_origin(LANDED, None), now, reached)
    error = caught.value
    assert (error.kind, error.reason) == (ErrorKind.CHAIN_BROKEN, reason)
    assert "--new-epoch" in error.remedy
    # A replaced source may be a wrong address: no epoch begins automatically then.
    assert isinstance(error, LostChangesError) is (reason is not Reason.SOURCE_REPLACED)


def test_the_same_source_is_accepted() -> None:
    now = Origin(system="77", timeline=1, lsn=400)
    refuse_other(recorded_origin(LANDED, None), now, 400)
    refuse_other(recorded_origin(None, None), now, 400)
