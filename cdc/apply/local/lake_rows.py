"""Says what the ordering of a batch asks of the table in the lake, as it was before the batch."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from cdc.apply.local.change import Key


class LakeRows(Protocol):
    """Looks rows up; values are as in cdc/apply/changes/conversion.py (dates are days)."""

    def rows(self, keys: Collection[Key], columns: Sequence[int]) -> Mapping[Key, Sequence[Any]]:
        """Return the values of these columns, in their order, by key; absent rows are left out.

        ``columns`` are numbers of the table's columns.
        """

    def copies(self, digests: Collection[str]) -> Mapping[str, int]:
        """Return how many copies a table without a key holds of each row, by its digest."""


class NoRows:
    """Stands for an empty table."""

    def rows(self, keys: Collection[Key], columns: Sequence[int]) -> Mapping[Key, Sequence[Any]]:  # noqa: ARG002
        """Return no row."""
        return {}

    def copies(self, digests: Collection[str]) -> Mapping[str, int]:  # noqa: ARG002
        """Return no copy."""
        return {}
