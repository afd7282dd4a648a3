"""Every definition that the soak may draw is taken, and most are kept by a scope."""

import random
from collections import Counter

from cdc.derive.definition.folder import read_definition
from cdc.derive.scope.of_definition import definition_scope
from cdc.derive.scope.scope import Scope
from cdc.tables import TableId
from tests.soak.definitions import KEYED, definition


def test_each_is_valid() -> None:
    columns: dict[TableId, tuple[str, ...]] = {
        TableId("bank", table): names for table, names in KEYED.items()
    }
    columns[TableId("bank", "entries")] = ("counter", "version", "amount")
    kinds: Counter[bool] = Counter()
    for seed in range(300):
        text = definition(random.Random(seed))
        found, problems = read_definition("soak.t.sql", "soak.t.sql", text)
        assert problems == [], text
        assert found is not None
        kinds[isinstance(definition_scope(found, columns), Scope)] += 1

    assert kinds[True] > 200
