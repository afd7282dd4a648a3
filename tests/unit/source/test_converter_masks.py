"""Test what the connector is told to mask, and what it is told of the salt."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from cdc.config import Config, Connect, Lake, Source, masks_of
from cdc.config.masks import fingerprint
from cdc.errors import CdcError
from cdc.events.structure.declared import DeclaredType, SourceColumn, source_column
from cdc.kafka.broker import Broker
from cdc.source.catalog.catalog import SourceTable
from cdc.source.catalog.masked_columns import mask_findings, unmatched_masks, with_masks
from cdc.source.connector.converter_masks import (
    MASKED,
    converter_masks,
    expression,
    refuse_new_salt,
    refuse_other_masks,
    refuse_renamed,
)
from cdc.source.connector.settings import settings
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId, TableMode

SALT: Final = "0123456789abcdef"
COLUMNS: Final = {"shop.*.name": "hash", "shop.people.born": "drop", "*.*.note*": {"truncate": 3}}
PEOPLE: Final = TableId("shop", "people")


def pipeline(columns: dict[str, Any], connect: Connect | None = None) -> Pipeline:
    source = Source.model_validate(
        {"tables": ["shop.*"], "columns": columns, "hash_salt": SALT, "url": "postgresql://u@h/d"}
    )
    config = Config(
        name="pipe",
        source=source,
        lake=Lake(path="/lake"),
        connect=connect or Connect(),
        state_dir=Path("/state"),
    )
    endpoints = Endpoints(
        source_url="postgresql://u:p@h/d", kafka=Broker(""), connect="", registry="r"
    )
    return Pipeline(config, endpoints)


def column(name: str, number: int, kind: str = "text") -> SourceColumn:
    made = source_column(name, DeclaredType(name=kind, kind="b"), not_null=False, generated=False)
    return SourceColumn(
        **{n: getattr(made, n) for n in ("name", "type", "pg", "not_null", "arrives", "reason")},
        number=number,
    )


def people(*columns: SourceColumn, masks: dict[str, Any] | None = None) -> SourceTable:
    found = masks_of(pipeline(COLUMNS if masks is None else masks).config.source)
    return SourceTable(
        table=PEOPLE,
        oid=7,
        columns=with_masks({PEOPLE: columns}, found)[PEOPLE],
        key=("id",),
        mode=TableMode.KEYED,
        replica_identity="d",
    )


TABLE: Final = (column("id", 1, "int4"), column("name", 2), column("born", 3, "date"))


def test_nothing_is_masked_without_masks() -> None:
    assert converter_masks(pipeline({}), [people(*TABLE)], "token") == {}


def test_the_converter_is_told_of_every_pattern_and_never_of_the_salt() -> None:
    made = settings(pipeline(COLUMNS), [people(*TABLE, column("a b", 4))], placeholder="token")

    assert made["value.converter"] == made["key.converter"] == "wal2lake.MaskingAvroConverter"
    assert made["value.converter.wal2lake.mask.columns"].split("\n") == [
        rf"hash {fingerprint(SALT)} shop\x{{2e}}.*\x{{2e}}name",
        r"drop shop\x{2e}people\x{2e}born",
        r"truncate 3 .*\x{2e}.*\x{2e}note.*",
    ]
    assert made["value.converter.wal2lake.mask.topics"] == "pipe."
    assert made["value.converter.wal2lake.mask.placeholder"] == "token"
    reference = "${file:/state/secrets/source.properties:hash_salt}"
    assert made["key.converter.wal2lake.mask.salt"] == reference
    assert made["value.converter.wal2lake.mask.known"] == "shop.people 2 id name born a%20b"
    assert json.loads(made[MASKED]) == {"7": {"2": "name", "3": "born"}}
    assert SALT not in json.dumps(made)


def test_a_dropped_column_is_left_to_the_converter() -> None:
    """It also leaves out a column of that name that is added later."""
    made = settings(pipeline(COLUMNS), [people(*TABLE)], placeholder="token")

    assert "column.exclude.list" not in made


@pytest.mark.parametrize("reference", [None, SALT])
def test_a_worker_of_the_user_s_own_gets_the_salt_by_reference_alone(reference: str | None) -> None:
    own = Connect(url="http://c:8083", hash_salt=reference)

    with pytest.raises(CdcError, match="not a reference") as caught:
        converter_masks(pipeline(COLUMNS, own), [], "token")
    assert SALT not in str(caught.value)
    given = Connect(url="http://c:8083", hash_salt="${env:SALT}")
    made = converter_masks(pipeline(COLUMNS, given), [], "token")
    assert made["value.converter.wal2lake.mask.salt"] == "${env:SALT}"


@pytest.mark.parametrize(
    ("pattern", "name", "in_key"),
    [
        ("shop.people.name", "shop.people.name", "shop.people.name"),
        ("shop.*.e-mail", "shop.a.b.e-mail", "shop.a.e_mail"),
        ("shop.people.1st", "shop.people.1st", "shop.people._1st"),
        ("shop.people.☎?", "shop.people.☎x", "shop.people._x"),
        ("shop.people.😀", "shop.people.😀", "shop.people.__"),
        ("shop.*.a\n*", "shop.people.a\nb", "shop.people.a_b"),
    ],
)
def test_a_pattern_finds_the_name_and_what_avro_makes_of_it(
    pattern: str, name: str, in_key: str
) -> None:
    def found(text: str, *, of_keys: bool) -> bool:
        made = re.sub(
            r"\\x\{([0-9a-f]+)\}",
            lambda code: re.escape(chr(int(code[1], 16))),
            expression(pattern, of_keys=of_keys),
        )
        return bool(re.fullmatch(made, text, re.DOTALL))

    assert found(name, of_keys=False)
    assert found(in_key, of_keys=True)
    assert not found(f"x{name}", of_keys=False)
    assert not found(f"{in_key.rpartition('.')[0]}.other", of_keys=True)


def test_a_column_renamed_out_of_its_pattern_is_refused_before_the_start() -> None:
    running = settings(pipeline(COLUMNS), [people(*TABLE)], placeholder="token")
    renamed = people(TABLE[0], column("called", 2), TABLE[2])
    masks = masks_of(pipeline(COLUMNS).config.source)

    with pytest.raises(CdcError, match=r"shop\.people\.called was called name, which") as caught:
        refuse_renamed([renamed], masks, running)
    assert "add shop.people.called to source.columns" in caught.value.remedy


@pytest.mark.parametrize(
    ("columns", "masks"),
    [
        (TABLE, COLUMNS),
        (TABLE, {}),  # the pattern was taken out: the job stops the table, by name
        ((TABLE[0],), COLUMNS),
        ((TABLE[0], column("called", 4), TABLE[2]), COLUMNS),
        ((TABLE[0], column("called", 2)), {**COLUMNS, "shop.people.called": "hash"}),
    ],
)
def test_other_changes_are_not_refused(
    columns: tuple[SourceColumn, ...], masks: dict[str, Any]
) -> None:
    running = settings(pipeline(COLUMNS), [people(*TABLE)], placeholder="token")

    refuse_renamed(
        [people(*columns, masks=masks)], masks_of(pipeline(masks).config.source), running
    )
    refuse_renamed([people(*columns, masks=masks)], masks_of(pipeline(masks).config.source), None)


def test_a_job_does_not_run_beside_a_connector_that_masks_otherwise() -> None:
    running = settings(pipeline(COLUMNS), [people(*TABLE)], placeholder="token")

    refuse_other_masks(masks_of(pipeline(COLUMNS).config.source), running)
    refuse_other_masks(masks_of(pipeline({}).config.source), {})
    refuse_other_masks(masks_of(pipeline(COLUMNS).config.source), None)
    for columns in ({}, {"shop.*.name": "hash"}, {**COLUMNS, "*.*.note*": {"truncate": 4}}):
        with pytest.raises(CdcError, match="masks columns otherwise"):
            refuse_other_masks(masks_of(pipeline(columns).config.source), running)


def test_a_running_job_gets_no_new_salt() -> None:
    running = settings(pipeline(COLUMNS), [people(*TABLE)], placeholder="token")
    without = settings(pipeline({}), [people(*TABLE, masks={})], placeholder="token")
    other = {**running, "value.converter.wal2lake.mask.fingerprint": fingerprint(f"{SALT}!")}

    refuse_new_salt(running, running)
    refuse_new_salt(without, running)
    for before in (without, other):
        with pytest.raises(CdcError, match=r"source\.hash_salt is new"):
            refuse_new_salt(running, before)


def findings(masks: dict[str, Any], identity: tuple[str, ...] = ("id",)) -> list[str]:
    table = people(*TABLE, masks=masks)
    return [f.message for f in mask_findings("shop.people", table.columns, identity)]


def test_a_key_cannot_be_masked() -> None:
    for choice in ("drop", "hash", {"truncate": 2}):
        [message] = findings({"shop.people.name": choice}, ("id", "name"))
        assert "is part of the key" in message


def test_a_type_that_has_no_such_mask_is_refused() -> None:
    [message] = findings({"shop.people.born": "hash"})
    assert "is of type date, and source.columns says hash" in message
    assert findings({"shop.people.born": "drop"}) == []


def test_a_pattern_without_effect_is_named() -> None:
    masks = masks_of(
        pipeline({"shop.people.name": "drop", "shop.people.gone": "drop"}).config.source
    )

    assert [f.subject for f in unmatched_masks({PEOPLE: TABLE}, masks)] == ["shop.people.gone"]
