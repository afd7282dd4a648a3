"""Nexmark's queries have at every cut the rows that their own text gives."""

from pathlib import Path
from typing import Final

import pytest

from tests.suites.kept import SCOPED, allowed_ways, classes, defined, differing, kept_through, ways
from tests.suites.nexmark import by_hand
from tests.suites.nexmark.events import SCHEMAS, cuts
from tests.suites.nexmark.queries import AVERAGE_OF_ROWS, QUERIES

_BID: Final = "auction, bidder, price, date_time, extra"
FEWEST: Final = 5
"""So many tables are kept by their scope keys in the smallest test."""
CLASSES: Final[dict[str, str]] = {
    "q0": f"{SCOPED}: {_BID}",
    "q1": f"{SCOPED}: {_BID}",
    "q2": f"{SCOPED}: auction, price",
    "q3": f"{SCOPED}: name, city, state, id",
    "q4": f"{SCOPED}: category",
    "q5": f"{SCOPED}: starttime",
    "q6": f"{SCOPED}: seller",
    "q7": "as a whole: no output column is one of GROUP BY and every PARTITION BY",
    "q8": f"{SCOPED}: id, name, starttime",
    "q9": f"{SCOPED}: id",
    "q10": f"{SCOPED}: {_BID}, dt, hh, mm",
    "q11": f"{SCOPED}: bidder, starttime, endtime",
    "q12": f"{SCOPED}: bidder, starttime, endtime",
    "q13": "as a whole: shop.side_input is joined without an equality of columns",
    "q14": f"{SCOPED}: auction, bidder, price, bid_time_type, date_time, extra, c_counts",
    "q15": f"{SCOPED}: day",
    "q16": f"{SCOPED}: channel, day",
    "q17": f"{SCOPED}: auction, day",
    "q18": f"{SCOPED}: auction, bidder",
    "q19": f"{SCOPED}: auction",
    "q20": (
        f"{SCOPED}: auction, bidder, price, channel, url, date_time, extra, item_name, "
        "description, initial_bid, reserve, auction_date_time, expires, seller, category, "
        "auction_extra"
    ),
    "q21": f"{SCOPED}: auction, bidder, price, channel, channel_id",
    "q22": f"{SCOPED}: auction, bidder, price, channel, dir1, dir2, dir3",
}


def test_each_query_is_kept_as_it_is_listed() -> None:
    assert classes(QUERIES, SCHEMAS) == CLASSES


def test_a_frame_of_rows_is_refused_so_q6_is_written_by_neighbours() -> None:
    assert classes({"q6": AVERAGE_OF_ROWS}, SCHEMAS) == {"q6": "refused: avg OVER is refused"}


@pytest.mark.parametrize(
    ("seed", "count", "scale"),
    [
        pytest.param(7, 3, 1, id="small"),
        *(pytest.param(seed, 20, 4, id=f"{seed}", marks=pytest.mark.deep) for seed in range(5)),
    ],
)
def test_every_cut_equals_the_text(tmp_path: Path, seed: int, count: int, scale: int) -> None:
    definitions = defined(QUERIES)
    worlds = cuts(seed, count, scale)
    for world, entries in kept_through(tmp_path, definitions, SCHEMAS, worlds):
        assert differing(world, SCHEMAS, entries, by_hand.QUERIES) == []

    found = {name: ways(entry) for name, entry in entries.items()}
    assert {name for name, way in found.items() if way - allowed_ways(CLASSES[name])} == set()
    assert sum(SCOPED in way for way in found.values()) > FEWEST


def test_the_same_seed_makes_the_same_changes_and_each_table_changes() -> None:
    first, again = list(cuts(3, 3)), list(cuts(3, 3))

    assert first == again
    for name in SCHEMAS:
        assert first[0][name] != first[1][name] != first[2][name]
