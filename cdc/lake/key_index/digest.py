"""Digests key values, so that the chance of a collision is known for any values.

A column's values become numbers of 32 bits: its length, if it can vary, then its bytes, four at a
time. Of two different values at least one number differs, since what is missing at the end counts
as zero and the length tells it apart. Columns do not share numbers, so two different keys never
have the same ones.

Four times, the numbers are multiplied with random factors of 64 bits and added up; the upper 32
bits of each sum are the digest ("multilinear" hashing; Lemire and Kaser, Strongly universal string
hashing is fast, 2012). Whatever two different keys are, they share a digest under one in 2**128
choices of the factors. The factors come from a secret, so no one can choose keys that collide: for
10,000 keys looked up among 10**9 the chance is below 10**-25, far below that of an unnoticed error
in memory.
"""

from collections.abc import Sequence
from hashlib import blake2b, shake_256
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

LONGEST: Final = 256
"""Bytes of a value that enter as they are; of a longer one its length and a digest of 32 bytes."""
_LANES: Final = 4
_FACTORS: Final = 1 + LONGEST // 4
_BLOCK: Final = 8192
"""Rows at a time, so that their numbers take a few megabytes at most."""

Words = NDArray[np.uint64]


class Digests:
    """Makes digests of 128 bits under one secret, as an upper and a lower half of 64 bits."""

    def __init__(self, secret: bytes, columns: int) -> None:
        self._secret = secret
        self._factors = [_random(secret, column, _FACTORS) for column in range(columns)]
        self._offset = _random(secret, columns, 1)

    def of(self, columns: Sequence[pa.Array]) -> tuple[Words, Words]:
        """Return the halves of each row's digest; the columns are ``in_one_form``."""
        rows = len(columns[0])
        blocks = [
            self._block([column.slice(begin, _BLOCK) for column in columns])
            for begin in range(0, rows, _BLOCK)
        ]
        lanes = np.concatenate(blocks) if blocks else np.empty((0, _LANES), np.uint64)
        return _joined(lanes[:, 0], lanes[:, 1]), _joined(lanes[:, 2], lanes[:, 3])

    def _block(self, columns: Sequence[pa.Array]) -> Words:
        sums = np.repeat(self._offset, len(columns[0]), axis=0)
        for values, factors in zip(columns, self._factors, strict=True):
            numbers = self._numbers(values)
            sums += numbers @ factors[: numbers.shape[1]]  # modulo 2**64, as it should be
        return sums >> np.uint64(32)

    def _numbers(self, values: pa.Array) -> Words:
        if pa.types.is_large_binary(values.type):
            return self._of_varying_length(values)
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.int32())
        width = values.type.bit_width // 32
        words = np.frombuffer(values.buffers()[1], "<u4")
        begin = values.offset * width
        return words[begin : begin + len(values) * width].reshape(-1, width).astype(np.uint64)

    def _of_varying_length(self, values: pa.Array) -> Words:
        offsets = np.frombuffer(values.buffers()[1], "<i8")
        offsets = offsets[values.offset : values.offset + len(values) + 1]
        lengths = np.diff(offsets)
        data = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
        if lengths.max(initial=0) > LONGEST:
            data, held = self._shortened(values, lengths)
        else:
            held = lengths
        padded = np.zeros((len(values), -(-int(held.max(initial=0)) // 4) * 4), np.uint8)
        padded[np.arange(padded.shape[1]) < held[:, None]] = data
        words = padded.view("<u4").astype(np.uint64)
        return np.hstack([lengths.astype(np.uint64)[:, None], words])

    def _shortened(
        self, values: pa.Array, lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        parts = [
            blake2b(value, digest_size=32, key=self._secret).digest()
            if len(value) > LONGEST
            else value
            for value in values.to_pylist()
        ]
        return np.frombuffer(b"".join(parts), np.uint8), np.where(lengths > LONGEST, 32, lengths)


def _random(secret: bytes, column: int, factors: int) -> Words:
    bits = shake_256(secret + column.to_bytes(4, "little")).digest(8 * _LANES * factors)
    return np.frombuffer(bits, "<u8").reshape(factors, _LANES)


def _joined(upper: Words, lower: Words) -> Words:
    return (upper << np.uint64(32)) | lower
