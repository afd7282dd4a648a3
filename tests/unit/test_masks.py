"""Test what source.columns may say, and what its masks leave of a value."""

import hashlib
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import SecretStr, ValidationError

from cdc.config import Source, load, masks_of
from cdc.config.masks import maskable
from cdc.errors import CdcError
from cdc.tables import TableId

SALT: Final = "0123456789abcdef ü"
TABLE: Final = TableId("shop", "people")


def source(columns: dict[str, Any], **salt: object) -> Source:
    return Source.model_validate({"tables": ["shop.*"], "columns": columns, **salt})


@pytest.mark.parametrize(
    ("pattern", "choice", "words"),
    [
        ("people.name", "drop", "not of the form schema.table.column"),
        ("shop.people.name", "mask", "takes drop, hash or truncate: N"),
        ("shop.people.name", {"truncate": 0}, "takes drop, hash or truncate: N"),
        ("shop.people.name", {"truncate": -1}, "truncate"),
        ("shop.people.name", {"truncate": "few"}, "truncate"),
        ("shop.people.name", {"truncate": 3, "hash": 1}, "takes drop, hash or truncate: N"),
        ("shop.people.name", None, "takes drop, hash or truncate: N"),
        ("shop.people.[nm]ame", "drop", "patterns know only"),
    ],
)
def test_another_choice_is_refused_in_words(pattern: str, choice: object, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        source({pattern: choice})


def test_a_hash_needs_one_salt(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="hash_salt is missing"):
        source({"shop.people.name": "hash"})
    with pytest.raises(ValidationError, match="more than once"):
        source({}, hash_salt=SALT, hash_salt_file=tmp_path / "salt")


@pytest.mark.parametrize("salt", ["", "15 characters.. "[:15], "\0" * 16])
def test_a_salt_that_could_be_guessed_is_refused(salt: str) -> None:
    with pytest.raises(CdcError, match="fewer than 16 characters, or a zero byte"):
        masks_of(source({"shop.people.name": "hash"}, hash_salt=salt))


def test_the_salt_comes_from_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "salt").write_text(f"{SALT}\n")
    (tmp_path / "c.yaml").write_text(
        "source: {tables: [a.*], columns: {a.b.c: hash}, hash_salt_file: salt}\nlake: {path: l}\n"
    )
    config = load(tmp_path / "c.yaml", {})

    assert masks_of(config.source).salt == SALT
    (tmp_path / "salt").unlink()
    with pytest.raises(CdcError, match=r"hash_salt_file: .*salt cannot be read"):
        masks_of(config.source)


def test_the_salt_is_not_shown() -> None:
    given = source({"shop.people.name": "hash"}, hash_salt=SecretStr(SALT))

    assert SALT not in repr(given)
    assert SALT not in repr(masks_of(given))


def test_the_first_pattern_that_matches_applies() -> None:
    columns = {"*.*.name": {"truncate": 2}, "shop.*.name": "drop", "shop.people.*": "hash"}
    masks = masks_of(source(columns, hash_salt=SALT))

    assert masks.of(TABLE, "name") == "truncate 2"
    assert masks.of(TABLE, "Name").startswith("hash ")
    assert masks.of(TableId("stock", "people"), "Name") == ""
    assert masks.of(TableId("wal2lake", "heartbeat"), "name") == ""


def test_another_salt_is_another_mask() -> None:
    one, other = (
        masks_of(source({"shop.people.name": "hash"}, hash_salt=salt)).of(TABLE, "name")
        for salt in (SALT, f"{SALT}!")
    )

    assert one != other
    assert SALT not in one


@pytest.mark.parametrize("text", ["", "a", "äöü 😀", "NULL"])
def test_what_is_left(text: str) -> None:
    masks = masks_of(source({"shop.people.name": "hash"}, hash_salt=SALT))

    hashed = hashlib.sha256(SALT.encode() + text.encode()).hexdigest()
    assert masks.masked(masks.of(TABLE, "name"), text) == hashed
    assert masks.masked("truncate 5", text + "😀" * 5) == (text + "😀" * 5)[:5]
    assert masks.masked("drop", text) is None
    assert masks.masked("", text) == text
    assert masks.masked("hash x", None) is None


def test_only_texts_can_be_hashed_or_truncated() -> None:
    assert maskable("hash x", "varchar")
    assert not maskable("truncate 3", "int4")
    assert not maskable("hash x", "_text")
    assert maskable("drop", "int4")
