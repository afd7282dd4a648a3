"""Where a lake may be, and what is refused by name."""

import pytest
from pydantic import ValidationError

from cdc.config import Config, Lake, Source
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import table_path
from cdc.tables import TableId


@pytest.mark.parametrize("given", ["s3://lake-1/a/b", "s3a://lake-1/a/b/"])
def test_an_object_store_has_one_name(given: str) -> None:
    assert Lake(path=given).path == "s3a://lake-1/a/b"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("gs://bucket/lake", "a store of the kind gs"),
        ("abfss://c@a/lake", "a store of the kind abfss"),
        ("file:///lake", "a store of the kind file"),
        ("s3://bucket", "s3://bucket/prefix"),
        ("s3://key:secret@bucket/lake", "without credentials"),
        ("s3://bucket//a", "s3://bucket/prefix"),
        ("s3://bucket/a b", "s3://bucket/prefix"),
        ("s3://bucket/../lake?x=1", "s3://bucket/prefix"),
    ],
)
def test_another_place_is_refused_by_name_without_repeating_it(given: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as raised:
        Lake(path=given)

    assert "secret" not in raised.value.errors()[0]["msg"]


@pytest.mark.parametrize("name", ["a b", "größe", "a%20b", "a#b", "a?b", "a+b"])
def test_a_table_whose_name_readers_write_differently_into_a_key_is_refused(name: str) -> None:
    config = Config(source=Source(tables=["shop.*"]), lake=Lake(path="s3://bucket/lake"))

    with pytest.raises(CdcError, match="cannot be stored in an object store") as raised:
        table_path(config, TableId("shop", name))

    assert raised.value.kind is ErrorKind.CONFIG
    assert table_path(config, TableId("shop", "a_1.B-c")) == "s3a://bucket/lake/shop/a_1.B-c"
