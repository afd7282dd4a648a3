"""A stand-in for the job: it publishes cuts of one table."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from cdc.config import Config
from cdc.lake.layout import epochs_path, ledger_path, table_path
from cdc.lake.records import epochs
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.source.server import barrier
from cdc.source.server.connection import Connection
from cdc.state import requests
from cdc.tables import TableId
from tests.meanwhile import meanwhile

TABLE = TableId("shop", "t")
CONFIG = """\
source: {{url: "{url}", tables: [shop.t]}}
lake: {{path: lake}}
kafka: {{bootstrap_servers: "127.0.0.1:1"}}
connect: {{url: "http://127.0.0.1:1"}}
registry: {{url: "http://127.0.0.1:1"}}
"""


def write(config: Config, *ids: int) -> None:
    """Write the table to the lake as the job would leave it."""
    rows = pa.table({"id": pa.array(ids, pa.int32()), "_cdc_offset": pa.array(ids, pa.int64())})
    write_deltalake(table_path(config, TABLE), rows, mode="overwrite")


def publish(
    config: Config, *, lsn: int | None, request: str | None = None, **entry: object
) -> None:
    """Publish a cut of this epoch with the table's newest version."""
    ledger = Ledger(ledger_path(config))
    last, now = ledger.last(), datetime.now(UTC)
    path = table_path(config, TABLE)
    made = TableEntry(
        table=str(TABLE),
        path=path,
        version=DeltaTable(path).version(),
        offset=1,
        state="streaming",
    )
    row = LedgerRow(
        cut=last.cut + 1 if last else 1,
        epoch=epochs.number(epochs.last(epochs_path(config))),
        lsn=lsn,
        committed_at=now,
        published_at=now,
        transactions=1,
        request=request,
        tables=(replace(made, **entry),),  # type: ignore[arg-type]
    )
    ledger.append(row)


@contextmanager
def obedient_job(config: Config, *, before: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Publish the requested cut, and another one right after it."""
    served: set[str] = set()

    def step() -> None:
        for request in requests.pending(requests.directory(config.state_dir), time.time()):
            if request.bound is not None and request.id not in served:
                before()
                served.add(request.id)
                publish(config, lsn=request.bound - 1, request=request.id)
                publish(config, lsn=request.bound + 1)

    with meanwhile(step, every=0.02):
        yield


def asked(config: Config) -> list[requests.Request]:
    return requests.pending(requests.directory(config.state_dir), time.time())


def begin_epoch_of_a_restored_source(config: Config, source: Connection) -> None:
    """Begin an epoch after a cut of an earlier one, whose LSN is far beyond the source's now."""
    publish(config, lsn=barrier.current_lsn(source) << 20)
    epochs.begin(
        epochs_path(config),
        name=config.name,
        reason="the source was restored to an older state",
        lsn=barrier.current_lsn(source),
        left_behind={},
        topic_ids={},
        system="",
        timeline=0,
    )


def heartbeat_token(source: Connection) -> object:
    return source.execute("SELECT token FROM wal2lake.heartbeat").fetchone()
