"""Measures the tutorial way on the same source, worker and broker, after wal2lake has stopped."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from deltalake import DeltaTable, QueryBuilder
from rich.console import Console

from bench.tutorial.batches import Batch, batches, cover
from bench.tutorial.burst import burst
from bench.tutorial.figures import Figures, p50_p99
from bench.tutorial.job import KEYS, PREFIX
from bench.tutorial.ours import PLACEHOLDERS, Load
from bench.tutorial.tail import Tail, leave_sentinel
from cdc.config import Config
from cdc.demo.freshness_meter import FreshnessMeter
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.topics import TopicSpec, ensure_topics
from cdc.source.connector import worker_rest
from cdc.stack.artifacts.lock_file import spark_jars
from cdc.stack.embedded import running
from cdc.state.endpoints import Endpoints, password_reference
from cdc.state.pipeline import Pipeline
from cdc.waiting import poll

PATIENCE: Final = 1800.0  # seconds for one stage: this way is slow
TOPICS: Final = [f"{PREFIX}.shop.{table}" for table in KEYS]
VIEWS: Final = f"{PREFIX}.shop.page_views"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tutorial:
    """Tells what the running tutorial job has merged, from its files."""

    process: subprocess.Popen[bytes]
    progress: Path
    log: Path
    lake: Path

    def batches(self) -> list[Batch]:
        """Return the finished batches; raises SERVER_FAILED if the job has died."""
        if self.process.poll() is not None:
            raise CdcError(ErrorKind.SERVER_FAILED, "the tutorial job died", detail=str(self.log))
        return list(batches(self.progress))

    def readable(self, topic: str, offset: int) -> float:
        """Wait for the batch that contains the event; return when it was merged."""

        def held() -> Batch | None:
            return next((b for b in self.batches() if b.ends.get(topic, 0) > offset), None)

        return self._at(poll(held, bool, every=0.5, seconds=PATIENCE))

    def readable_rows(self, rows: int) -> float:
        """Wait until so many rows are merged; return when they were."""

        def held() -> Batch | None:
            so_far = 0
            for batch in self.batches():
                so_far += batch.rows
                if so_far >= rows:
                    return batch
            return None

        return self._at(poll(held, bool, every=0.5, seconds=PATIENCE))

    def _at(self, batch: Batch | None) -> float:
        if batch is None:
            raise CdcError(
                ErrorKind.TIMEOUT, "the tutorial job timed out", detail=f"log: {self.log}"
            )
        return batch.readable_at


def measure(root: Path, config: Config, load: Load, console: Console) -> Figures:
    """Run the tutorial's connector and job, put the load on them and return the figures."""
    with running(config) as endpoints:
        worker_rest.delete(endpoints.connect, config.name)
        ensure_topics(endpoints.kafka, [TopicSpec(topic) for topic in TOPICS])
        began = time.time()
        worker_rest.configure(endpoints.connect, PREFIX, settings(Pipeline(config, endpoints)))
        with _job(root, endpoints) as job:
            return _measure(endpoints, job, load, began, console)


def settings(pipeline: Pipeline) -> dict[str, str]:
    """Return a tutorial's connector: JSON with a schema in every message, decimals as doubles."""
    source = urlsplit(pipeline.endpoints.source_url)
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": str(source.hostname),
        "database.port": str(source.port),
        "database.user": str(source.username),
        "database.password": password_reference(pipeline.config.state_dir.resolve()),
        "database.dbname": source.path.lstrip("/"),
        "plugin.name": "pgoutput",
        "topic.prefix": PREFIX,
        "slot.name": PREFIX,
        "publication.name": PREFIX,
        "publication.autocreate.mode": "filtered",
        "table.include.list": "shop[.].*",
        "decimal.handling.mode": "double",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    }


@contextmanager
def _job(root: Path, endpoints: Endpoints) -> Iterator[Tutorial]:
    progress, log, lake = root / "tutorial.jsonl", root / "tutorial.log", root / "tutorial"
    jars = ",".join(str(jar) for jar in spark_jars())
    arguments = [endpoints.kafka.bootstrap, str(lake), jars, str(progress)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.tutorial.job", *arguments], stdout=output, stderr=output
        )
    try:
        yield Tutorial(process=process, progress=progress, log=log, lake=lake)
    finally:
        process.terminate()
        process.wait()


def _measure(
    endpoints: Endpoints, job: Tutorial, load: Load, began: float, console: Console
) -> Figures:
    rows = sum(load.rows.values())
    snapshot = rows / (job.readable_rows(rows) - began)
    console.print(f"  snapshot: {snapshot:,.0f} rows/s", highlight=False)
    applied = _burst(endpoints, job, load)
    console.print(f"  burst: {applied:,.0f} applied/s", highlight=False)
    p50, p99 = p50_p99(_steady(endpoints, job, load))
    return Figures(
        snapshot_rows_per_second=snapshot,
        landed_events_per_second=None,
        applied_changes_per_second=applied,
        freshness_p50_seconds=p50,
        freshness_p99_seconds=p99,
        values_lost=_lost(job.lake),
    )


def _burst(endpoints: Endpoints, job: Tutorial, load: Load) -> float:
    tail = Tail(bootstrap=endpoints.kafka.bootstrap, topics=[VIEWS])
    done = burst(endpoints.source_url, transactions=load.transactions)
    last = tail.read_until(leave_sentinel(endpoints.source_url, "burst"), seconds=PATIENCE)
    return done.changes / (job.readable(VIEWS, last) - done.began)


def _steady(endpoints: Endpoints, job: Tutorial, load: Load) -> list[float]:
    tail = Tail(bootstrap=endpoints.kafka.bootstrap, topics=TOPICS)
    workload = load.workload(endpoints.source_url)
    ends = time.monotonic() + load.seconds

    def over() -> bool:
        workload.check()
        return time.monotonic() >= ends

    with workload:
        poll(over, bool, every=0.5, seconds=load.seconds + 60)
    last = tail.read_until(leave_sentinel(endpoints.source_url, "steady"), seconds=PATIENCE)
    job.readable(VIEWS, last)
    by_time = FreshnessMeter()
    for _, at in workload.freshness.uncovered_commits():
        by_time.add_commit(lsn=int(at * 1000), at=at)
    started = [batch for batch in job.batches() if batch.readable_at >= workload.started_at]
    cover(by_time, started, tail)
    return by_time.seconds


def _lost(lake: Path) -> int:
    """Return how many descriptions are not the source's: see ``PLACEHOLDERS``."""
    table = DeltaTable(lake / "product_descriptions")
    text = PLACEHOLDERS.replace("shop.product_descriptions", "descriptions")
    counted = QueryBuilder().register("descriptions", table).execute(text).read_all()
    return int(counted.column("found")[0].as_py())
