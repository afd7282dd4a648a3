"""What the newest commit of a derived table says about it: which definition, at which cut.

The mark is in the commit that has the rows, so both are there or neither is. Every commit of
upkeep repeats it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from deltalake import CommitProperties, DeltaTable

from cdc.lake.table.positions import MARK

USER_METADATA: Final = "userMetadata"
"""Spark and delta-rs show it in a table's history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The origin of a derived table's rows."""

    definition: str  # hash
    cut: int
    epoch: int
    lsn: int | None
    inputs: Mapping[str, int] = field(default_factory=dict)  # table -> version

    def properties(self) -> CommitProperties:
        """Return the mark as properties of a commit."""
        text = json.dumps({MARK: 1, "derived": 1, **asdict(self)})
        return CommitProperties(custom_metadata={USER_METADATA: text})


def definition_of(table: DeltaTable) -> str | None:
    """Return the hash of the definition of the table's rows; None if the commit is not ours."""
    try:
        facts = json.loads(str(table.history(1)[0].get(USER_METADATA)))
    except ValueError:
        return None
    if not isinstance(facts, dict) or facts.get("derived") != 1:
        return None
    return str(facts["definition"])
