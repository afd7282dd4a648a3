"""Rules of how events are applied, to remove one at a time."""

from typing import Final

from tests.mutants.mutant import Mutant

SPARK: Final = (
    "tests/spark/apply/test_apply_is_fold.py",
    "tests/spark/apply/rounds/test_rounds.py",
)
RECORDED: Final = ("tests/spark/apply/test_recorded_events.py",)
PURE: Final = ("tests/unit", "tests/property")

APPLYING: Final = (
    Mutant(
        name="a change without a column of the table stops it",
        file="cdc/apply/table/event_applier.py",
        old="            refuse_lacking(part, own, content.structure)\n",
        new="            pass\n",
        tests=("tests/spark/apply/test_missing_columns.py",),
    ),
    Mutant(
        name="rows that were read may lack a column",
        file="cdc/apply/table/missing_columns.py",
        old='.where(F.col("op") != PASSED_OVER)',
        new="",
        tests=("tests/spark/apply/test_missing_columns.py",),
    ),
    Mutant(
        name="offset guard of the reference",
        file="cdc/events/order.py",
        old="if event.offset > after:",
        new="if True:",
        tests=PURE,
    ),
    Mutant(
        name="position of a table: skip events before it",
        file="cdc/apply/table/event_applier.py",
        old="self.mine.between(after, upto)",
        new="self.mine.between(-1, upto)",
        tests=SPARK,
    ),
    Mutant(
        name="no cut beyond rows of the first snapshot",
        file="cdc/apply/rounds/first_snapshot.py",
        old="        if self.applied:\n",
        new="        if True:\n",
        tests=SPARK,
    ),
    Mutant(
        name="TOAST carry-over inside a batch",
        file="cdc/apply/table/batch.py",
        old='self._reduced(changes, carry=bool(facts["keeps"]), empty=truncated)',
        new="self._reduced(changes, carry=False, empty=truncated)",
        tests=(*SPARK, *RECORDED),
    ),
    Mutant(
        name="TOAST carry-over from the lake's row",
        file="cdc/apply/table/batch.py",
        old='return self._merge(mine, good, refused, after, keep=bool(facts["keeps"]))',
        new="return self._merge(mine, good, refused, after, keep=False)",
        tests=SPARK,
    ),
    Mutant(
        name="TOAST carry-over to a changed key",
        file="cdc/apply/table/batch.py",
        old='        if not facts["moves"]:\n',
        new="        if facts is not None:\n",
        tests=(*SPARK, "tests/spark"),
    ),
    Mutant(
        name="truncate",
        file="cdc/apply/changes/reduce.py",
        old="IF({_GOOD} AND {OP} = 't', {OFFSET}, NULL)",
        new="IF(false, {OFFSET}, NULL)",
        tests=SPARK,
    ),
    Mutant(
        name="events before a truncate",
        file="cdc/apply/changes/reduce.py",
        old='return changes.where(f"{OFFSET} > {offset}")',
        new='return changes.where(f"{OFFSET} <> {offset}")',
        tests=SPARK,
    ),
    Mutant(
        name="tie-break: the last of a key's events",
        file="cdc/apply/changes/reduce.py",
        old='newest = f"IF({_APPLIES}, 0, 1), {OFFSET} DESC"',
        new='newest = f"IF({_APPLIES}, 0, 1)"',
        tests=(*SPARK, *RECORDED),
    ),
    Mutant(
        name="type check: a column that changed",
        file="cdc/events/schema.py",
        old="if before is not None and not fits(column.type, before.type):",
        new="if False:",
        tests=(*PURE, *SPARK),
    ),
    Mutant(
        name="type check: old values under another type",
        file="cdc/events/structure/column_steps.py",
        old="    elif lake is None:\n",
        new="    elif False:\n",
        tests=PURE,
    ),
    Mutant(
        name="notes: a table that was away counts as one that stayed",
        file="cdc/events/structure/derive_steps.py",
        old="(*_missed(old, notes), *_table_steps(old, before, append=append))",
        new="tuple(_table_steps(old, before, append=append))",
        tests=PURE,
    ),
    Mutant(
        name="type check: a value beyond the lake's limits",
        file="cdc/apply/changes/scalars.py",
        old='inside = f"{raw} BETWEEN {FIRST_MICRO} AND {LAST_MICRO}"',
        new='inside = "true"',
        tests=("tests/spark/apply/test_quarantine_writer.py", *RECORDED),
    ),
    Mutant(
        name="rounds that are held or wait for an event are no progress",
        file="cdc/apply/rounds/rounds.py",
        old="if not waiting and (self._incomplete is None or self._incomplete.incomplete is None):",
        new="if True:",
        tests=("tests/spark/apply/rounds/test_claims.py",),
    ),
    Mutant(
        name="${..} in a text is not substituted",
        file="cdc/events/values/sql_text.py",
        old=r"[\\'$\x00",
        new=r"[\\'\x00",
        tests=("tests/unit/events/test_sql_text.py", "tests/spark/lake/test_sql_text.py"),
    ),
    Mutant(
        name="a schema's name in Avro begins with no digit",
        file="cdc/events/names.py",
        old='f"_{part}" if part[:1].isdigit() else part',
        new="part",
        tests=("tests/unit/events/test_names.py",),
    ),
    Mutant(
        name="a column with a name reserved by an engine is refused",
        file="cdc/events/names.py",
        old="    if name.lower() in OF_ENGINES:\n",
        new="    if not name:\n",
        tests=("tests/unit/events/test_names.py", "tests/unit/events/test_refused_columns.py"),
    ),
    Mutant(
        name="refused events are taken in batches",
        file="cdc/apply/table/quarantine_writer.py",
        old='f"{_BYTES_SO_FAR} DIV {REFUSED_BYTES} AS part"',
        new='"0 AS part"',
        tests=("tests/spark/apply/test_stop_at_too_many_refused.py",),
    ),
    Mutant(
        name="a transaction that a cut parts is counted again",
        file="cdc/apply/rounds/summary.py",
        old="return self.txid is not None and self.first <= after < self.last",
        new="return False",
        tests=("tests/unit/apply/test_summaries.py",),
    ),
    Mutant(
        name="a summary ends where a cut ends",
        file="cdc/apply/rounds/summary.py",
        old="[group for group in self.groups if group.last > after.get(group.topic, -1)]",
        new="list(self.groups)",
        tests=("tests/unit/apply/test_summaries.py",),
    ),
    Mutant(
        name="a landing is summarised again with a schema that was not known",
        file="cdc/apply/rounds/summaries.py",
        old="if known is None or (known.unknown and self._schemas_of(known.unknown)):",
        new="if known is None:",
        tests=("tests/unit/apply/test_summaries.py",),
    ),
    Mutant(
        name="END markers of a topic that waits do not count",
        file="cdc/apply/rounds/log_slice.py",
        old="    if marker_topic not in topics:\n",
        new="    if False:\n",
        tests=("tests/unit/apply/test_summaries.py",),
    ),
    Mutant(
        name="rows are in memory only if those of every landing are",
        file="cdc/apply/rounds/log_slice.py",
        old="    if not events or len(events) < len(landings):\n",
        new="    if not events:\n",
        tests=("tests/unit/apply/test_summaries.py",),
    ),
    Mutant(
        name="an event whose transaction id is no number is undecodable",
        file="cdc/apply/rounds/local_summary.py",
        old="event_op(event)",
        new="event['op']",
        tests=("tests/spark/apply/rounds/test_summaries_two_ways.py",),
    ),
)
