"""A fold's tables have its states and its faults at every cut, whatever happened to the events."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.table.positions import KEY_PROPERTY
from cdc.state.derived_requests import rebuilds
from cdc.tables import TableId
from tests.test_layers import ROOT
from tests.unit.derive.definition.reading import definition
from tests.unit.derive.fold.bank import BALANCE, EVENTS, REFUSED_COMMANDS, fold, happened
from tests.unit.derive.small_lake import SmallLake, rows_of, type_of

OPENED = happened(1, "opened")
DEPOSITED = happened(2, "deposited", "10.00")
Rows = list[tuple[Any, ...]]


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    """A lake of one table, whose key is known as that of a captured one is."""
    lake = SmallLake(tmp_path, {"account_events": EVENTS})
    lake.set(account_events=[])
    table = DeltaTable(lake.path(TableId("shop", "account_events")))
    table.alter.set_table_properties({KEY_PROPERTY: '["id"]'}, raise_if_not_exists=False)
    return lake


def at_each_cut(
    lake: SmallLake, *cuts: Sequence[Mapping[str, Any]], text: str = BALANCE
) -> list[tuple[Rows, Rows]]:
    """Return the states and the faults at every cut; those of a rebuild are the same."""
    found = []
    definitions = fold(text)
    with closing(lake.keep(*definitions)) as kept:
        for events in cuts:
            lake.set(account_events=events)
            entries = kept.entries(lake.row())
            assert [(e.state, e.reason) for e in entries] == [("streaming", "")] * 2
            found.append(both(entries))
            for each in definitions:
                rebuilds(lake.folder).ask(each.table)
            assert both(kept.entries(lake.row())) == found[-1]
    return found


def both(entries: Sequence[DerivedEntry]) -> tuple[Rows, Rows]:
    states, faults = entries
    return rows_of(states), rows_of(faults)


def stands(version: int, balance: str, state: str = "open", account: int = 1) -> tuple[Any, ...]:
    return (account, version, Decimal(balance), state)


def test_the_state_follows_the_events(lake: SmallLake) -> None:
    other = [happened(1, "opened", account=2), happened(2, "closed", account=2)]

    found = at_each_cut(
        lake, [], [OPENED], [OPENED, DEPOSITED, other[0]], [*other, OPENED, DEPOSITED]
    )

    assert found == [
        ([], []),
        ([stands(1, "0.00")], []),
        ([stands(2, "10.00"), stands(1, "0.00", account=2)], []),
        ([stands(2, "10.00"), stands(2, "0.00", "closed", account=2)], []),
    ]


def test_a_later_version_that_comes_first_waits_for_its_place(lake: SmallLake) -> None:
    """Hazard 48: version 3 is committed before version 2, which follows or never does."""
    third = happened(3, "withdrew", "7.50")

    found = at_each_cut(lake, [third, OPENED], [third, OPENED, DEPOSITED])

    assert found == [
        ([stands(1, "0.00")], [(1, 2, "gap", "version 2 is missing")]),
        ([stands(3, "2.50")], []),
    ]


def test_a_gap_and_a_double_end_one_stream_only(lake: SmallLake) -> None:
    """Hazard 49: of versions 1, 2, 2, 4 the state is that of 2, the first by the key."""
    again, later = happened(2, "deposited", "99.00"), happened(4, "deposited", "1.00")
    others = [{**event, "account_id": 2} for event in (OPENED, DEPOSITED)]

    ((states, faults),) = at_each_cut(
        lake, [later, {**again, "id": 5000}, DEPOSITED, *others, OPENED]
    )

    assert states == [stands(2, "10.00"), stands(2, "10.00", account=2)]
    assert faults == [
        (1, 2, "double", "2 events have this version"),
        (1, 3, "gap", "version 3 is missing"),
    ]


def test_an_event_in_the_middle_is_updated_deleted_and_restored(lake: SmallLake) -> None:
    last = happened(3, "withdrew", "5.00")
    more = {**DEPOSITED, "amount": Decimal("20.00")}
    less = {**DEPOSITED, "amount": Decimal("1.00")}

    found = at_each_cut(
        lake,
        [OPENED, DEPOSITED, last],
        [OPENED, more, last],
        [OPENED, less, last],
        [OPENED, last],
        [OPENED, last, DEPOSITED],
    )

    assert found == [
        ([stands(3, "5.00")], []),
        ([stands(3, "15.00")], []),
        ([stands(2, "1.00")], [(1, 3, "refused", "there is not enough money")]),
        ([stands(1, "0.00")], [(1, 2, "gap", "version 2 is missing")]),
        ([stands(3, "5.00")], []),
    ]


def test_nothing_is_applied_after_a_refusal(lake: SmallLake) -> None:
    events = [OPENED, happened(2, "withdrew", "1.00"), happened(3, "deposited", "5.00")]

    ((states, faults),) = at_each_cut(lake, events)

    assert states == [stands(1, "0.00")]
    assert faults == [(1, 2, "refused", "there is not enough money")]


def test_an_event_without_stream_or_version_is_a_fault(lake: SmallLake) -> None:
    nobody = [happened(1, "opened", account=None), happened(2, "closed", account=None)]
    unnumbered = happened(None, "deposited", "3.00")

    ((states, faults),) = at_each_cut(lake, [*nobody, unnumbered, OPENED])

    assert states == [stands(1, "0.00")]
    assert faults == [
        (1, None, "no version", "1 event has no version"),
        (None, None, "no version", "2 events have no stream"),
    ]


def test_versions_may_begin_elsewhere(lake: SmallLake) -> None:
    text = BALANCE.replace('"version": "version",', '"version": "version", "first": 0,')
    begun = [{**OPENED, "version": 0}, {**DEPOSITED, "version": 1}]

    assert at_each_cut(lake, begun, text=text) == [([stands(1, "10.00")], [])]
    assert at_each_cut(lake, begun) == [([], [(1, 0, "before first", "the first version is 1")])]


def test_events_without_a_key_are_ordered_by_all_their_columns(tmp_path: Path) -> None:
    keyless = SmallLake(tmp_path, {"account_events": EVENTS})
    twins = [DEPOSITED, {**DEPOSITED, "amount": Decimal("3.00")}]

    found = at_each_cut(keyless, [OPENED, *twins], [*reversed(twins), OPENED])

    assert found[0] == found[1]
    assert found[0][0] == [stands(2, "3.00")]


def test_several_columns_name_a_stream_and_types_are_kept(tmp_path: Path) -> None:
    schema = pa.schema([("bank", pa.string()), ("nr", pa.int32()), ("seq", pa.decimal128(20, 0))])
    lake = SmallLake(tmp_path, {"account_events": schema})
    text = """
table = {"events": "shop.account_events", "stream": ["bank", "nr"], "version": "seq",
         "columns": {"n": "integer", "name": "text"}}
def apply(state, event):
    return {"n": (state or {"n": 0})["n"] + 1, "name": event["bank"]}
"""
    definitions = fold(text)
    lake.set(account_events=[{"bank": "a", "nr": nr, "seq": i} for nr in (7, 8) for i in (1, 2)])
    with closing(lake.keep(*definitions)) as kept:
        states, faults = kept.entries(lake.row())

    assert rows_of(states) == [("a", 7, Decimal(2), 2, "a"), ("a", 8, Decimal(2), 2, "a")]
    assert [type_of(states, name) for name in ("bank", "nr", "version", "n", "name")] == [
        "string", "integer", "decimal(20,0)", "integer", "string",
    ]  # fmt: skip
    assert rows_of(faults) == []


def test_a_stream_without_state_has_no_row(lake: SmallLake) -> None:
    text = BALANCE.replace('return {**state, "state": "closed"}', "return None")
    closed = happened(2, "closed")

    found = at_each_cut(lake, [OPENED, closed], [OPENED, closed, happened(3, "opened")], text=text)

    assert found == [([], []), ([stands(3, "0.00")], [])]


def test_more_events_than_are_read_at_a_time(lake: SmallLake) -> None:
    events = [OPENED, *(happened(i, "deposited", "0.01") for i in range(2, 1001))]
    many = [
        {**event, "id": 10_000 * account + event["version"], "account_id": account}
        for event in events
        for account in range(1, 6)
    ]
    with closing(lake.keep(*fold(), full_rows=10_000)) as kept:
        lake.set(account_events=many)
        states, faults = kept.entries(lake.row())

    assert rows_of(states) == [stands(1000, "9.99", account=i) for i in range(1, 6)]
    assert rows_of(faults) == []


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            '"account_id"',
            '"account"',
            "shop.account_events has no column account; remedy: did you mean account_id?",
        ),
        (
            '"version": "version"',
            '"version": "V"',
            (
                "shop.account_events has no column V; "
                "remedy: columns are id, account_id, version, kind, amount"
            ),
        ),
        (
            '"version": "version"',
            '"version": "kind"',
            "version names kind, which is of type varchar; remedy: name a column of whole numbers",
        ),
    ],
)
def test_a_fold_that_does_not_fit_its_events_stops(
    lake: SmallLake, old: str, new: str, reason: str
) -> None:
    with closing(lake.keep(*fold(BALANCE.replace(old, new)))) as kept:
        lake.set(account_events=[OPENED, DEPOSITED, happened(3, "closed")])
        entries = kept.entries(lake.row())

    assert [(e.state, e.reason) for e in entries] == [("stopped", reason)] * 2


def test_a_fold_that_needs_too_much_stops_the_table(lake: SmallLake) -> None:
    text = BALANCE.replace('if event["kind"] == "opened":', "if apply(state, event):")
    with closing(lake.keep(*fold(text))) as kept:
        lake.set(account_events=[OPENED])
        states, _ = kept.entries(lake.row())

    reason = "its fold failed: RecursionError; remedy: correct apply"
    assert (states.state, states.reason) == ("stopped", reason)


def test_a_time_that_python_does_not_have_stops_the_table(tmp_path: Path) -> None:
    schema = EVENTS.append(pa.field("at", pa.timestamp("us")))
    lake = SmallLake(tmp_path, {"account_events": schema})
    lake.set(account_events=[{**OPENED, "at": 400_000_000_000_000_000}])
    with closing(lake.keep(*fold())) as kept:
        states, _ = kept.entries(lake.row())

    reason = (
        "an event has a time before the year 1 or after the year 9999; "
        "remedy: read the events from a view that casts it to text"
    )
    assert (states.state, states.reason) == ("stopped", reason)


def test_a_command_that_was_refused_has_no_event(tmp_path: Path) -> None:
    """Commands are an ordinary table, and those without an event a view over both."""
    command = [("id", pa.int64()), ("account_id", pa.int64()), ("kind", pa.string())]
    schemas = {
        "account_events": EVENTS.append(pa.field("command_id", pa.int64())),
        "commands": pa.schema([*command, ("amount", pa.decimal128(20, 2))]),
    }
    lake = SmallLake(tmp_path, schemas)
    events = [{**OPENED, "command_id": 1}, {**DEPOSITED, "command_id": 2}]
    lake.set(account_events=events, commands=[
        {"id": 1, "account_id": 1, "kind": "open", "amount": None},
        {"id": 2, "account_id": 1, "kind": "deposit", "amount": Decimal("10.00")},
        {"id": 3, "account_id": 1, "kind": "withdraw", "amount": Decimal("99.00")},
    ])  # fmt: skip
    refused = definition(REFUSED_COMMANDS, "marts.refused.sql")
    with closing(lake.keep(*fold(), refused)) as kept:
        states, faults, commands = kept.entries(lake.row())

    assert (rows_of(states), rows_of(faults)) == ([stands(2, "10.00")], [])
    assert rows_of(commands) == [(3, 1, "withdraw", Decimal("99.00"))]


def test_the_example_of_the_documentation_is_the_one_that_is_tested() -> None:
    documented = (ROOT / "docs" / "derived-tables.md").read_text()

    for text in (BALANCE, REFUSED_COMMANDS):
        assert text.replace("shop.", "bank.") in documented


def test_only_streams_with_changed_events_are_folded_again(lake: SmallLake) -> None:
    events = [happened(1, "opened", account=number) for number in range(1, 9)]
    states, faults = fold(BALANCE)
    with closing(lake.keep(states, faults)) as kept:
        lake.set(account_events=events)
        kept.entries(lake.row())
        lake.set(account_events=[*events[1:], happened(2, "deposited", "10.00", account=3)])
        last, _ = kept.entries(lake.row())

    newest = DeltaTable(last.path).history(1)[0]
    cost = json.loads(newest["userMetadata"])["cost"]
    assert (cost["mode"], cost["keys"]) == ("scoped", 2)
    assert [row[:2] for row in rows_of(last)] == [
        (number, 2 if number == 3 else 1) for number in range(2, 9)
    ]
