"""``derived rebuild --into`` builds a table anew beside the served one, and compares the two."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc.errors import CdcError
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import Ledger, LedgerRow
from tests.unit.client.derived.test_asked import BY_WHO, RICH, Asked
from tests.unit.client.derived.test_cut_time_asked import HOUR, NOON, SEEN
from tests.unit.derive.small_lake import contents, rows_of

NEW = "lab.anew"
IDS = "SELECT id, amount FROM shop.orders"


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    asked = Asked(tmp_path)
    asked.define(by_who=BY_WHO, rich=RICH, ids=IDS)
    return asked


def into(asked: Asked, name: str = "marts.by_who", *more: str, expect: int = 0) -> dict[str, Any]:
    return asked.json("rebuild", name, "--into", NEW, *more, expect=expect)


def entry(row: LedgerRow, name: str = "marts.by_who") -> DerivedEntry:
    found = row.derived_entry(name)
    assert found is not None
    return found


def built(asked: Asked, version: int = 0) -> DerivedEntry:
    path = f"{asked.folder}/lake/lab/anew"
    return DerivedEntry(table=NEW, path=path, version=version, state="")


def changed(asked: Asked, row: LedgerRow, name: str, column: str, where: str | None = None) -> None:
    """Publish a cut in which somebody has written to a derived table."""
    one = entry(row, name)
    table = DeltaTable(one.path)
    table.update(updates={column: "1"}, predicate=where)
    forged = replace(one, version=table.version(), at_cut=row.cut + 1)
    derived = tuple(forged if other == one else other for other in row.derived)
    ledger = Ledger(f"{asked.folder}/lake/_wal2lake/ledger")
    ledger.append(replace(row, cut=row.cut + 1, derived=derived))


def test_it_has_the_bytes_of_the_served_table_which_stays(asked: Asked) -> None:
    asked.publish(5)
    row = asked.publish(5, 7)
    before = DeltaTable(entry(row).path).version()

    found = into(asked)

    path = str(asked.folder / "lake" / "lab" / "anew")
    assert {name: found[name] for name in ("table", "into", "path", "cut", "rows", "equal")} == {
        "table": "marts.by_who", "into": NEW, "path": path, "cut": 2, "rows": 1, "equal": True,
    }  # fmt: skip
    assert contents(built(asked)) == contents(entry(row))
    assert DeltaTable(entry(row).path).version() == before == entry(row).version
    assert NEW not in asked.run("list")
    assert not list((asked.folder / "state" / "scratch").iterdir())


def test_it_says_so_in_two_lines(asked: Asked) -> None:
    asked.publish(5, 7)

    (first, second) = asked.run("rebuild", "marts.by_who", "--into", NEW).splitlines()

    assert first.startswith("marts.by_who at cut 1: 1 rows, ")
    assert first.endswith(f" s; in {NEW} at {asked.folder}/lake/lab/anew")
    assert second == "equal to marts.by_who at cut 1: 1 rows"


def test_at_an_older_cut(asked: Asked) -> None:
    first = asked.publish(5)
    asked.publish(5, 7)

    found = into(asked, "marts.ids", "--at", "1")

    assert (found["cut"], found["rows"], found["equal"]) == (1, 1, True)
    assert contents(built(asked)) == contents(entry(first, "marts.ids"))


def test_the_first_differing_keys_are_named(asked: Asked) -> None:
    row = asked.publish(5, 7)
    changed(asked, row, "marts.by_who", "total")

    found = into(asked, expect=1)

    assert (found["equal"], found["missing"], found["extra"]) == (False, 1, 1)
    assert found["keys"] == [{"who": "a"}]
    asked.run("drop", NEW, "--confirm", NEW)
    said = asked.run("rebuild", "marts.by_who", "--into", NEW, expect=1)
    assert said.splitlines()[1:] == [
        "different from marts.by_who at cut 2: 1 missing, 1 extra; the first keys: (who=a)"
    ]


def test_without_a_key_whole_rows_are_named_ten_at_most(asked: Asked) -> None:
    """The digests in the served table are of no help: who writes to it leaves them."""
    row = asked.publish(*range(30, 50))
    changed(asked, row, "marts.ids", "amount", "id > 2")

    found = into(asked, "marts.ids", expect=1)

    assert (found["missing"], found["extra"], len(found["keys"])) == (17, 17, 10)
    assert found["keys"][:2] == [{"id": 3, "amount": "1.00"}, {"id": 3, "amount": "33.00"}]


def test_copies_count(asked: Asked) -> None:
    asked.define(amounts="SELECT amount FROM shop.orders")
    row = asked.publish(5, 5, 1)
    changed(asked, row, "marts.amounts", "amount", "_cdc_copy = 2")

    found = into(asked, "marts.amounts", expect=1)

    assert (found["rows"], found["missing"], found["extra"]) == (3, 1, 1)


def test_a_changed_definition_is_built_and_compared_with_what_is_served(asked: Asked) -> None:
    asked.publish(5, 7)
    asked.define(
        by_who=BY_WHO.replace("GROUP", "WHERE id > 0 GROUP"), ids="SELECT id FROM shop.orders"
    )

    found = into(asked, expect=1)

    assert (found["missing"], found["extra"], found["keys"]) == (1, 1, [{"who": "a"}])
    asked.run("drop", NEW, "--confirm", NEW)
    other = into(asked, "marts.ids", expect=1)
    assert (
        other["columns"] == "it has (id long), and the served table (id long, amount decimal(10,2))"
    )


def test_a_new_definition_has_nothing_to_be_compared_with(asked: Asked) -> None:
    asked.publish(5, 7)
    asked.define(more="SELECT id FROM shop.orders")

    found = into(asked, "marts.more")

    assert (found["equal"], found["rows"]) == (None, 2)
    assert found["not_compared"] == "cut 1 does not have marts.more"
    asked.run("drop", NEW, "--confirm", NEW)
    said = asked.run("rebuild", "marts.more", "--into", NEW)
    assert said.splitlines()[1] == "not compared: cut 1 does not have marts.more"


def test_one_that_is_behind_is_not_compared(asked: Asked) -> None:
    asked.publish(5)
    asked.run("pause", "marts.by_who")
    asked.publish(5, 7)

    found = into(asked)

    assert (found["equal"], found["rows"]) == (None, 1)
    assert found["not_compared"] == "marts.by_who is at cut 1"
    assert [row[1] for row in rows_of(built(asked))] == [12]


def test_the_time_is_that_of_the_cut(asked: Asked) -> None:
    asked.define(looks=SEEN)
    for hours in range(3):
        asked.lake.committed_at = NOON + hours * HOUR
        asked.publish(5)

    assert into(asked, "marts.looks", "--at", "2")["equal"] is True
    assert rows_of(built(asked)) == [(0, NOON + timedelta(hours=1))]


def test_the_second_time_the_name_is_taken_until_it_is_dropped(asked: Asked) -> None:
    asked.publish(5)
    into(asked)

    with pytest.raises(CdcError, match=r"--into lab\.anew: .* exists already") as error:
        into(asked)

    assert error.value.remedy == (
        "name another table, or delete this one: wal2lake derived drop lab.anew --confirm lab.anew"
    )
    asked.run("drop", NEW, "--confirm", NEW)
    assert into(asked)["equal"] is True


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        ("shop.orders", "the newest cut has a table of this name", "name another table"),
        ("marts.rich", "the newest cut has a table of this name", "name another table"),
        ("marts.new", "marts.new is defined in", "name another table"),
        ("marts.wrong__late", "marts.wrong__late is defined in", "name another table"),
        ("anew", "a table cannot have this name", "write schema.table"),
        ("a.b.c", "a table cannot have this name", "write schema.table"),
        ("wal2lake.x", "a table cannot have this name", "write schema.table"),
        ("_wal2lake.ledger", "a table cannot have this name", "write schema.table"),
        ("../x", "a table cannot have this name", "write schema.table"),
        ("a/b.c", "a table cannot have this name", "write schema.table"),
        ("files.there", "files/there exists already", "name another table"),
    ],
)
def test_names_that_cannot_be(asked: Asked, name: str, message: str, remedy: str) -> None:
    asked.publish(5)
    asked.define(new=IDS, wrong=IDS)
    (asked.folder / "lake" / "files" / "there").mkdir(parents=True)
    (asked.folder / "lake" / "files" / "there" / "one.txt").write_text("")
    before = files(asked)

    with pytest.raises(CdcError) as error:
        asked.run("rebuild", "marts.by_who", "--into", name)

    assert error.value.message.startswith(f"--into {name}: ")
    assert message in error.value.message
    assert error.value.remedy.startswith(remedy)
    assert files(asked) == before


def files(asked: Asked) -> list[Path]:
    """Return what is in the lake, apart from wal2lake's own files."""
    found = (asked.folder / "lake").rglob("*")
    return sorted(one for one in found if "_wal2lake" not in one.parts)


def refused(asked: Asked, *words: str) -> CdcError:
    with pytest.raises(CdcError) as error:
        asked.run("rebuild", *words)
    assert not list((asked.folder / "lake" / "lab").rglob("*"))
    return error.value


def test_what_else_is_refused(asked: Asked) -> None:
    asked.define(past="/* ---\nkind: history\ntable: shop.orders\n--- */")
    asked.define(looks=SEEN)
    assert refused(asked, "marts.by_who", "--into", NEW).message == "nothing is published yet"
    asked.publish(5)

    unknown = refused(asked, "marts.nobody", "--into", NEW)
    assert unknown.message == "marts.nobody is not a derived table"
    assert refused(asked, "marts.looks", "--into", NEW).message.startswith("cut 1 has no commit")
    late = refused(asked, "marts.by_who", "--at", "1")
    assert late.message == "--at needs --into: the served table is at the newest cut"
    assert late.remedy == "name another table with --into"
    assert "no cut at 9" in refused(asked, "marts.by_who", "--into", NEW, "--at", "9").message


def test_what_follows_from_the_log_is_left_to_the_job(asked: Asked) -> None:
    asked.lake.schemas = {"orders": asked.lake.schemas["orders"]}
    asked.publish(5)
    DeltaTable(f"{asked.folder}/lake/shop/orders")
    asked.define(past="/* ---\nkind: history\ntable: shop.orders\n--- */")

    found = refused(asked, "marts.past", "--into", NEW)

    assert found.message == "marts.past follows from the log, and not from a query"
    assert found.remedy == "leave --into out: the job makes it anew, if the log reaches that far"


def test_a_query_that_fails_leaves_nothing(asked: Asked) -> None:
    asked.define(keyed=f"/* ---\nkey: [amount]\n--- */\n{IDS}")
    asked.publish(5, 5)

    found = refused(asked, "marts.keyed", "--into", NEW)

    assert "its key (amount) is not unique" in found.message


def test_a_commit_that_fails_leaves_nothing(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows have been written then, and the next attempt has to find the name free."""
    asked.publish(5)

    def torn(path: str, *_: object) -> int:
        Path(path).mkdir(parents=True)
        (Path(path) / "rows.parquet").write_text("")
        raise OSError("no space is left")

    with monkeypatch.context() as broken:
        broken.setattr("cdc.derive.step.writer.replace_table", torn)
        with pytest.raises(AssertionError, match="1"):
            into(asked)

    assert not [path for path in (asked.folder / "lake" / "lab").rglob("*") if path.is_file()]
    assert into(asked)["equal"] is True


def test_the_mark_says_of_which_cut_and_inputs_it_is(asked: Asked) -> None:
    row = asked.publish(5)
    into(asked)

    (commit,) = DeltaTable(built(asked).path).history()
    facts = json.loads(commit["userMetadata"])
    assert (facts["cut"], facts["definition"]) == (1, entry(row).definition)
    assert facts["inputs"] == {"shop.orders": row.tables[0].version}


def test_the_commands_load_no_spark() -> None:
    """Loading it takes seconds, and a client may not have it."""
    asked = "import sys, cdc.cli.derived; print('pyspark' in sys.modules)"

    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    assert run.stdout.split() == ["False"]
