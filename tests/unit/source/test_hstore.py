"""Test the connector's spelling of an hstore against orders taken from a real Java HashMap."""

import json

import pytest

from cdc.source.rows.hstore import connector_json

ORDERS = [
    (["b", "a", "long", "id", "é"], ["a", "b", "é", "id", "long"]),
    ([f"key {n}" for n in range(12)], [f"key {n}" for n in (4, 3, 2, 1, 8, 7, 6, 5, 9, 0, 11, 10)]),
    (  # one more than three quarters of the buckets, so they are doubled
        [f"key {n}" for n in range(13)],
        [f"key {n}" for n in (4, 3, 2, 1, 8, 7, 6, 5, 9, 0, 11, 10, 12)],
    ),
    (
        ["", "😀", "ẞ", "AaAa", "BBBB", "AaBB", "z"],  # three of them have the same hash
        ["", "😀", "z", "ẞ", "AaAa", "BBBB", "AaBB"],
    ),
]


@pytest.mark.parametrize(("put", "given"), ORDERS)
def test_pairs_come_in_the_order_of_a_hash_map(put: list[str], given: list[str]) -> None:
    written = connector_json(json.dumps({key: f"of {key}" for key in put}))

    assert list(json.loads(written).items()) == [(key, f"of {key}") for key in given]


def test_it_is_written_without_blanks_and_with_capitals_in_its_escapes() -> None:
    text = json.dumps({'"q"\\u001f': "\x00\x1f\x7f\n\t/é\u2028😀", "n": None})

    assert connector_json(text) == (
        '{"\\"q\\"\\\\u001f":"\\u0000\\u001F\x7f\\n\\t/é\u2028😀","n":null}'
    )


def test_one_without_pairs() -> None:
    assert connector_json("{}") == "{}"
