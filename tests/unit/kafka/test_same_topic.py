"""Tests of whether topics continue what has landed, and of the errors if they do not."""

from dataclasses import replace

import pytest

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.kafka.same_topic import ExistingTopic, ExpectedTopic, broken, refuse_broken, refuse_other

KNOWN = {"w.s.t": ExpectedTopic(id="a", last=41)}
WHOLE = ExistingTopic(id="a", partitions=1, first=0, end=45)


def refusal(found: ExistingTopic | None, known: ExpectedTopic = KNOWN["w.s.t"]) -> CdcError:
    with pytest.raises(CdcError) as caught:
        refuse_broken({"w.s.t": known}, {} if found is None else {"w.s.t": found})
    assert caught.value.kind is ErrorKind.CHAIN_BROKEN
    assert "w.s.t" in caught.value.message
    assert "--new-epoch" in caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("found", "last"),
    [
        (WHOLE, 41),
        (replace(WHOLE, end=42), 41),
        (replace(WHOLE, first=42), 41),
        (replace(WHOLE, first=45), 44),
    ],
    ids=["more is there", "nothing new", "what has landed was removed", "emptied"],
)
def test_a_topic_that_continues(found: ExistingTopic, last: int) -> None:
    known = {"w.s.t": ExpectedTopic(id="a", last=last)}
    refuse_broken(known, {"w.s.t": found})
    assert not broken(known, {"w.s.t": found})


@pytest.mark.parametrize(
    ("found", "reason", "begins_anew"),
    [
        (None, Reason.TOPIC_GONE, True),
        (replace(WHOLE, id="b"), Reason.TOPIC_RECREATED, False),
        (replace(WHOLE, id="b", end=3), Reason.TOPIC_RECREATED, True),
        (replace(WHOLE, partitions=2), Reason.TOPIC_PARTITIONS, True),
        (replace(WHOLE, first=43), Reason.TOPIC_SHORTENED, False),
        (replace(WHOLE, end=41), Reason.TOPIC_CUT_OFF, True),
    ],
)
def test_a_topic_that_does_not_continue(
    found: ExistingTopic | None, reason: Reason, begins_anew: bool
) -> None:
    error = refusal(found)
    assert error.reason is reason
    assert str(error).startswith(f"[{reason.value}] topic w.s.t ")
    here = {} if found is None else {"w.s.t": found}
    assert list(broken(KNOWN, here)) == (["w.s.t"] if begins_anew else [])


def test_the_missing_offsets_are_named() -> None:
    assert "offsets 42 to 49 are missing" in refusal(replace(WHOLE, first=50, end=60)).message


def test_nothing_is_expected_of_other_topics() -> None:
    refuse_broken({}, {"w.s.t": replace(WHOLE, partitions=7)})


def test_the_check_of_a_landing_needs_no_offsets() -> None:
    """It compares only the id and the partitions, which a broker answers at once."""
    refuse_other("w.s.t", "a", ExistingTopic(id="a", partitions=1))
    with pytest.raises(CdcError, match="recreated"):
        refuse_other("w.s.t", "a", ExistingTopic(id="b", partitions=1))
