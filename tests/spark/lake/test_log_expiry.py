"""After an expiry, the log still restores each table at each remaining cut, and at no other."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Config, Job, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import log_path
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading
from cdc.lake.table import store
from cdc.lake.table.positions import LandedPosition, landed_position, open_table
from cdc.lake.upkeep.maintenance import expire
from cdc.land.log_table import create_log
from cdc.operations.desk.context import RebuildContext
from cdc.operations.replay.inputs import from_log
from cdc.operations.replay.material import ReplayEnd
from cdc.operations.replay.rebuild import rebuild_table
from tests.events.source import TABLE, TOPIC
from tests.spark.rebuilding import (
    PLACEHOLDER,
    SCHEMAS,
    TOASTY,
    Log,
    by_id,
    changes,
    expected,
    legal_cuts,
)

pytestmark = pytest.mark.spark

OTHER = "w.other"
AT = LandedPosition(epoch=1, landing=99, offsets={}, topic_ids={})


@pytest.fixture
def context(spark: SparkSession, tmp_path: Path) -> RebuildContext:
    name = TOPIC.removesuffix(f".{TABLE}")
    source, lake = Source(tables=["public.*"]), Lake(path=str(tmp_path / "lake"))
    return RebuildContext(
        session=spark.newSession(),
        config=Config(name=name, source=source, lake=lake, state_dir=tmp_path),
        schemas_of=lambda ids: {i: SCHEMAS[i] for i in ids if i in SCHEMAS},
        factory=TableFactory(
            ApplyContext(
                quarantine=Quarantine(str(tmp_path / "quarantine")),
                placeholder=PLACEHOLDER,
                policy=Job(),
            )
        ),
    )


def written(context: RebuildContext, log: Log) -> None:
    """Write the events to the lake's log, and once more under another topic."""
    path, rows = log_path(context.config), log.rows().selectExpr("*", "now() AS landed_at")
    create_log(context.session, path, AT)
    other = rows.selectExpr("* EXCEPT (topic)", f"'{OTHER}' AS topic")
    names = [name for name in store.read(context.session, path).columns if name in rows.columns]
    both = rows.unionByName(other).select(*names)
    both.write.format("delta").option("userMetadata", AT.metadata()).mode("append").save(path)


def image(context: RebuildContext, log: Log, path: str, at: int) -> Reading:
    """Build an image as the job does, by a rebuild up to the cut."""
    made = rebuild_table(context.session, log.material(), TABLE, path, upto=at, epoch=1)
    table = open_table(path)
    assert table is not None
    return Reading(
        number=1,
        table=str(TABLE),
        whole=True,
        path=path,
        version=table.version(),
        position=made.position,
        lsn=1,
        cut=1,
        landing=log.landing_at(at),
        operation="o",
        made_at=datetime.now(UTC),
        image=True,
    )


def counted(context: RebuildContext) -> dict[str, int]:
    log = store.read(context.session, log_path(context.config))
    return {row["topic"]: row["count"] for row in log.groupBy("topic").count().collect()}


def test_every_cut_after_an_image_can_be_rebuilt_from_it_and_later_events(
    context: RebuildContext, tmp_path: Path
) -> None:
    source = changes(4, 80)
    log = Log(spark=context.session, root=tmp_path, messages=source.messages())
    written(context, log)
    cuts = legal_cuts(source)
    at, before, last = cuts[len(cuts) // 3], cuts[3], source.log[-1][0]
    found = image(context, log, str(tmp_path / "image"), at)
    position = replace(AT, expired={TOPIC: (found.landing, at)})
    every = counted(context)

    expire(context.session, log_path(context.config), position.metadata(), position.expired)

    gone = found.landing * log.per_landing
    assert counted(context) == {TOPIC: every[TOPIC] - gone, OTHER: every[OTHER]}
    assert landed_position(log_path(context.config)) == position
    for upto in (at, last):
        end = ReplayEnd(epoch=1, upto=upto, notes=-1)
        material = from_log(context, TABLE, end, readings=[found], known=TOASTY)
        path = str(tmp_path / f"at-{upto}")
        table = rebuild_table(context.session, material, TABLE, path, upto=upto, epoch=1)
        assert by_id(context.session, table) == expected(source.events(), upto), upto

    for upto in (before, last):
        material = from_log(
            context, TABLE, ReplayEnd(epoch=1, upto=upto, notes=-1), readings=[], known=TOASTY
        )
        with pytest.raises(CdcError, match=r"have been removed|ends before") as caught:
            rebuild_table(context.session, material, TABLE, str(tmp_path / "n"), upto=upto, epoch=1)
        assert caught.value.kind is ErrorKind.CHAIN_BROKEN
