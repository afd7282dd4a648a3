"""Rules of capturing and landing, to remove one at a time."""

from typing import Final

from tests.mutants.mutant import Mutant

CAPTURED: Final = (
    Mutant(
        name="a type that holds the earlier values stops no connector",
        file="cdc/capture/retyped.py",
        old=" and common_type(old, column) is None",
        new="",
        tests=("tests/unit/capture/test_retyped.py",),
    ),
    Mutant(
        name="a column of the key is never left out",
        file="cdc/capture/retyped.py",
        old="sorted(retyped_names - keys)",
        new="sorted(retyped_names)",
        tests=("tests/unit/capture/test_retyped.py",),
    ),
    Mutant(
        name="a published table is not ignored",
        file="cdc/source/catalog/catalog.py",
        old="self.unfit is not None and self.oid != 0 and not self.in_publication",
        new="self.unfit is not None and self.oid != 0",
        tests=(
            "tests/unit/source/test_connector_settings.py",
            "tests/source/capture/test_exclude_unreadable.py",
        ),
    ),
    Mutant(
        name="what is appended has the broker's time",
        file="cdc/capture/topic_specs.py",
        old='{"message.timestamp.type": "LogAppendTime"}',
        new="{}",
        tests=("tests/source/capture/test_topic_times.py",),
    ),
    Mutant(
        name="messages of other programs are ignored, whatever their prefix",
        file="connectors/postgres-source.json",
        old='"message.prefix.exclude.list": "(?s).*"',
        new='"message.prefix.exclude.list": ".*"',
        tests=("tests/source/capture/test_chain_topics.py",),
    ),
    Mutant(
        name="the connector's lists do not ignore case",
        file="cdc/source/connector/settings.py",
        old='_EXACT: Final = "(?-i:"',
        new='_EXACT: Final = "(?:"',
        tests=("tests/unit/source/test_connector_settings.py",),
    ),
    Mutant(
        name="a topic left changed by a killed emptying is restored",
        file="cdc/kafka/topics.py",
        old="if is_opened(entries) and _compacts(spec):",
        new="if not entries:",
        tests=("tests/source/capture/test_topics_go_on.py",),
    ),
    Mutant(
        name="no event expires while a topic is emptied",
        file="cdc/kafka/cleanup_policy.py",
        old='{POLICY: "compact,delete", _RETENTION: "-1"}',
        new='{POLICY: "delete"}',
        tests=("tests/source/capture/test_topics_go_on.py",),
    ),
    Mutant(
        name="a table that the connector cannot read leaves the publication",
        file="cdc/source/notes/trigger_functions.py",
        old="expressed, NULL);\n        PERFORM {CONTROL_SCHEMA}.leave_out_unreadable(relation);",
        new="expressed, NULL);",
        tests=("tests/source/notes/test_leaving_publications.py",),
    ),
    Mutant(
        name="a parent is read without its children",
        file="cdc/source/rows/copy.py",
        old='sql.SQL("ONLY {}")',
        new='sql.SQL("{}")',
        tests=("tests/source/tables/test_inheritance.py",),
    ),
    Mutant(
        name="the oldest events stay in memory",
        file="cdc/land/inbox.py",
        old="for place in reversed(range(len(self.landings) - 1)):",
        new="for place in range(len(self.landings) - 1):",
        tests=("tests/unit/land/test_inbox.py",),
    ),
    Mutant(
        name="a micro-batch begins where the one before ended",
        file="cdc/land/micro_batches.py",
        old="        self._read.update(ends)\n",
        new="",
        tests=("tests/unit/land/test_batches.py",),
    ),
    Mutant(
        name="a range that is read here ends with its last offset",
        file="cdc/kafka/range_reader.py",
        old="if offset + (not is_end) >= wanted[topic].stop:",
        new="if offset + 1 >= wanted[topic].stop:",
        tests=("tests/unit/kafka/test_range_reader.py",),
    ),
    Mutant(
        name="records behind a range belong to the next one",
        file="cdc/kafka/range_reader.py",
        old="if not is_end and offset in wanted[topic]:",
        new="if not is_end:",
        tests=("tests/unit/kafka/test_range_reader.py",),
    ),
    Mutant(
        name="records of an aborted transaction are not read",
        file="cdc/kafka/clients.py",
        old='"isolation.level": "read_committed",',
        new='"isolation.level": "read_uncommitted",',
        tests=("tests/spark/land/test_read_from_kafka.py",),
    ),
    Mutant(
        name="a range whose beginning is not known is left to Spark",
        file="cdc/land/query.py",
        old="if batch is not None and batch.exact else None",
        new="if batch is not None else None",
        tests=("tests/spark/land/test_landing_two_ways.py",),
    ),
)
