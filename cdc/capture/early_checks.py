"""Makes the checks of ``up`` before it starts a server, so that a typo is reported at once."""

from cdc.capture.bootstrap import has_begun_here, refuse_unfit
from cdc.config import Config
from cdc.lake.files.unreachable import store_errors_named
from cdc.lake.writable import refuse_unwritable
from cdc.source.catalog.captured import captured_tables
from cdc.source.server.connection import connect
from cdc.source.server.tls import tls
from cdc.state.endpoints import configured_source_url


def check_early(config: Config, *, await_tables: bool = False) -> None:
    """Raise the errors that the start would raise later; change nothing.

    With ``await_tables`` the tables may come later. If a connector may have begun already, single
    tables are not checked here: the start knows which tables the pipeline has, and an unfit one of
    these must not stop the others.
    """
    with store_errors_named():
        refuse_unwritable(config)
    url = configured_source_url(config.source)
    if url is None:
        return  # an embedded source is empty, or was checked by an earlier start
    tls(config, url)
    with connect(url) as connection:
        refuse_unfit(connection, config)
        if config.connect.url is None and not has_begun_here(config) and not await_tables:
            captured_tables(connection, config)
