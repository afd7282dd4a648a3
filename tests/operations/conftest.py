"""Provides a shop whose lake an operator repairs by the command line, on real servers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from cdc.config import COPY
from tests.e2e.installation import Installation
from tests.local_spark import QUICK
from tests.servers.fixtures import started

SHOP_SQL = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (
  id int PRIMARY KEY, customer text, amount numeric(12,2), placed date, body text, tags text[]);
CREATE TABLE shop.lines (
  order_id int, place smallint, what text, weight int DEFAULT 1, PRIMARY KEY (order_id, place));
CREATE TABLE shop.stock (id int PRIMARY KEY, amount int);
CREATE TABLE shop.prices (id int PRIMARY KEY, price numeric(10,2));
CREATE TABLE shop.places (id int PRIMARY KEY, name text);
INSERT INTO shop.stock SELECT i, i FROM generate_series(1, 20) i;
INSERT INTO shop.prices SELECT i, i * 1.5 FROM generate_series(1, 20) i;
INSERT INTO shop.places SELECT i, 'place ' || i FROM generate_series(1, 20) i;
CREATE TABLE shop.visits (who text, page int);
ALTER TABLE shop.visits REPLICA IDENTITY FULL;
INSERT INTO shop.orders
  SELECT i, 'customer ' || i % 7, i * 1.25, date '2024-01-01' + i, repeat(md5(i::text), 200),
         ARRAY['a', NULL, 'b' || i]
  FROM generate_series(1, 300) i;
INSERT INTO shop.lines SELECT i, j, 'line ' || i || j FROM generate_series(1, 100) i,
  generate_series(1, 3) j;
INSERT INTO shop.visits SELECT 'v' || i % 10, i % 3 FROM generate_series(1, 200) i;
CREATE TABLE shop.pictures (id int PRIMARY KEY, picture text);
ALTER TABLE shop.pictures ALTER COLUMN picture SET STORAGE PLAIN;
INSERT INTO shop.pictures SELECT i, repeat(md5(i::text), 60) FROM generate_series(1, 2500) i;
"""


def installed(
    folder: Path,
    servers: dict[str, object],
    tables: list[str],
    conf: Mapping[str, str] = QUICK,
    snapshot: str = COPY,
) -> Installation:
    """Write a configuration for these servers and tables; all other servers are embedded."""
    folder.mkdir(parents=True)
    found = Installation(folder=folder, servers=servers)  # type: ignore[arg-type]
    written = {
        "source": {"url": found.source_url, "tables": tables, "snapshot": snapshot},
        "lake": {"path": "lake"},
        "spark": {"master": "local[2]", "driver_memory": "1500m", "conf": dict(conf)},
    }
    (folder / "wal2lake.yaml").write_text(yaml.safe_dump(written))
    return found


@contextmanager
def snapshotted(
    request: pytest.FixtureRequest,
    root: Path,
    *,
    sql: str,
    tables: str,
    seconds: int,
    conf: Mapping[str, str] = QUICK,
    snapshot: str = COPY,
) -> Iterator[Installation]:
    """Yield a running installation with its first snapshot in the lake; nothing runs afterwards."""
    with started(request, root / "servers", ("postgres",)) as servers:
        found = installed(root / "lakehouse", dict(servers), [tables], conf, snapshot)
        found.execute(sql)
        found.run("up", "--detach")
        try:
            found.run("sync", "--timeout", str(seconds))
            yield found
        finally:
            found.run("down")
            assert found.processes() == []


@pytest.fixture(scope="package")
def shop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    root = tmp_path_factory.mktemp("operations")
    with snapshotted(request, root, sql=SHOP_SQL, tables="shop.*", seconds=300) as found:
        yield found
