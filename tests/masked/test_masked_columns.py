"""No byte of a masked value is written anywhere, and what is left is what Postgres computes."""

from collections import Counter
from hashlib import sha256
from typing import Any

import pytest
from deltalake import DeltaTable
from psutil import process_iter

from tests.masked.clinic import (
    CANARY,
    COLUMNS,
    KEPT_COLUMNS,
    SALT,
    TABLES,
    TOKEN,
    changed,
    expected,
    inserted,
)
from tests.masked.conftest import Clinic
from tests.masked.traces import files_with, topics_with
from tests.waiting import until

pytestmark = pytest.mark.e2e


def expected_rows(clinic: Clinic, table: str, where: str = "true") -> Counter[tuple[Any, ...]]:
    listed = ", ".join(map(expected, KEPT_COLUMNS))
    query = f"SELECT {listed} FROM clinic.{table} WHERE {where}"
    with clinic.connect() as connection:
        return Counter(connection.execute(query.encode(), {"salt": SALT}).fetchall())


def lake_rows(clinic: Clinic, table: str) -> Counter[tuple[Any, ...]]:
    listed = ", ".join(f'CAST("{name}" AS VARCHAR) AS "{name}"' for name in KEPT_COLUMNS)
    return clinic.lake_query("clinic", table, f"SELECT {listed} FROM t")


def lake_columns(clinic: Clinic, table: str) -> set[str]:
    schema = DeltaTable(str(clinic.folder / "lake" / "clinic" / table)).schema()
    return {field.name for field in schema.fields if not field.name.startswith("_cdc_")}


def reason(clinic: Clinic, table: str) -> str:
    tables = clinic.any_facts("status")["tables"]
    return str(next(each["reason"] for each in tables if each["table"] == table))


@pytest.mark.parametrize("table", TABLES)
def test_the_first_snapshot_has_what_postgres_computes(clinic: Clinic, table: str) -> None:
    assert lake_rows(clinic, table) == expected_rows(clinic, table)
    assert lake_columns(clinic, table) == {*KEPT_COLUMNS, "day"}


def test_changes_leave_what_postgres_computes(clinic: Clinic) -> None:
    for table in TABLES:
        clinic.execute(inserted(table, 100, 160))
    for table in TABLES[:-1]:
        clinic.execute(changed(table))
    clinic.sync()

    for table in TABLES:
        assert lake_rows(clinic, table) == expected_rows(clinic, table), table
    assert clinic.lake_query("ward", "plain", "SELECT ssn FROM t") == Counter([("kept as it is",)])


def test_verify_compares_what_is_left(clinic: Clinic) -> None:
    verdicts = {table["table"]: table for table in clinic.any_facts("verify")["tables"]}

    for name in TABLES:
        verdict = verdicts[f"clinic.{name}"]
        assert verdict["equal"], verdict
        assert {"diagnosis", "born"} <= set(verdict["left_out"])


def test_a_table_that_is_read_again_has_the_same_values(clinic: Clinic) -> None:
    clinic.run("resnapshot", "clinic.patients", "clinic.calls")
    clinic.run("resnapshot", "clinic.visits", "--where", "id < 50")

    for table in TABLES:
        assert lake_rows(clinic, table) == expected_rows(clinic, table), table


def test_a_condition_on_a_masked_column_is_refused(clinic: Clinic) -> None:
    said = clinic.run("resnapshot", "clinic.visits", "--where", "ssn = 'x'", expect=2)

    assert "source.columns masks its values in the lake" in said


def test_a_new_column_of_a_masked_name_never_has_a_plain_value(clinic: Clinic) -> None:
    clinic.execute("ALTER TABLE clinic.visits ADD late text DEFAULT 'of the table'")
    clinic.execute(f"UPDATE clinic.visits SET late = '{CANARY} late' WHERE id < 20")
    clinic.sync()

    with clinic.connect() as connection:
        query = f"SELECT {expected('late')} FROM clinic.visits"
        there = Counter(connection.execute(query.encode(), {"salt": SALT}).fetchall())
    assert clinic.lake_query("clinic", "visits", "SELECT late FROM t") == there


def test_no_byte_of_a_masked_value_is_anywhere(clinic: Clinic) -> None:
    clinic.execute(inserted("refused", 200, 220))
    clinic.execute("UPDATE clinic.refused SET day = 'infinity' WHERE id > 210")
    clinic.sync()
    clinic.run("quarantine", "list")
    refused = files_with(clinic.folder / "lake", "name 2")

    assert clinic.facts("status")["tables"]
    assert refused, "the search finds nothing"
    assert topics_with(clinic.state_dir, "name 2"), "the search finds nothing"
    assert topics_with(clinic.state_dir, CANARY) == []
    assert files_with(clinic.folder, CANARY) == []


def test_the_salt_is_in_its_secret_file_alone(clinic: Clinic) -> None:
    assert files_with(clinic.folder, TOKEN) == [".wal2lake/secrets/source.properties"]
    assert topics_with(clinic.state_dir, TOKEN) == []
    commands = [" ".join(process.info["cmdline"] or ()) for process in process_iter(["cmdline"])]
    assert not any(TOKEN in command for command in commands)


def test_another_setting_stops_the_tables_that_have_rows_by_name(clinic: Clinic) -> None:
    clinic.configure({**COLUMNS, "clinic.*.note": {"truncate": 2}})
    clinic.run("apply-config")
    clinic.sync()
    assert "source.columns has changed for column note" in reason(clinic, "clinic.patients")

    clinic.run("resnapshot", "clinic.patients")

    cut = clinic.lake_query("clinic", "patients", "SELECT max(length(note)) FROM t")
    assert cut == Counter([(2,)])


def test_a_renamed_column_is_not_sent_before_its_new_name_is_masked(clinic: Clinic) -> None:
    secret = f"{CANARY} renamed"
    clinic.execute("ALTER TABLE clinic.patients RENAME nick TO moniker")
    clinic.execute(f"INSERT INTO clinic.patients (id, moniker, born) VALUES (999, '{secret}', '')")

    until(
        lambda: "clinic.patients is gone, and moniker is new" in clinic.done("status").stdout, 180
    )
    said = clinic.run("apply-config", expect=5)
    assert "clinic.patients.moniker was called nick, which source.columns masks" in said
    clinic.configure({**COLUMNS, "clinic.*.note": {"truncate": 2}, "clinic.*.moniker": "hash"})
    clinic.run("apply-config")
    clinic.sync()

    found = clinic.lake_query("clinic", "patients", "SELECT moniker FROM t WHERE id = 999")
    assert found == Counter([(sha256((SALT + secret).encode()).hexdigest(),)])
    assert topics_with(clinic.state_dir, CANARY) == []
    assert files_with(clinic.folder, CANARY) == []
