"""Bugs of pipelines like this one, planted one at a time; the suite must notice each."""

from typing import Final

from tests.mutants.mutant import Mutant

INTERRUPTED: Final = ("tests/spark/apply/rounds/test_interrupted.py",)
EVERY_STEP: Final = "tests/faults/test_every_failpoint.py"
CORRUPTION: Final = "tests/faults/test_corruption.py"
SLOT: Final = "tests/source/capture/test_chain_broken.py::test_slot_recreated"
RESTART: Final = "tests/experiments/test_stream.py::test_restart_inside_a_transaction"
OLD_CONNECTOR: Final = (
    "3.6.1.Final:plugin@tar.gz "
    "408b00c073b27ddaa7af34684f60fcf5bbf6605de68a8662ec9462f2a88880d2 25247217"
)

PLANTED: Final = (
    Mutant(
        name="planted: position committed before the data",
        file="cdc/apply/table/event_applier.py",
        old="        reach(Failpoint.BEFORE_TABLE_COMMIT)\n",
        new="        from cdc.lake.table import store\n"
        "        after = replace(content.position, offset=upto)\n"
        "        session = self.session.get()\n"
        "        session.conf.set(store.METADATA_CONF, after.metadata())\n"
        "        mode = {store.MODE_PROPERTY: content.schema.mode.value}\n"
        "        store.set_properties(session, self.path, mode)\n"
        "        reach(Failpoint.BEFORE_TABLE_COMMIT)\n",
        tests=INTERRUPTED,
    ),
    Mutant(
        name="planted: ledger before the last table",
        file="cdc/apply/rounds/rounds.py",
        old="            self._tables.bring(part, goal.cut, self._publisher.last, schemas, ids)\n"
        "            self._publisher.publish(goal.cut, part, goal.served)\n",
        new="            self._publisher.publish(goal.cut, part, goal.served)\n"
        "            self._tables.bring(part, goal.cut, self._publisher.last, schemas, ids)\n",
        tests=(f"{EVERY_STEP}::test_nothing_is_lost_or_doubled_by_kills_in_a_round",),
    ),
    Mutant(
        name="planted: no transaction alignment",
        file="cdc/apply/rounds/whole_transactions.py",
        old="offsets={topic: _cap(landed.get(topic, {}), last[topic], closed) for topic in last},",
        new="offsets=dict(last),",
        tests=("tests/unit", "tests/property"),
    ),
    Mutant(
        name="planted: checkpoint trusted alone",
        file="cdc/job/job_run.py",
        old="    shutil.rmtree(root, ignore_errors=True)\n    folder = root / uuid.uuid4().hex\n",
        new="    folder = root / uuid.uuid5(uuid.NAMESPACE_OID, 'kept').hex\n",
        tests=(f"{EVERY_STEP}::test_nothing_is_lost_or_doubled_by_kills_in_a_round",),
    ),
    Mutant(
        name="planted: topic name compared instead of id",
        file="cdc/kafka/same_topic.py",
        old="    if existing.id != expected_id:\n",
        new="    if False:\n",
        tests=("tests/unit",),
    ),
    Mutant(
        name="planted: failOnDataLoss=false",
        file="cdc/land/query.py",
        old='.option("failOnDataLoss", "true")',
        new='.option("failOnDataLoss", "false")',
        tests=("--deep", f"{CORRUPTION}::test_the_running_job_notices_it[topic shortened]"),
    ),
    Mutant(
        name="planted: deletes lost on compaction",
        file="cdc/operations/replay/topic_copy.py",
        old="    if len(forms) > 1:\n",
        new="    if False:\n",
        tests=("--deep", "tests/spark/operations/test_topic_copy.py"),
    ),
    Mutant(
        name="planted: strict guard on lsn",
        file="cdc/apply/changes/decode.py",
        old='        f"offset AS {OFFSET}",\n',
        new="        any_of([f'{w.record}.source.lsn' for w in events], 'bigint')"
        " + f' AS {OFFSET}',\n",
        # No other test of that file: where all events have one LSN, a join by it never ends.
        tests=(
            (
                "tests/spark/apply/test_apply_is_fold.py::"
                "test_a_later_event_with_the_same_lsn_is_applied"
            ),
        ),
    ),
    Mutant(
        name="planted: early slot flush",
        file="cdc/source/server/slot.py",
        old="    if (state.confirmed_lsn or 0) > sent > 0:\n",
        new="    if False:\n",
        tests=(SLOT,),
    ),
    Mutant(
        name="planted: number of a landing used again",
        file="cdc/land/query.py",
        old="        number = self.position.landing + 1\n",
        new="        number = max(1, self.position.landing)\n",
        tests=("tests/spark/apply/rounds/test_rounds.py",),
    ),
    Mutant(
        name="planted: Debezium 3.6.1 in place of 3.7.0",
        file="cdc/stack/artifacts/artifacts.lock",
        old="3.7.0.Final:plugin@tar.gz "
        "660673cbabd2f269da21409208ebd0f0d9977bd92e824fc9daa272f240e88e51 5250873",
        new=OLD_CONNECTOR,
        tests=(RESTART,),
    ),
    Mutant(
        name="planted: a barrier waits like a heartbeat",
        file="cdc/events/transactions.py",
        old="end.counts == {HEARTBEAT.topic(prefix): 1}",
        new="end.counts.keys() == {HEARTBEAT.topic(prefix)}",
        tests=("tests/unit/kafka/test_quiet_stream.py",),
    ),
    Mutant(
        name="planted: an open transaction waits like a heartbeat",
        file="cdc/kafka/quiet_stream.py",
        old="if message is None and not is_open:",
        new="if message is None:",
        tests=("tests/unit/kafka/test_quiet_stream.py",),
    ),
    Mutant(
        name="planted: a landing's own topics are checked now and then only",
        file="cdc/kafka/topic_watch.py",
        old="else self._ids.keys() & set(landing)",
        new="else set()",
        tests=("tests/unit/kafka/test_topic_watch.py",),
    ),
    Mutant(
        name="planted: a table that comes back skips an event",
        file="cdc/land/read_back.py",
        old="""AND "offset" > {after:d} AND""",
        new="""AND "offset" > {after + 1:d} AND""",
        tests=("tests/spark/apply/rounds/test_comes_back.py",),
    ),
)
