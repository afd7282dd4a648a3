"""Test which tables can be resnapshot before the first cut."""

from collections.abc import Callable
from typing import Final

import pytest

from cdc.client.resnapshot import prepare
from cdc.client.selection import TableChoice
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.lake.layout import epochs_path
from cdc.lake.records import epochs
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId
from tests.source.conftest import Maker

pytestmark = pytest.mark.integration

ALL: Final = TableChoice(every=True)


def test_every_table_once_an_epoch_began_before_the_first_cut(
    source_url: str, sql: Callable[[str], object], make_config: Maker, schema: str
) -> None:
    """It ended an interrupted first snapshot, and only a resnapshot can complete the tables."""
    sql("CREATE TABLE one (id int PRIMARY KEY); CREATE TABLE two (id int PRIMARY KEY)")
    config = make_config()
    sql(f"CREATE PUBLICATION {config.name} FOR TABLE one, two")
    endpoints = Endpoints(source_url=source_url, kafka=Broker(""), connect="", registry="")
    pipeline = Pipeline(config, endpoints)
    with pytest.raises(CdcError) as caught:  # the first snapshot is still running
        prepare(pipeline, ALL, where=None, shadow=False)
    assert caught.value.kind is ErrorKind.CONFIG
    epochs.begin(
        epochs_path(config),
        name=config.name,
        reason="broken off",
        lsn=1,
        left_behind={},
        topic_ids={},
        system="",
        timeline=1,
    )

    found = prepare(pipeline, ALL, where=None, shadow=False)

    assert found.selection.tables == (TableId(schema, "one"), TableId(schema, "two"))
