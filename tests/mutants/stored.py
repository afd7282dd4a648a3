"""Rules of the tables of the lake, to remove one at a time."""

from typing import Final

from tests.mutants.mutant import Mutant

SPARK: Final = (
    "tests/spark/apply/test_apply_is_fold.py",
    "tests/spark/apply/rounds/test_rounds.py",
)
PURE: Final = ("tests/unit", "tests/property")

STORED: Final = (
    Mutant(
        name="landings with notes are in the ranges",
        file="cdc/lake/table/noted_landings.py",
        old="(merged[place][0], merged[place + 1][1])",
        new="merged[place]",
        tests=("tests/unit/lake/test_noted_landings.py",),
    ),
    Mutant(
        name="a log of an earlier version is searched whole for notes",
        file="cdc/lake/table/positions.py",
        old='metadata.get("noted", everything)',
        new='metadata.get("noted", [])',
        tests=("tests/spark/apply/rounds/test_slices.py",),
    ),
    Mutant(
        name="offset guard of a merge",
        file="cdc/lake/table/merge_plan.py",
        old='guard = f"source.{OFFSET} > target.{OFFSET}"',
        new='guard = "true"',
        tests=(*PURE, *SPARK),
    ),
    Mutant(
        name="old versions: keep the one that was newest at the limit",
        file="cdc/lake/upkeep/transaction_log.py",
        old="if version <= oldest), default=None)",
        new="if version <= oldest + 1), default=None)",
        tests=("tests/unit/lake/test_transaction_log.py",),
    ),
    Mutant(
        name="small files: leave a file larger than twice all smaller ones",
        file="cdc/lake/upkeep/small_files.py",
        old=" and size <= 2 * (total - size)",
        new="",
        tests=("tests/unit/lake/test_small_files.py",),
    ),
    Mutant(
        name="old versions: Delta's own cleaning is off",
        file="cdc/lake/upkeep/kept_versions.py",
        old='CLEANED_BY_DELTA: "false"}',
        new='CLEANED_BY_DELTA: "true"}',
        tests=("tests/spark/lake/test_maintenance.py",),
    ),
    Mutant(
        name="columns of a merge's source have names that Delta's own cannot have",
        file="cdc/lake/table/merge_plan.py",
        old='{name: f"_cdc_column_{number}" for number, name in enumerate(schema.names)}',
        new="{name: name for name in schema.names}",
        tests=("tests/unit/lake/test_merge_plan.py", "tests/spark/lake/test_names.py"),
    ),
    Mutant(
        name="no session substitutes ${..}",
        file="cdc/lake/session.py",
        old='"spark.sql.variable.substitute": "false"',
        new='"spark.sql.variable.substitute": "true"',
        tests=("tests/spark/lake/test_sql_text.py", "tests/spark/lake/test_evolving.py"),
    ),
    Mutant(
        name="a log that asks for more than an append is left to Spark",
        file="cdc/lake/commit/appender.py",
        old="        if reason := _of_protocol(protocol) or _of_metadata(metadata, self._types):\n",
        new="        if reason := None:\n",
        tests=("tests/unit/lake/commit/test_appender.py",),
    ),
    Mutant(
        name="a table whose newest entry is another file is opened again",
        file="cdc/lake/table/foreign_commits.py",
        old="return self._file is not None and self._stat(version) == self._file",
        new="return True",
        tests=("tests/unit/lake/test_foreign_commits.py",),
    ),
)
