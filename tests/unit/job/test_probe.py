"""A probe's server answers, refuses, breaks, or never answers."""

import threading
from contextlib import closing

from cdc.errors import CdcError, ErrorKind
from cdc.job.probe import Probe
from tests.waiting import until


def test_the_last_answer_is_given() -> None:
    answers = iter(range(1000))
    with closing(Probe("it", lambda: next(answers), every=0.001)) as probe:
        until(lambda: (probe.latest()[0] or 0) > 3)


def test_a_refusal_is_quoted_and_any_other_error_only_named() -> None:
    def refuse() -> None:
        raise CdcError(ErrorKind.UNREACHABLE, "no broker", detail="refused")

    def break_() -> None:
        message = "a secret"
        raise ValueError(message)

    with closing(Probe("it", refuse, every=0.001)) as probe:
        until(lambda: probe.latest() == (None, "no broker; refused"))
    with closing(Probe("it", break_, every=0.001)) as probe:
        until(lambda: probe.latest() == (None, "it could not be asked: ValueError"))


def test_a_server_that_never_answers_is_reported_and_not_waited_for() -> None:
    now, asked, release = [0.0], threading.Event(), threading.Event()

    def hang() -> bool:
        asked.set()
        return release.wait()

    with closing(Probe("it", hang, patience=12, clock=lambda: now[0])) as probe:
        assert asked.wait(30)
        assert probe.latest() == (None, "")  # not yet
        now[0] = 50.0
        assert probe.latest() == (None, "it has not answered for 50 s")
        release.set()
        until(lambda: probe.latest() == (True, ""))
