"""Compare the source with the lake at one position, while both are being written.

A temporary slot gives a snapshot of the source and the LSN it stands at; the job is asked for a
cut that ends exactly there; then every row and every value of both is compared.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cdc.config import Config
from cdc.lake.ledger import LedgerRow
from cdc.operate.moment import moment, tables_of
from cdc.operate.table_verdict import TableVerdict, compare_table
from cdc.source.captured import captured_tables
from cdc.source.postgres import Connection
from cdc.stack.endpoints import Endpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All tables at one cut."""

    cut: int
    lsn: int  # the source was read at this position
    seconds: float
    tables: tuple[TableVerdict, ...]

    @property
    def equal(self) -> bool:
        return all(table.equal for table in self.tables)


def verify(
    config: Config,
    endpoints: Endpoints,
    *,
    timeout: float,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """Compare all captured tables; raises TIMEOUT when the job gives no cut in time.

    ``tell`` hears what is being waited for or compared.
    """
    started = time.monotonic()
    with moment(config, endpoints, timeout=timeout, tell=tell) as found:
        verdicts = list(_compare_all(found.connection, config, found.cut, tell))
    seconds = time.monotonic() - started
    return Report(cut=found.cut.cut, lsn=found.lsn, seconds=seconds, tables=tuple(verdicts))


def _compare_all(
    connection: Connection, config: Config, row: LedgerRow, tell: Callable[[str], None]
) -> Iterator[TableVerdict]:
    for table in captured_tables(connection, config, tables_of(row)):
        tell(f"comparing {table.table}")
        yield compare_table(connection, table, row.entry(str(table.table)), _scratch(config))


def _scratch(config: Config) -> Path:
    folder = config.state_dir / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
