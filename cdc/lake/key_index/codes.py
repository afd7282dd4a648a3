"""Keys as numbers: an integer as it is, any other key as its digest."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdc.lake.key_index.digest import Digests
from cdc.lake.key_index.key_columns import INTEGERS, KeyColumn, in_one_form, refuse_types

Numbers = NDArray[Any]
"""int64 for a key that is one integer, else uint64: the half of a digest."""


@dataclass(frozen=True, slots=True)
class Codes:
    """Holds one or two numbers per key; two keys are equal exactly if all their numbers are."""

    first: Numbers
    second: Numbers | None

    def take(self, places: NDArray[np.intp]) -> "Codes":
        """Return the codes at the places, in that order."""
        second = None if self.second is None else self.second[places]
        return Codes(self.first[places], second)


class KeyCoder:
    """Gives the same codes to the keys of files and of batches."""

    def __init__(self, key: Sequence[KeyColumn], secret: bytes) -> None:
        """Take a key and the secret of its digests; raise IndexRefusedError for a key's type."""
        refuse_types(key)
        self.key = tuple(key)
        self.exact = len(key) == 1 and key[0].type in INTEGERS
        self._digests = Digests(secret, len(key))
        columns = [(column.physical, column.type) for column in key]
        self.meaning = sha256(secret + json.dumps(columns).encode()).hexdigest()
        """What codes mean: coders with the same one give the same codes."""
        nothing = np.empty(0, np.uint64)
        self.none = Codes(np.empty(0, np.int64), None) if self.exact else Codes(nothing, nothing)
        """The codes of no keys."""

    def codes(self, columns: Sequence[pa.Array]) -> Codes:
        """Return the code of each row; the columns are those of the key, in its order.

        Raises IndexRefusedError for values that no key has.
        """
        formed = [in_one_form(*pair) for pair in zip(self.key, columns, strict=True)]
        if self.exact:
            return Codes(formed[0].to_numpy(), None)
        return Codes(*self._digests.of(formed))
