"""Requests to the job to reload its configuration, and its answers."""

from pathlib import Path

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.state.reload import answer_reload, ask_reload, await_answer, unanswered_token


def test_a_request_is_pending_until_it_is_done(tmp_path: Path) -> None:
    assert unanswered_token(tmp_path) is None
    token = ask_reload(tmp_path)
    assert unanswered_token(tmp_path) == token

    answer_reload(tmp_path, token)

    assert unanswered_token(tmp_path) is None
    await_answer(tmp_path, token, timeout=0)


def test_only_the_newest_request_counts(tmp_path: Path) -> None:
    first = ask_reload(tmp_path)
    second = ask_reload(tmp_path)
    answer_reload(tmp_path, first)

    assert unanswered_token(tmp_path) == second
    with pytest.raises(CdcError) as caught:
        await_answer(tmp_path, second, timeout=0)
    assert caught.value.kind is ErrorKind.TIMEOUT


def test_an_error_of_the_job_is_raised_in_the_process_that_asked(tmp_path: Path) -> None:
    token = ask_reload(tmp_path)
    wrong = CdcError(ErrorKind.CONFIG, "a: wrong", detail="line 3", remedy="correct it")

    answer_reload(tmp_path, token, wrong)

    with pytest.raises(CdcError) as caught:
        await_answer(tmp_path, token, timeout=0)
    assert caught.value.kind is ErrorKind.CONFIG
    assert "a: wrong" in caught.value.message
    assert (caught.value.detail, caught.value.remedy) == ("line 3", "correct it")
    assert unanswered_token(tmp_path) is None


def test_an_invalid_file_is_no_request(tmp_path: Path) -> None:
    (tmp_path / "job.reload").write_text('{"tok')

    assert unanswered_token(tmp_path) is None
