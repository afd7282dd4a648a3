"""Scenarios that set a running process's clock back by hours, and later correct it."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Final

import httpx
import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import cdc
from cdc.config import load
from cdc.state.directory import StateDir
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import resolve
from tests.faults.bank.armed import Armed
from tests.faults.bank.checks import Scenario
from tests.faults.bank.readers import recovered
from tests.faults.bank.walk import Row, Walk, query
from tests.faults.conftest import PATTERNS
from tests.faults.scenes.clocks import (
    Clocked,
    WithClock,
    environment,
    library,
    nothing_left,
    set_back,
)
from tests.faults.scenes.scene import Scene, brought_up
from tests.faults.scenes.trouble import SHORT_SECONDS, elapse
from tests.servers.fixtures import makers
from tests.servers.process import ProcessServer
from tests.waiting import until

BACK: Final = timedelta(hours=2)
MOMENTS: Final = 40  # times at which cuts are looked up
TOPIC: Final = "clock"
FLUSH_SECONDS: Final = 30
SEEN_SECONDS: Final = 600  # the job's clock shows at its next cut; the machine may be slow
LEDGER: Final = "_wal2lake/ledger"


@contextmanager
def clocked(request: pytest.FixtureRequest, root: Path) -> Iterator[Scene]:
    """Yield a running installation whose clocks can be set, with its first snapshot in the lake."""
    place = library()
    assert place is not None
    with ExitStack() as stack:
        stack.enter_context(nothing_left())
        postgres = stack.enter_context(makers(request, root / "servers"))["postgres"]()
        assert isinstance(postgres, ProcessServer)
        postgres.embedded = WithClock(postgres.embedded, environment(place))
        postgres.start()
        bank = Clocked.of(root / "lakehouse", postgres, PATTERNS)
        stack.enter_context(brought_up(bank))
        yield Scene(bank=bank, walk=Walk(bank), proxies={})


def clock_is_set_back(clock: "Clock", scene: Scene) -> None:
    """Set the clock back for a while; observe from outside that it really is."""
    bank = scene.bank
    with set_back(clock.directory(bank), int(BACK.total_seconds())):
        until(lambda: _is_back(clock, bank), SEEN_SECONDS)
        elapse(SHORT_SECONDS)
        recovered(bank)  # a cut gets this time
    until(lambda: not _is_back(clock, bank), SEEN_SECONDS)


def source_is_set_back(clock: "Clock", scene: Scene) -> None:
    """Set the source's clock back; a time still names the newest cut before any later commit."""
    clock_is_set_back(clock, scene)
    rows = query(scene.bank, LEDGER, "SELECT * FROM t ORDER BY cut")
    times = [row["committed_at"] for row in rows if row["committed_at"] is not None]
    assert any(later < earlier - BACK / 2 for earlier, later in pairwise(times))
    for moment in times[-MOMENTS:]:
        expected = _up_to(rows, moment)
        if expected is not None:
            assert cdc.cut(moment, lake=scene.bank.lake).cut == expected, moment


def _up_to(rows: list[Row], moment: datetime) -> int | None:
    before = takewhile(lambda row: (row["committed_at"] or moment) <= moment, rows)
    return max((row["cut"] for row in before if row["lsn"] is not None), default=None)


def _is_back(clock: "Clock", bank: Armed) -> bool:
    return clock.now(bank) < time.time() - BACK.total_seconds() / 2


def _of_postgres(bank: Armed) -> float:
    with bank.connect() as connection:
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None
    return float(row[0])


def _of_job(bank: Armed) -> float:
    """Return the job's time, as in the newest cut."""
    rows = query(bank, LEDGER, "SELECT published_at FROM t ORDER BY cut DESC LIMIT 1")
    return float(rows[0]["published_at"].replace(tzinfo=UTC).timestamp())


def _of_kafka(bank: Armed) -> float:
    """Return the broker's time, from the timestamp of an appended message."""
    stamps: list[int] = []
    bootstrap = _endpoints(bank).kafka
    _make_topic(bootstrap.bootstrap)

    def delivered(error: object, message: Message) -> None:
        assert error is None, error
        stamps.append(message.timestamp()[1])

    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(TOPIC, b"?", on_delivery=delivered)
    producer.flush(FLUSH_SECONDS)
    return stamps[0] / 1000


def _make_topic(bootstrap: str) -> None:
    """Create the topic once, with the broker's timestamps instead of the producer's."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    if TOPIC not in admin.list_topics(timeout=FLUSH_SECONDS).topics:
        topic = NewTopic(TOPIC, 1, 1, config={"message.timestamp.type": "LogAppendTime"})
        admin.create_topics([topic])[TOPIC].result()


def _of_connect(bank: Armed) -> float:
    """Return the worker's time, from the date of a response."""
    answer = httpx.get(_endpoints(bank).connect, timeout=10)
    return parsedate_to_datetime(answer.headers["date"]).timestamp()


def _endpoints(bank: Armed) -> Endpoints:
    return resolve(load(bank.config_file)).endpoints


def _beside_source(bank: Armed) -> Path:
    postgres = bank.servers["postgres"]
    assert isinstance(postgres, ProcessServer)
    return postgres.state.data("postgres")


def _beside(name: str, bank: Armed) -> Path:
    return StateDir(bank.state_dir).data(name)


@dataclass(frozen=True, slots=True)
class Clock:
    """The directory whose file sets a process's clock, and how to ask the process for the time."""

    directory: Callable[[Armed], Path]
    now: Callable[[Armed], float]


_POSTGRES: Final = Clock(_beside_source, _of_postgres)
_OTHERS: Final = {
    "the job": Clock(lambda bank: bank.state_dir, _of_job),
    "kafka": Clock(partial(_beside, "kafka"), _of_kafka),
    "connect": Clock(partial(_beside, "connect"), _of_connect),
}
JUMPS: Final[dict[str, Scenario]] = {
    "clock of the source": partial(source_is_set_back, _POSTGRES),
    **{f"clock of {name}": partial(clock_is_set_back, clock) for name, clock in _OTHERS.items()},
}
