"""Rules that are taken out one at a time, each as the text of the code that says it."""

from typing import Final

from tests.mutants.mutant import Mutant

SPARK: Final = ("tests/spark/test_apply_is_fold.py", "tests/spark/test_rounds.py")
RECORDED: Final = ("tests/spark/test_recorded_events.py",)
PURE: Final = ("tests/unit", "tests/property")

MUTANTS: Final = (
    Mutant(
        name="offset guard of a merge",
        file="cdc/apply/merge_plan.py",
        old='guard = f"source.{OFFSET} > target.{OFFSET}"',
        new='guard = "true"',
        tests=(*PURE, *SPARK),
    ),
    Mutant(
        name="offset guard of the reference",
        file="cdc/events/order.py",
        old="if event.offset > after:",
        new="if True:",
        tests=PURE,
    ),
    Mutant(
        name="position of a table: what is before it",
        file="cdc/apply/table.py",
        old='F.col("offset").between(self.position.offset + 1, upto)',
        new='F.col("offset").between(-1, upto)',
        tests=SPARK,
    ),
    Mutant(
        name="no cut beyond rows of the first snapshot",
        file="cdc/apply/first_snapshot.py",
        old="        if self.applied:\n",
        new="        if True:\n",
        tests=SPARK,
    ),
    Mutant(
        name="TOAST carry-over inside a batch",
        file="cdc/apply/batch.py",
        old='self._reduced(changes, carry=bool(facts["keeps"]), empty=truncated)',
        new="self._reduced(changes, carry=False, empty=truncated)",
        tests=(*SPARK, *RECORDED),
    ),
    Mutant(
        name="TOAST carry-over from the lake's row",
        file="cdc/apply/batch.py",
        old='return self._merge(mine, good, refused, after, keep=bool(facts["keeps"]))',
        new="return self._merge(mine, good, refused, after, keep=False)",
        tests=SPARK,
    ),
    Mutant(
        name="TOAST carry-over to a changed key",
        file="cdc/apply/batch.py",
        old='        if not facts["moves"]:\n',
        new="        if facts is not None:\n",
        tests=(*SPARK, "tests/spark"),
    ),
    Mutant(
        name="truncate",
        file="cdc/apply/order.py",
        old="IF({_GOOD} AND {OP} = 't', {OFFSET}, NULL)",
        new="IF(false, {OFFSET}, NULL)",
        tests=SPARK,
    ),
    Mutant(
        name="events before a truncate",
        file="cdc/apply/order.py",
        old='return changes.where(f"{OFFSET} > {offset}")',
        new='return changes.where(f"{OFFSET} <> {offset}")',
        tests=SPARK,
    ),
    Mutant(
        name="tie-break: the last of a key's events",
        file="cdc/apply/order.py",
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
        file="cdc/events/steps.py",
        old="    elif lake is None:\n",
        new="    elif False:\n",
        tests=PURE,
    ),
    Mutant(
        name="notes: a table that was away counts as one that stayed",
        file="cdc/events/steps.py",
        old="(*_missed(old, notes), *_of_table(old, before, append=append))",
        new="tuple(_of_table(old, before, append=append))",
        tests=PURE,
    ),
    Mutant(
        name="type check: a value beyond the lake's limits",
        file="cdc/apply/values.py",
        old='inside = f"{raw} BETWEEN {FIRST_MICRO} AND {LAST_MICRO}"',
        new='inside = "true"',
        tests=("tests/spark/test_refused_events.py", *RECORDED),
    ),
    Mutant(
        name="old versions: the one that was the newest then",
        file="cdc/lake/transaction_log.py",
        old="if version <= newest_then)",
        new="if version <= newest_then + 1)",
        tests=("tests/unit/test_transaction_log.py",),
    ),
    Mutant(
        name="small files: what is larger than twice all others is left alone",
        file="cdc/lake/small_files.py",
        old=" and size <= 2 * (total - size)",
        new="",
        tests=("tests/unit/test_small_files.py",),
    ),
    Mutant(
        name="old versions: Delta's own cleaning is off",
        file="cdc/lake/maintenance.py",
        old="by_delta = str(not is_local(path)).lower()",
        new='by_delta = "true"',
        tests=("tests/spark/test_maintenance.py",),
    ),
    Mutant(
        name="a connector that is said to run, and is nowhere, is restarted",
        file="cdc/stack/connector_watch.py",
        old="return self.absence.is_too_long(now)",
        new="return False",
        tests=("tests/stack/test_watch.py",),
    ),
    Mutant(
        name="what is appended has the broker's time",
        file="cdc/source/bootstrap.py",
        old='{"message.timestamp.type": "LogAppendTime"}',
        new="{}",
        tests=("tests/source/test_topic_times.py",),
    ),
    Mutant(
        name="a hop that comes to nothing stands still",
        file="cdc/observe/hops.py",
        old="    if waited < LIMIT_SECONDS:\n",
        new="    if True:\n",
        tests=("tests/unit/test_hops.py",),
    ),
    Mutant(
        name="a counter that cannot be seen has not moved",
        file="cdc/observe/hops.py",
        old="return after is not None and after != before",
        new="return after != before",
        tests=("tests/unit/test_hops.py",),
    ),
    Mutant(
        name="rounds that are held, or wait for an event, are no moves",
        file="cdc/apply/rounds.py",
        old="if not asked and (self._without is None or self._without.incomplete is None):",
        new="if True:",
        tests=("tests/spark/test_claims.py",),
    ),
    Mutant(
        name="messages of others are passed over, whatever their prefix",
        file="connectors/postgres-source.json",
        old='"(?s).*"',
        new='".*"',
        tests=("tests/source/test_chain.py",),
    ),
    Mutant(
        name="a barrier is of the source that the lake follows",
        file="cdc/operate/sync.py",
        old="refuse_other(known_origin(landed, epoch), origin(connection), 0)",
        new="pass",
        tests=("tests/operate/test_protocol.py",),
    ),
)
