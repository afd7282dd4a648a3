"""A lake in an object store has one job, and the next only when that one has stopped writing."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.lake import lock
from cdc.lake.files import lease as module
from cdc.lake.files.file_store import StoreError
from cdc.lake.files.lease import Holder, Lease
from cdc.lake.files.store_of import store_of
from tests.objects.faults import Fault, first, share, slow
from tests.objects.server import ObjectServer
from tests.waiting import until

HOLD = """
import signal, sys
from pathlib import Path
from cdc.config import load
from cdc.lake import lock
with lock.only_job(load(Path(sys.argv[1]), {})):
    print("held", flush=True)
    signal.pause()
"""


def config(folder: Path, lake: str) -> Config:
    folder.mkdir(exist_ok=True)
    (folder / "wal2lake.yaml").write_text(
        f"source: {{tables: [shop.*]}}\nlake: {{path: '{lake}'}}\n"
    )
    return load(folder / "wal2lake.yaml", {})


def refusal(holder: str) -> CdcError:
    return CdcError(ErrorKind.CONFLICT, f"held by {holder}")


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have leases of seconds, in the proportions of the real ones."""
    monkeypatch.setattr(module, "LEASE_SECONDS", 6.0)
    monkeypatch.setattr(module, "HELD_SECONDS", 4.5)
    monkeypatch.setattr(module, "RENEWED_SECONDS", 0.5)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.2)


def lease(
    lake: str, name: str, place: str = "", clock: Callable[[], float] = time.monotonic
) -> Lease:
    holder = Holder(name=name, place=place, run=name)
    return Lease(f"{lake}/_wal2lake/job.lock", holder, clock=clock)


def test_a_second_job_is_refused_and_told_who_holds_the_lake(
    tmp_path: Path, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The holder renews its lease every ten seconds: it is watched for a little longer.
    monkeypatch.setattr(module, "LEASE_SECONDS", 60.0)
    config(tmp_path / "one", lake)
    second = config(tmp_path / "two", lake)
    command = [sys.executable, "-c", HOLD, str(tmp_path / "one" / "wal2lake.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with (
                pytest.raises(CdcError, match=f"another job is writing to the lake {lake}") as seen,
                lock.only_job(second),
            ):
                pass
        finally:
            os.kill(holder.pid, signal.SIGKILL)

    assert seen.value.kind is ErrorKind.CONFLICT
    assert f"process {holder.pid} on " in seen.value.detail
    assert str(tmp_path / "one") in seen.value.detail


def test_a_dead_job_with_the_same_state_directory_is_known_to_be_dead(
    tmp_path: Path, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEASE_SECONDS", 1e9)
    first_job = config(tmp_path / "one", lake)
    command = [sys.executable, "-c", HOLD, str(tmp_path / "one" / "wal2lake.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        os.kill(holder.pid, signal.SIGKILL)

    with lock.only_job(first_job):
        pass


def test_a_holder_that_says_nothing_for_a_lease_has_lost_the_lake(lake: str) -> None:
    dead = lease(lake, "dead")
    dead._take(refusal)  # and never renews it

    with lease(lake, "next").held(refusal), pytest.raises(CdcError, match="held by next"):
        lease(lake, "third")._take(refusal)


def test_a_lock_that_was_given_up_is_free_at_once(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEASE_SECONDS", 1e9)
    with lease(lake, "one").held(refusal):
        pass
    with lease(lake, "two").held(refusal):
        pass


def test_of_two_that_come_at_once_one_has_it(lake: str) -> None:
    won, refused = list[str](), list[str]()
    together, over = threading.Barrier(6), threading.Event()

    def come(name: str) -> None:
        together.wait()
        try:
            with lease(lake, name).held(refusal):
                won.append(name)
                over.wait()
        except CdcError as error:
            refused.append(error.message)

    threads = [threading.Thread(target=come, args=(str(n),)) for n in range(6)]
    for thread in threads:
        thread.start()
    until(lambda: len(won) + len(refused) == 6)
    over.set()
    for thread in threads:
        thread.join()

    assert len(won) == 1
    assert refused == [f"held by {won[0]}"] * 5


def test_who_cannot_renew_stops_before_another_may_begin(lake: str) -> None:
    now = [1000.0]
    mine = lease(lake, "mine", clock=lambda: now[0])
    mine._take(refusal)
    mine.check()

    now[0] += module.HELD_SECONDS

    with pytest.raises(StoreError, match="could not be renewed"):
        mine.check()


def test_the_time_counts_from_before_a_renewal_not_from_its_answer(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    mine = lease(lake, "mine", clock=lambda: now[0])
    mine._take(refusal)
    put = mine._put

    def slow(holder: Holder) -> bool:
        done = put(holder)
        now[0] += module.HELD_SECONDS
        return done

    monkeypatch.setattr(mine, "_put", slow)
    mine._write(mine._holder)

    with pytest.raises(StoreError, match="could not be renewed"):
        mine.check()


def test_who_has_lost_it_is_told_by_whom_at_the_next_renewal(lake: str) -> None:
    mine, other = lease(lake, "mine"), lease(lake, "other", place="p")
    with mine.held(refusal):
        other._tag = other._read()[1]
        other._write(other._holder)  # as after a pause of this process that was too long
        until(lambda: mine._successor)
        with pytest.raises(StoreError, match="held by other"):
            mine.check()

    # It does not give up what is another's.
    assert json.loads(store_of(f"{lake}/_wal2lake").read("job.lock"))["name"] == "other"


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.LATE_BUSY])
def test_a_lease_whose_answers_are_lost_is_held_all_the_same(
    lake: str, objects: ObjectServer, fault: Fault
) -> None:
    objects.faults.follow(first(2, fault, "PUT", "job.lock"))
    mine = lease(lake, "mine")
    with mine.held(refusal):
        mine.check()
        objects.faults.follow(first(2, fault, "PUT", "job.lock"))
        objects.faults.forget()
        until(lambda: len(objects.faults.met) == 2)
        before = mine._until
        until(lambda: mine._until > before)
        mine.check()


def test_a_store_that_fails_for_a_while_does_not_cost_the_lease(
    lake: str, objects: ObjectServer
) -> None:
    mine = lease(lake, "mine")
    with mine.held(refusal):
        objects.faults.follow(share(3, {Fault.BUSY: 1.0}))
        until(lambda: len(objects.faults.met) >= 2)
        objects.faults.heal()
        before = mine._until
        until(lambda: mine._until > before)
        mine.check()


def test_a_slow_store_does_not_cost_the_lease(lake: str, objects: ObjectServer) -> None:
    mine = lease(lake, "mine")
    with mine.held(refusal):
        objects.faults.follow(slow(1.0))
        until(lambda: objects.faults.asked >= 3)
        before = mine._until
        until(lambda: mine._until > before)
        mine.check()


def test_the_holder_is_told_for_how_long(lake: str) -> None:
    told = list[float]()
    holder = Holder(name="mine", place="", run="mine")
    with Lease(f"{lake}/_wal2lake/job.lock", holder, renewed=told.append).held(refusal):
        until(lambda: len(told) >= 2)

    assert all(0 < seconds <= module.HELD_SECONDS for seconds in told[:-1])
    assert told[-1] == 0
