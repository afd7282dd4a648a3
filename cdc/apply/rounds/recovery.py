"""At the start: what the lake itself says of how far it is, and how the rest is made good.

Nothing is remembered elsewhere. The log's newest commit says what has landed, each table's what
is applied, the ledger's newest row where the last cut lies. A table behind that cut (new,
deleted, stopped before) is replayed from the log before the first round.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.replay import nothing, replay
from cdc.apply.rounds.rounds import Applier
from cdc.apply.table.structure_notes import PlacedNote, note_rows, read_notes
from cdc.capture.provenance import known_origin, known_topics
from cdc.config import Config
from cdc.failpoints import Failpoint, reach
from cdc.kafka.same_topic import refuse_broken
from cdc.kafka.topic_watch import found
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.records import epochs
from cdc.lake.records.epochs import Epoch
from cdc.lake.table import positions, store
from cdc.lake.table.positions import LandedPosition
from cdc.land import landing as landed_values
from cdc.land.query import create_log, landings, summary
from cdc.source.server.origin import Origin, refuse_other


def open_log(
    spark: SparkSession, config: Config, kafka: str, topics: list[str], source: Origin
) -> LandedPosition:
    """The log's position; creates the log.

    Raises CHAIN_BROKEN for a topic or a source that is not the one whose events have landed.
    """
    path, epoch = log_path(config), epochs.last(epochs_path(config))
    landed = positions.landed_position(path)
    now = found(kafka, topics)
    expected = known_topics(landed, epoch, topics)
    refuse_broken(expected, now)
    refuse_other(known_origin(landed, epoch), source, reached=0)
    begun = landed or LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
    position = replace(
        begun,
        epoch=epochs.number(epoch),
        topic_ids={**begun.topic_ids, **{topic: facts.id for topic, facts in now.items()}},
        # What an epoch has left behind may be gone from its topic.
        offsets=begun.offsets
        | {t: max(last, now[t].first - 1) for t, last in begun.offsets.items() if t in expected},
        system=source.system,
        timeline=source.timeline,
    )
    if landed is None:
        reach(Failpoint.BEFORE_LOG_CREATE)
        create_log(spark, path, position)
        reach(Failpoint.AFTER_LOG_CREATE)
    return position


def catch_up(
    spark: SparkSession,
    path: str,
    applier: Applier,
    epoch: Epoch | None = None,
    step: Callable[[], None] = nothing,
) -> None:
    """Refill the inbox with what landed after the last cut; replay tables that are behind it.

    ``epoch`` is the lake's newest: landings that it left behind whole are passed over. ``step`` is
    called after each batch of a replay.
    """
    log = store.read_pinned(spark, path)
    base = applier.base
    landed = positions.landed_position(path)
    for topic, table in applier.tables.items():
        if base.entry(str(table.schema.table)) is None:
            known = _last(log, landed, topic, base.landing_floor), _left(epoch, topic)
            applier.offsets[topic] = max(*known, _expired(landed, topic))
    waiting = landings(summary(log.where(F.col("landing") > base.landing_floor)))
    passed = landed_values.floor(waiting, applier.offsets, base.landing_floor)
    for landing in waiting:
        if landing.number > passed:
            applier.inbox.add(landing)
    _go_on(log, path, applier, list(applier.tables), epoch=epoch, step=step)


def resume(spark: SparkSession, path: str, applier: Applier, epoch: Epoch | None = None) -> None:
    """Bring tables to the last cut that may follow again.

    Those that were read again; and stopped ones of whose structure the cut tells more, a key that
    is given back, for one. What cannot go on stops again for the same reason. A table that waits
    to be read stays stopped: what it missed is in no log.
    """
    noted = [topic for topic in applier.take_noted() if _is_read(applier, topic)]
    for topic in noted:
        applier.tables[topic].again()
    if topics := [*noted, *applier.freezer.between_rounds()]:
        log = store.read_pinned(spark, path)
        _go_on(log, path, applier, topics, epoch=epoch, step=nothing)


def _is_read(applier: Applier, topic: str) -> bool:
    """Whether the table was whole at some moment of the present epoch."""
    position = applier.tables[topic].position
    return position.epoch >= applier.base.epoch and position.reading >= 0


def _expired(landed: LandedPosition | None, topic: str) -> int:
    """The last offset of the topic that the log may have had and has given up; -1 for none."""
    return landed.expired.get(topic, positions.NOTHING)[1] if landed else -1


def _left(epoch: Epoch | None, topic: str) -> int:
    return -1 if epoch is None else epoch.left(topic)


def _go_on(
    log: DataFrame,
    path: str,
    applier: Applier,
    topics: Sequence[str],
    *,
    epoch: Epoch | None,
    step: Callable[[], None],
) -> None:
    """Bring tables to the last cut."""
    notes = _notes(log, path, applier, after=_left(epoch, applier.notes_topic))
    for topic in topics:
        table, upto = applier.tables[topic], applier.offsets[topic]
        if table.following and (table.position.offset < upto or table.pending(notes)):
            mine = log.where((F.col("topic") == topic) & (F.col("offset") <= upto))
            replay(
                mine,
                topic,
                table,
                notes,
                schemas_of=applier.schemas,
                budget=applier.budget,
                step=step,
            )


def _last(log: DataFrame, landed: LandedPosition | None, topic: str, floor: int) -> int:
    """The last offset of the topic up to a landing; -1 for none, which needs no look at the log."""
    if landed is None or topic not in landed.offsets:
        return -1
    mine = log.where((F.col("topic") == topic) & (F.col("landing") <= floor))
    found = mine.agg(F.max("offset").alias("last")).collect()[0]["last"]
    return -1 if found is None else int(found)


def _notes(log: DataFrame, path: str, applier: Applier, *, after: int) -> list[PlacedNote]:
    """All changes of structures in the log between an offset and the last cut."""
    upto = applier.offsets[applier.notes_topic]
    place = (F.col("offset") > after) & (F.col("offset") <= upto)
    rows = note_rows(log, path, applier.notes_topic).where(place)
    return read_notes(rows, applier.schemas)
