"""Only tables like our own are committed to; the reason for any other is given by name."""

import json
from typing import Any

import pytest

from cdc.lake.commit.protocol import refusal
from cdc.lake.commit.table_metadata import Metadata, Protocol
from cdc.lake.table.store import PROPERTIES
from tests.unit.lake.commit.small_table import field, metadata_action, protocol_action

KEPT = {
    "delta.logRetentionDuration": "interval 1 hours",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
    "delta.enableExpiredLogCleanup": "false",
    "wal2lake.structure": "{}",
    "somebody.else": "1",
}


def reason(
    protocol: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
) -> str | None:
    return refusal(
        Protocol.parse(protocol or protocol_action()), Metadata.parse(metadata or metadata_action())
    )


def with_field(**changes: object) -> dict[str, Any]:
    changed = field(1, "id", "integer") | changes
    schema = json.dumps({"type": "struct", "fields": [changed]})
    return metadata_action() | {"schemaString": schema}


def test_our_own_tables_are_taken() -> None:
    assert reason() is None
    assert reason(metadata=metadata_action(more=KEPT | PROPERTIES)) is None


def test_a_table_from_a_checkpoint_is_taken() -> None:
    """There, maps are lists of pairs and absent values are None."""
    action = metadata_action()
    action["configuration"] = list(action["configuration"].items())

    assert reason(protocol_action(), action | {"partitionColumns": None}) is None


@pytest.mark.parametrize(
    "feature",
    [
        "changeDataFeed",
        "checkConstraints",
        "generatedColumns",
        "identityColumns",
        "rowTracking",
        "domainMetadata",
        "clustering",
        "inCommitTimestamp",
        "typeWidening",
        "v2Checkpoint",
        "catalogManaged",
        "variantType",
        "featureOfTomorrow",
    ],
)
@pytest.mark.parametrize("side", ["reader", "writer"])
def test_a_feature_that_ours_do_not_have_is_refused(feature: str, side: str) -> None:
    protocol = protocol_action()
    protocol[f"{side}Features"] = [*protocol[f"{side}Features"], feature]

    assert reason(protocol) == f"it has the {side} feature {feature}"


@pytest.mark.parametrize("missing", ["deletionVectors", "columnMapping"])
@pytest.mark.parametrize("side", ["readerFeatures", "writerFeatures"])
def test_a_feature_that_we_write_is_needed(missing: str, side: str) -> None:
    protocol = protocol_action()
    protocol[side] = [name for name in protocol[side] if name != missing]

    assert reason(protocol) == f"it lacks the feature {missing}"


@pytest.mark.parametrize("versions", [(1, 2), (2, 7), (3, 8), (4, 7)])
def test_another_protocol_is_refused(versions: tuple[int, int]) -> None:
    protocol = protocol_action() | dict(
        zip(("minReaderVersion", "minWriterVersion"), versions, strict=True)
    )

    assert reason(protocol) == f"its protocol is {versions[0]}/{versions[1]}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.appendOnly", "true"),
        ("delta.enableChangeDataFeed", "true"),
        ("delta.constraints.positive", "id > 0"),
        ("delta.enableInCommitTimestamps", "true"),
        ("delta.enableRowTracking", "true"),
        ("delta.checkpointPolicy", "v2"),
        ("delta.ofTomorrow", "1"),
    ],
)
def test_a_property_that_ours_do_not_have_is_refused(name: str, value: str) -> None:
    assert reason(metadata=metadata_action(more={name: value})) == f"it has the property {name}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("delta.enableDeletionVectors", "false"), ("delta.columnMapping.mode", "id")],
)
def test_a_property_of_another_value_is_refused(name: str, value: str) -> None:
    refused = reason(metadata=metadata_action(more={name: value}))

    assert refused is not None
    assert name in refused


@pytest.mark.parametrize(
    "column",
    [
        "delta.generationExpression",
        "delta.identity.start",
        "delta.invariants",
        "delta.typeChanges",
        "CURRENT_DEFAULT",
        "__CHAR_VARCHAR_TYPE_STRING",
    ],
)
def test_a_column_that_asks_for_more_is_refused(column: str) -> None:
    metadata = field(1, "id", "integer")["metadata"] | {column: "x"}

    assert reason(metadata=with_field(metadata=metadata)) == f"column id has {column}"


def test_a_column_without_a_physical_name_is_refused() -> None:
    refused = reason(metadata=with_field(metadata={"delta.columnMapping.id": 1}))

    assert refused == "column id lacks delta.columnMapping.physicalName"


def test_a_column_that_must_not_be_null_is_refused() -> None:
    assert reason(metadata=with_field(nullable=False)) == "column id is NOT NULL"


STRUCT = {"type": "struct", "fields": []}


@pytest.mark.parametrize(
    "of",
    [
        "variant",
        "void",
        "interval day to second",
        STRUCT,
        {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
        {"type": "array", "elementType": STRUCT, "containsNull": True},
        {"type": "array", "elementType": "variant", "containsNull": True},
    ],
)
def test_a_type_that_ours_do_not_have_is_refused(of: object) -> None:
    assert reason(metadata=with_field(type=of)) == "column id is of another type"


@pytest.mark.parametrize("of", ["timestamp_ntz", "decimal(38,0)", "binary", "byte"])
def test_types_and_arrays_of_them_are_taken(of: str) -> None:
    array = {"type": "array", "elementType": of, "containsNull": True}

    assert reason(metadata=with_field(type=of)) is None
    assert reason(metadata=with_field(type=array)) is None


def test_partitions_and_other_files_are_refused() -> None:
    assert reason(metadata=metadata_action() | {"partitionColumns": ["id"]}) == (
        "it is partitioned by id"
    )
    assert reason(metadata=metadata_action() | {"format": {"provider": "orc"}}) == (
        "its files are orc"
    )
