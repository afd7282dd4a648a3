"""What ``up`` asks the source before it starts a server: a typo is told at once, and not late."""

from cdc.capture.bootstrap import has_begun_here, refuse_unfit
from cdc.config import Config
from cdc.lake.layout import refuse_unwritable
from cdc.source.catalog.captured import captured_tables
from cdc.source.server.connection import connect
from cdc.source.server.tls import tls
from cdc.state.endpoints import configured_source_url


def look(config: Config) -> None:
    """Refuse what the start would refuse later, with the same error; change nothing.

    Where a connector may have begun already, single tables are left to the start: it knows which
    of them the pipeline has, and those must not keep the others from going on.
    """
    refuse_unwritable(config)
    url = configured_source_url(config.source)
    if url is None:
        return  # an embedded source is empty, or holds what an earlier start has judged
    tls(config, url)
    with connect(url) as connection:
        refuse_unfit(connection, config)
        if config.connect.url is None and not has_begun_here(config):
            captured_tables(connection, config)
