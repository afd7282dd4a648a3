"""``plan`` finds the differences between configuration and pipeline, and prints them."""

import hashlib
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from cdc.cli.plan import facts, lines
from cdc.client.plan import LeftOut, Now, Plan, PlanFinding, Wanted, WantedTable, compare
from cdc.config import Config, Job, Lake, Source, Spark
from cdc.state import job_settings

KEYLESS = PlanFinding(subject="shop.bad", message="has no key", remedy="add one")
NOW = Now(
    captured=frozenset({"shop.a", "shop.b"}),
    ledger={"shop.a": True, "shop.b": True},
    lake={"shop.a": 10, "shop.b": 2048},
    publication=frozenset({"shop.a", "shop.b", "wal2lake.heartbeat"}),
    topics=frozenset({"p.shop.a", "p.shop.b"}),
    settings={"table.include.list": "a,b", "name": "p"},
    job={"source.tables": "1", "spark.master": "2"},
)
A = WantedTable(table="shop.a", mode="keyed", key=("id",))
B = WantedTable(table="shop.b", mode="multiset")
WANTED = Wanted(
    tables=(A, B),
    publication=frozenset({"shop.a", "shop.b", "wal2lake.heartbeat"}),
    topics=NOW.topics,
    settings=NOW.settings,
    job=NOW.job,
)


def printed(plan: Plan) -> str:
    return "\n".join(text for text, _ in lines(plan))


def test_an_equal_pipeline_needs_no_change() -> None:
    plan = compare(NOW, WANTED)

    assert plan.empty
    assert plan.fit
    assert printed(plan) == "no changes"


def test_added_and_removed_tables_are_listed() -> None:
    new = WantedTable(
        table="shop.c",
        mode="keyed",
        key=("x", "y"),
        rows=1200,
        bytes=4096,
        left_out=(LeftOut(column="g", reason="it is generated"),),
    )
    plan = compare(
        NOW,
        replace(
            WANTED,
            tables=(A, new),
            publication=WANTED.publication | {"shop.c"},
            topics=frozenset({"p.shop.a", "p.shop.c"}),
            settings={"table.include.list": "a,c", "name": "p"},
        ),
    )

    assert not plan.empty
    assert plan.fit
    assert printed(plan).splitlines() == [
        "+ shop.c: key x, y; about 1,200 rows, 4.0 KiB to read",
        "    column g will not arrive: it is generated",
        "- shop.b: will no longer be followed; its Delta table (2.0 KiB) stays",
        "  publishes: shop.c",
        "  creates topics: p.shop.c",
        "  changes connector settings: table.include.list",
        "changes for wal2lake apply-config: 1 table to add, 1 table to remove",
    ]


def test_a_table_that_returns_replaces_its_old_one_in_the_lake() -> None:
    plan = compare(replace(NOW, captured=frozenset({"shop.a"})), WANTED)

    assert [(each.table.table, each.replaces) for each in plan.added] == [("shop.b", True)]
    assert "+ shop.b: multiset; rows not counted yet" in printed(plan)
    assert "replaces a Delta table" in printed(plan)
    (added,) = facts(plan)["added"]
    assert (added["table"], added["mode"], added["replaces"]) == ("shop.b", "multiset", True)


@pytest.mark.parametrize(
    ("ledger", "expected"),
    [
        (None, ()),  # before the first snapshot is in the lake, no table counts as unread
        ({"shop.a": True}, ("shop.b",)),
        ({"shop.a": True, "shop.b": False}, ("shop.b",)),
        ({"shop.a": True, "shop.b": True}, ()),
    ],
)
def test_captured_tables_that_were_never_read_are_listed(
    ledger: dict[str, bool] | None, expected: tuple[str, ...]
) -> None:
    plan = compare(replace(NOW, ledger=ledger), WANTED)

    assert plan.unread == expected
    assert plan.empty == (not expected)


def test_an_unfit_new_table_is_refused_and_a_captured_one_is_named() -> None:
    bad = WantedTable(table="shop.bad", mode="keyed", refused=(KEYLESS,))
    refused = compare(NOW, replace(WANTED, tables=(*WANTED.tables, bad)))
    unfit = compare(NOW, replace(WANTED, tables=(A, replace(B, refused=(KEYLESS,)))))

    assert (refused.refused, refused.unfit, refused.fit) == ((KEYLESS,), (), False)
    assert (unfit.refused, unfit.unfit, unfit.fit) == ((), (KEYLESS,), False)
    assert "! shop.bad: has no key\n    remedy: add one" in printed(refused)
    assert "would refuse" in printed(refused)
    assert "no changes" in printed(unfit)


def test_before_the_first_start_up_captures_all_tables() -> None:
    nothing = Now(
        captured=frozenset(),
        ledger=None,
        publication=None,
        topics=frozenset(),
        settings={},
        job={},
    )
    plan = compare(nothing, WANTED)

    assert [each.table.table for each in plan.added] == ["shop.a", "shop.b"]
    assert "creates the publication with: shop.a" in printed(plan)
    assert "nothing is captured yet: wal2lake up begins with all of these tables" in printed(plan)


def test_a_warning_is_printed_and_refuses_nothing() -> None:
    subject = "connect.source_password"
    warning = PlanFinding(subject=subject, message="in clear", remedy="a reference")
    plan = compare(NOW, replace(WANTED, warned=(warning,)))

    assert "! connect.source_password: in clear" in printed(plan)
    assert "remedy: a reference" in printed(plan)
    assert plan.fit == compare(NOW, WANTED).fit
    assert facts(plan)["warned"][0]["subject"] == "connect.source_password"


def test_settings_are_named_and_their_values_never_shown() -> None:
    secret = {**NOW.settings, "database.password": "hunter2"}
    plan = compare(NOW, replace(WANTED, settings=secret))

    assert plan.settings == ("database.password",)
    assert "hunter2" not in printed(plan) + str(facts(plan))


def config(**given: object) -> Config:
    return Config.model_validate(
        {"source": Source(tables=["shop.*"]), "lake": Lake(path="/lake"), **given}
    )


def test_changed_job_settings_are_reloaded_or_need_a_restart(tmp_path: Path) -> None:
    first = config(state_dir=tmp_path)
    job_settings.remember(first, {})
    runs = job_settings.remembered(tmp_path)
    changed = config(
        state_dir=tmp_path,
        job=Job(merge_threads=7),
        spark=Spark(conf={"secret.key": "hunter2"}),
        source=Source(tables=["shop.*"], append_only=["shop.c"]),
    )
    wanted = job_settings.digests(changed, {})

    plan = compare(replace(NOW, job=runs), replace(WANTED, job=wanted))

    assert plan.reload == ("job.merge_threads", "source.append_only")
    assert plan.restart == ("spark.conf",)
    assert "only after wal2lake down and wal2lake up: spark.conf" in printed(plan)
    assert "hunter2" not in str(wanted)
    unknown = compare(replace(NOW, job={}), replace(WANTED, job=wanted))
    assert (unknown.reload, unknown.restart) == ((), ())


def test_the_job_s_settings_are_remembered(tmp_path: Path) -> None:
    one = config(state_dir=tmp_path)
    assert job_settings.remembered(one.state_dir) == {}
    assert job_settings.digests(one, {}) == {}, "there is nothing to compare them with"

    job_settings.remember(one, {})

    assert job_settings.remembered(one.state_dir) == job_settings.digests(one, {}) != {}


def test_a_guessed_secret_cannot_be_checked_against_the_remembered_settings(tmp_path: Path) -> None:
    """Two installations with the same password store different digests, and no plain hash."""
    remembered = []
    for name in ("one", "two"):
        source = Source(tables=["shop.*"], password=SecretStr("hunter2"))
        job_settings.remember(config(state_dir=tmp_path / name, source=source), {})
        remembered.append(job_settings.remembered(tmp_path / name))
    one, two = remembered
    assert not set(one.values()) & set(two.values())
    for value in ("hunter2", repr("hunter2")):
        guess = hashlib.sha256(value.encode()).hexdigest()
        assert not any(text in guess or guess in text for text in one.values())
    assert stat.S_IMODE((tmp_path / "one" / "secrets" / "settings").stat().st_mode) == 0o600
