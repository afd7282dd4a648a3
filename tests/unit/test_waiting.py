"""``poll`` asks until an answer is enough, and ``until`` fails when it never is."""

from itertools import count
from threading import Event

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.waiting import beside, poll, until


def test_the_first_answer_that_is_enough_is_returned() -> None:
    answers = count()

    assert poll(lambda: next(answers), lambda number: number >= 2, every=0) == 2
    assert next(answers) == 3


def test_none_is_returned_when_no_answer_is_enough_in_time() -> None:
    assert poll(lambda: 1, lambda _: False, every=0.01, seconds=0.05) is None


def test_an_error_of_the_question_ends_the_waiting() -> None:
    def ask() -> int:
        raise KeyError

    with pytest.raises(KeyError):
        poll(ask, bool, every=0)


def test_what_is_not_so_in_time_is_an_error() -> None:
    until(lambda: True, 0, "it did not come")
    with pytest.raises(CdcError, match="it did not come within 0 s") as raised:
        until(lambda: False, 0, "it did not come")

    assert raised.value.kind is ErrorKind.TIMEOUT


def test_what_is_done_beside_a_block_is_told_of_its_end_and_waited_for() -> None:
    begun, ended = Event(), []

    def work(over: Event) -> None:
        begun.set()
        ended.append(over.wait(60))

    with beside(work, "test"):
        assert begun.wait(60)
        assert ended == []

    assert ended == [True]
