"""Return the findings of ``inspect`` about a configuration."""

from cdc.config import Config
from cdc.source.catalog.catalog import inspect
from cdc.source.server.connection import connect
from cdc.source.server.finding import Level


def errors(url: str, config: Config) -> list[tuple[str, str]]:
    with connect(url) as connection:
        found = inspect(connection, config).findings
    return [(f.subject, f.message) for f in found if f.level is Level.ERROR]


def warnings(url: str, config: Config) -> dict[str, str]:
    with connect(url) as connection:
        found = inspect(connection, config).findings
    return {f.subject: f.message for f in found if f.level is Level.WARNING}
