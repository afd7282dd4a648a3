"""When all of the first snapshot is known to have landed."""

import pytest

from cdc.apply.first_snapshot import FirstSnapshot
from cdc.errors import CdcError, ErrorKind


def test_all_that_was_there_at_the_first_question_is_waited_for() -> None:
    ends, read, newest = {"t": 10, "empty": 0}, {"t": 9}, [4]
    first = FirstSnapshot(lambda: dict(ends))
    first.read = lambda: read

    assert first.landed_by(lambda: newest[-1]) is None
    ends["t"] = 1000  # written later: not of the snapshot
    read["t"] = 10
    assert first.landed_by(lambda: newest[-1]) == 4
    newest.append(7)
    assert first.landed_by(lambda: newest[-1]) == 4


def test_nothing_is_known_before_the_landing_query_has_read() -> None:
    assert FirstSnapshot(lambda: {"t": 1}).landed_by(lambda: 1) is None


def test_a_broker_that_is_away_is_asked_again() -> None:
    answers: list[dict[str, int] | ErrorKind] = [ErrorKind.UNREACHABLE, {"t": 1}]

    def ends() -> dict[str, int]:
        answer = answers.pop(0)
        if isinstance(answer, ErrorKind):
            raise CdcError(answer, "no Kafka broker answers")
        return answer

    first = FirstSnapshot(ends)
    first.read = lambda: {"t": 1}

    assert first.landed_by(lambda: 3) is None
    assert first.landed_by(lambda: 3) == 3


def test_any_other_error_is_raised() -> None:
    def ends() -> dict[str, int]:
        raise CdcError(ErrorKind.CHAIN_BROKEN, "another topic")

    with pytest.raises(CdcError, match="another topic"):
        FirstSnapshot(ends).landed_by(lambda: 1)
