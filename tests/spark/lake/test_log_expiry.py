"""A log without what has expired gives each table at each cut that is left, and refuses others."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import log_path
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading
from cdc.lake.table import store
from cdc.lake.table.positions import LandedPosition, landed_position, open_table
from cdc.lake.upkeep.maintenance import expire
from cdc.land.query import create_log
from cdc.operations.desk.context import Kept
from cdc.operations.replay.inputs import Place, from_log
from cdc.operations.replay.rebuild import rebuilt
from tests.events.source import TABLE, TOPIC
from tests.spark.rebuilding import SCHEMAS, TOASTY, TOKEN, Log, by_id, changes, expected, legal_cuts

pytestmark = pytest.mark.spark

OTHER = "w.other"
AT = LandedPosition(epoch=1, landing=99, offsets={}, topic_ids={})


@pytest.fixture
def kept(spark: SparkSession, tmp_path: Path) -> Kept:
    name = TOPIC.removesuffix(f".{TABLE}")
    source, lake = Source(tables=["public.*"]), Lake(path=str(tmp_path / "lake"))
    return Kept(
        session=spark.newSession(),
        config=Config(name=name, source=source, lake=lake, state_dir=tmp_path),
        schemas_of=lambda ids: {i: SCHEMAS[i] for i in ids if i in SCHEMAS},
        placeholder=TOKEN,
        quarantine=Quarantine(str(tmp_path / "quarantine")),
    )


def written(kept: Kept, log: Log) -> None:
    """The events in the lake's log, each once more under another topic."""
    path, rows = log_path(kept.config), log.rows().selectExpr("*", "now() AS landed_at")
    create_log(kept.session, path, AT)
    other = rows.selectExpr("* EXCEPT (topic)", f"'{OTHER}' AS topic")
    names = [name for name in store.read(kept.session, path).columns if name in rows.columns]
    both = rows.unionByName(other).select(*names)
    both.write.format("delta").option("userMetadata", AT.metadata()).mode("append").save(path)


def image(kept: Kept, log: Log, path: str, at: int) -> Reading:
    """As the job makes one: by a rebuild up to the cut."""
    made = rebuilt(kept.session, log.material(), TABLE, path, upto=at, epoch=1)
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


def counted(kept: Kept) -> dict[str, int]:
    log = store.read(kept.session, log_path(kept.config))
    return {row["topic"]: row["count"] for row in log.groupBy("topic").count().collect()}


def test_every_cut_after_an_image_is_made_of_it_and_of_the_rest(kept: Kept, tmp_path: Path) -> None:
    source = changes(4, 80)
    log = Log(spark=kept.session, root=tmp_path, messages=source.messages())
    written(kept, log)
    cuts = legal_cuts(source)
    at, before, last = cuts[len(cuts) // 3], cuts[3], source.log[-1][0]
    found = image(kept, log, str(tmp_path / "image"), at)
    position = replace(AT, expired={TOPIC: (found.landing, at)})
    every = counted(kept)

    expire(kept.session, log_path(kept.config), position.metadata(), position.expired)

    gone = found.landing * log.per_landing
    assert counted(kept) == {TOPIC: every[TOPIC] - gone, OTHER: every[OTHER]}
    assert landed_position(log_path(kept.config)) == position
    for upto in (at, last):
        place = Place(epoch=1, upto=upto, notes=-1)
        material = from_log(kept, TABLE, place, readings=[found], known=TOASTY)
        path = str(tmp_path / f"at-{upto}")
        table = rebuilt(kept.session, material, TABLE, path, upto=upto, epoch=1)
        assert by_id(kept.session, table) == expected(source.events(), upto), upto

    for upto in (before, last):
        material = from_log(
            kept, TABLE, Place(epoch=1, upto=upto, notes=-1), readings=[], known=TOASTY
        )
        with pytest.raises(CdcError, match=r"is removed|ends before") as caught:
            rebuilt(kept.session, material, TABLE, str(tmp_path / "n"), upto=upto, epoch=1)
        assert caught.value.kind is ErrorKind.CHAIN_BROKEN
