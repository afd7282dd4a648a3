"""Says what ``source.columns`` keeps of each column, and the values that remain.

A mask is a text, which is also recorded with the lake's table: ``drop``, ``truncate 3``, or
``hash`` and a fingerprint of the salt, so that another salt is another mask. Postgres computes the
same values in SQL (cdc/source/rows/masking.py), and so does the connector's converter
(cdc/stack/artifacts/java/MaskingAvroConverter.java).
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from cdc.config.source import LEAST_SALT, Choice, Source, Truncate
from cdc.errors import CdcError, ErrorKind
from cdc.tables import CONTROL_SCHEMA, TableId, names_column

DROP: Final = "drop"
HASH: Final = "hash"
TRUNCATE: Final = "truncate"
TEXTS: Final = frozenset({"text", "varchar", "bpchar", "citext"})
"""The Postgres types that can be hashed and truncated: one text, alike in stream and SQL."""


@dataclass(frozen=True, slots=True)
class Masks:
    """Holds the masks by pattern, in the order of the configuration."""

    by_pattern: tuple[tuple[str, str], ...] = ()
    salt: str = field(default="", repr=False)

    def of(self, table: TableId, column: str) -> str:
        """Return the column's mask; empty where it is kept as it is."""
        if table.schema == CONTROL_SCHEMA:
            return ""
        named = (
            mask for pattern, mask in self.by_pattern if names_column(table, column, [pattern])
        )
        return next(named, "")

    def masked(self, mask: str, text: str | None) -> str | None:
        """Return what the mask leaves of a value, given as Postgres's text."""
        kind, _, argument = mask.partition(" ")
        if text is None or kind == DROP:
            return None
        if kind == HASH:
            return hashlib.sha256((self.salt + text).encode()).hexdigest()
        return text[: int(argument)] if kind == TRUNCATE else text


NO_MASKS: Final = Masks()


def masks_of(source: Source) -> Masks:
    """Return the masks that the configuration asks for.

    Raises CONFIG if a column is hashed and the salt cannot be read, or is too short.
    """
    salt = salt_of(source) if HASH in source.columns.values() else ""
    return Masks(tuple((p, _text(choice, salt)) for p, choice in source.columns.items()), salt)


def salt_of(source: Source) -> str:
    """Return the salt, from the configuration or its file. Raises CONFIG like ``masks_of``."""
    salt = source.hash_salt.get_secret_value() if source.hash_salt else _read(source)
    if len(salt) < LEAST_SALT or "\0" in salt:
        raise CdcError(
            ErrorKind.CONFIG,
            f"source.hash_salt has fewer than {LEAST_SALT} characters, or a zero byte",
            remedy="make one with: openssl rand -hex 32",
        )
    return salt


def fingerprint(salt: str) -> str:
    """Return what tells two salts apart without giving one away."""
    return hashlib.sha256(f"wal2lake.hash_salt {salt}".encode()).hexdigest()[:16]


def maskable(mask: str, pg_type: str) -> bool:
    """Return whether the mask can be applied to values of a Postgres type."""
    return mask in {"", DROP} or pg_type in TEXTS


def is_hashed(masks: Collection[str]) -> bool:
    """Return whether one of the masks is a hash."""
    return any(mask.startswith(HASH) for mask in masks)


def _text(choice: Choice, salt: str) -> str:
    if isinstance(choice, Truncate):
        return f"{TRUNCATE} {choice.truncate}"
    return f"{HASH} {fingerprint(salt)}" if choice == HASH else DROP


def _read(source: Source) -> str:
    if source.hash_salt_file is None:
        return ""
    try:
        return source.hash_salt_file.read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CdcError(
            ErrorKind.CONFIG,
            f"source.hash_salt_file: {source.hash_salt_file} cannot be read",
            detail=str(getattr(error, "strerror", None) or "not text in UTF-8"),
        ) from None
