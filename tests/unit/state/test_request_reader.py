"""Whatever lies in the directory of requests, the job continues and publishes cuts again."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from cdc.apply.rounds.cut_requests import CutRequests
from cdc.state import requests
from cdc.state.request_reader import RequestReader
from cdc.state.requests import MOST_HOLD_SECONDS, Request

NOW = 1000.0
GOOD = Request(id="good", expires_at=2e10, bound=7)
IDS = st.one_of(
    st.sampled_from(["good", "a", "../a", "", ".", "-", "a" * 300, "\ud800", "é", "a\nb", "\x00"]),
    st.text(max_size=5),
)
NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([0, -1, 1 << 62, 1 << 63, 10**400, 3e9, 1e300, True, None, "1", [], {}]),
    st.integers(),
    st.floats(),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)
LIKE_A_REQUEST = st.fixed_dictionaries(
    {}, optional={"id": IDS, "expires_at": NUMBERS, "bound": NUMBERS, "more": VALUES}
)
CONTENTS = st.one_of(
    st.binary(max_size=40),
    (VALUES | LIKE_A_REQUEST).map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [b"[" * 100_000, b"9" * 5000, b" " * 5_000_000, b'{"id": "\xff"}', b"\xef\xbb\xbf{}"]
    ),
)
NAMES = st.one_of(
    st.sampled_from([b"a", b"good", b"a b", b"\xff\xfe", b"-", b"a\nb", b"..", b"x" * 250, b"a.b"]),
    st.binary(min_size=1, max_size=9).map(lambda name: name.translate(None, b"/\0") or b"y"),
)
FORMS = st.sampled_from(["file", "directory", "pipe", "loop", "unreadable"])


def put(folder: Path, name: bytes, form: str, content: bytes) -> None:
    path = folder / (os.fsdecode(name) + ".json")
    if path.exists() or path.is_symlink():
        return
    if form == "pipe":
        os.mkfifo(path)
    elif form == "loop":
        path.symlink_to(path)
    elif form == "directory":
        (path / "a").mkdir(parents=True)
    else:
        path.write_bytes(content)
        path.chmod(0o000 if form == "unreadable" else 0o644)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def asked(folder: Path, clock: Callable[[], float]) -> Callable[[], list[Request]]:
    """Return a function that reads the requests like a round of the job."""
    waiting = CutRequests(RequestReader(folder, clock))
    return lambda: waiting.pending(0)


@contextmanager
def folder() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp())
    try:
        yield place
    finally:
        shutil.rmtree(place)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(NAMES, FORMS, CONTENTS), max_size=6))
def test_nothing_in_the_directory_ends_the_job_or_holds_it_for_ever(
    files: list[tuple[bytes, str, bytes]],
) -> None:
    with folder() as place:
        requests.write(place, GOOD)
        for name, form, content in files:
            put(place, name, form, content)
        clock = [0.0]
        look = asked(place, lambda: clock[0])

        with capture_logs():
            assert GOOD in look()
            clock[0] = MOST_HOLD_SECONDS
            found = look()

        assert GOOD in found
        assert not [request for request in found if request.bound is None]
        for request in found:
            assert request.id.isascii()
            assert f"{request.id}.json" in names(place)
        requests.remove_expired(place, NOW)  # as every reader does
        assert requests.pending(place, NOW)


def test_an_invalid_file_is_renamed_and_logged(tmp_path: Path) -> None:
    put(tmp_path, b"mine", "file", b"{")
    put(tmp_path, b"folder", "directory", b"")
    look = asked(tmp_path, lambda: 0.0)
    with capture_logs() as logged:
        assert look() == look() == []
    assert names(tmp_path) == ["folder.json.refused", "mine.json.refused"]
    assert [each["name"] for each in logged] == ["'folder.json'", "'mine.json'"]


@pytest.mark.parametrize("expires_at", [NOW + 1, NOW + 3600, 1e300, float("inf")])
def test_a_hold_lasts_no_longer_than_the_cap_whatever_it_says_and_clocks_do(
    tmp_path: Path, expires_at: float
) -> None:
    requests.write(tmp_path, Request(id="a", expires_at=expires_at))
    clock = [5.0]
    reader = RequestReader(tmp_path, lambda: clock[0])
    assert [each.id for each in reader.pending(NOW)] == ["a"]
    clock[0] += MOST_HOLD_SECONDS - 1
    assert [each.id for each in reader.pending(NOW - 1e6)] == ["a"]  # the clock was set back
    clock[0] += 1
    assert reader.pending(NOW) == []
    requests.write(tmp_path, Request(id="a", expires_at=expires_at, bound=9))
    assert [each.bound for each in reader.pending(NOW)] == [
        9
    ]  # a request with a bound still counts


HOLDER = """
import sys, time
from pathlib import Path
from cdc.state import requests
from cdc.state.requests import Request
folder = Path(sys.argv[1])
with requests.alive(folder, "a"):
    requests.write(folder, Request(id="a", expires_at=float("inf")))
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_hold_ends_with_the_process_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        reader = RequestReader(tmp_path)
        assert [each.id for each in reader.pending(NOW)] == ["a"]
        requests.remove_expired(tmp_path, NOW)
        assert [each.id for each in reader.pending(NOW)] == ["a"]
        holder.kill()
        holder.wait()
        assert reader.pending(NOW) == []
        requests.remove_expired(tmp_path, NOW)
        assert names(tmp_path) == []
