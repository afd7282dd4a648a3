"""Find everything that would keep the pipeline from starting or from being correct.

The preflight changes nothing, but for an object that it writes to an object store and deletes. An
embedded server that is not up yet is not a finding.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import httpx

from cdc import http_client
from cdc.capture.bootstrap import captured_by_connector
from cdc.config import Config
from cdc.errors import CdcError
from cdc.kafka.broker import Broker
from cdc.kafka.registry_client import refuse_unknown
from cdc.kafka.topics import topic_ids
from cdc.lake.files.unreachable import store_errors_named
from cdc.lake.layout import is_local
from cdc.lake.writable import refuse_unwritable
from cdc.source.catalog.captured import NEW, TAKE_IN, errors_of, new_tables
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.connector.settings import clear_password
from cdc.source.connector.worker_rest import status
from cdc.source.notes import triggers
from cdc.source.server import slot
from cdc.source.server.connection import Connection, address, connect
from cdc.source.server.finding import Finding, Level
from cdc.source.server.tls import tls
from cdc.source.setup.preflight import role_findings, server_findings, slot_findings
from cdc.state.pipeline import Pipeline
from cdc.tables import HEARTBEAT, TableId

ENOUGH_BYTES: Final = 5 * 1024**3
LITTLE_BYTES: Final = 512 * 1024**2
_SECONDS: Final = 10
_FAILED: Final = f"see the worker's log; if it keeps failing, {slot.NEW_EPOCH}"


def check(pipeline: Pipeline) -> list[Finding]:
    """Return all findings, also the good ones. Errors become findings and are not raised.

    An endpoint is an empty string for an embedded server that is not up.
    """
    endpoints = pipeline.endpoints
    findings = list(_disk(pipeline.config))
    if not is_local(pipeline.config.lake.path):
        findings += _collect(lambda: _object_store(pipeline.config))
    findings += _collect(lambda: _source(pipeline))
    if endpoints.kafka.bootstrap:
        findings += _collect(lambda: _kafka(endpoints.kafka, pipeline.name))
    if endpoints.registry:
        findings += _collect(lambda: _registry(endpoints.registry))
    if endpoints.connect:
        findings += _collect(lambda: _connect(pipeline))
    return findings


def _collect(checks: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Return the findings of ``checks``; an error that ends them becomes the last finding."""
    findings: list[Finding] = []
    try:
        findings.extend(checks())
    except CdcError as error:
        detail = f": {error.detail}" if error.detail else ""
        findings.append(
            Finding.error(error.kind.value, f"{error.message}{detail}", remedy=error.remedy)
        )
    return findings


def _source(pipeline: Pipeline) -> Iterator[Finding]:
    config, endpoints = pipeline.config, pipeline.endpoints
    with connect(endpoints.source_url) as connection:
        yield Finding.ok("source", f"answers at {address(endpoints.source_url)}")
        yield from _collect(lambda: _tls(pipeline))
        yield from server_findings(connection)
        catalog = inspect(connection, config)
        yield from _collect(lambda: iter(role_findings(connection, config, catalog.tables)))
        yield from triggers.findings(connection)
        yield from _slot(pipeline, connection)
        known = captured_by_connector(pipeline) if endpoints.connect else frozenset[TableId]()
        for table in new_tables(catalog, known):
            yield Finding.warning(str(table), NEW, remedy=TAKE_IN)
        yield from (
            _table(table) for table in catalog.tables if not errors_of(table.table, catalog, known)
        )
        yield from (f for f in catalog.findings if not (f.of_new and f.table in known))


def _tls(pipeline: Pipeline) -> Iterator[Finding]:
    mode = tls(pipeline.config, pipeline.endpoints.source_url)["sslmode"]
    yield Finding.ok("TLS", f"the connector will use sslmode={mode}")


def _slot(pipeline: Pipeline, connection: Connection) -> Iterator[Finding]:
    state = slot.slot_state(connection, pipeline.name)
    ours = bool(pipeline.endpoints.connect) and _has_task(pipeline.endpoints.connect, pipeline.name)
    try:
        slot.refuse_foreign(pipeline.name, state, read_by_us=ours)
    except CdcError as error:
        yield Finding.error(f"slot {pipeline.name}", error.message, remedy=error.remedy)
    else:
        yield from slot_findings(connection, pipeline.name)


def _has_task(connect_url: str, name: str) -> bool:
    try:
        connector = status(connect_url, name)
    except CdcError:
        return False
    return connector is not None and bool(connector.tasks)


def _table(table: SourceTable) -> Finding:
    arriving = sum(column.arrives for column in table.columns)
    key = f"key {', '.join(table.key)}" if table.key else table.mode.value
    return Finding.ok(str(table.table), f"{key}; {arriving} of {len(table.columns)} columns arrive")


def _kafka(broker: Broker, name: str) -> Iterator[Finding]:
    topic_ids(broker, [HEARTBEAT.topic(name)])  # one that its user may ask for, if any
    yield Finding.ok("kafka", f"answers at {broker}")


def _registry(url: str) -> Iterator[Finding]:
    try:
        answer = http_client.get(url, "/apis/ccompat/v7/subjects", timeout=_SECONDS)
        refuse_unknown(answer, url)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        yield Finding.error(
            "registry",
            f"no answer at {http_client.without_login(url)} ({type(error).__name__})",
            remedy="start it, or correct registry.url (the base URL, without /apis)",
        )
    else:
        yield Finding.ok("registry", f"answers at {http_client.without_login(url)}")


def _connect(pipeline: Pipeline) -> Iterator[Finding]:
    url = pipeline.endpoints.connect
    if (warning := clear_password(pipeline)) is not None:
        yield warning
    connector = status(url, pipeline.name)
    yield Finding.ok("connect", f"answers at {http_client.without_login(url)}")
    if connector is not None and connector.failure:
        failure = f"failed: {connector.failure}"
        yield Finding.error(f"connector {pipeline.name}", failure, remedy=_FAILED)


def _disk(config: Config) -> Iterator[Finding]:
    places = {"state_dir": config.state_dir}
    if is_local(config.lake.path):
        places["lake.path"] = Path(config.lake.path)
    for subject, path in places.items():
        existing = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
        yield _unusable(subject, path, existing) or _room(subject, path, existing)


def _object_store(config: Config) -> Iterator[Finding]:
    with store_errors_named():
        refuse_unwritable(config)
    yield Finding.ok("lake.path", f"{config.lake.path} can be written, and refuses to overwrite")


def _unusable(subject: str, path: Path, existing: Path) -> Finding | None:
    """Return an error if nothing can be written at the path, else None.

    ``existing`` is the path itself or the nearest parent that exists.
    """
    if not existing.is_dir():
        return Finding.error(
            subject,
            f"{existing} is not a directory",
            remedy=f"correct {subject}, or move that file away",
        )
    if not os.access(existing, os.W_OK | os.X_OK):
        return Finding.error(
            subject,
            f"{path} cannot be written: this user has no write permission on {existing}",
            remedy=f"correct {subject}, or give this user write permission there",
        )
    if shutil.disk_usage(existing).total == 0:
        return Finding.error(
            subject,
            f"{path} cannot be written: {existing} is on a file system that cannot store files",
            remedy=f"correct {subject}",
        )
    return None


def _room(subject: str, path: Path, existing: Path) -> Finding:
    free = shutil.disk_usage(existing).free
    text = f"{free / 1024**3:,.1f} GiB free at {path}"
    if free >= ENOUGH_BYTES:
        return Finding.ok(subject, text)
    level = Level.ERROR if free < LITTLE_BYTES else Level.WARNING
    return Finding(level, subject, text, "free some space, or choose another path")
