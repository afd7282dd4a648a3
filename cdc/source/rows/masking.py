"""Compute in Postgres what ``source.columns`` leaves of a value, so that no other text is read.

The salt is a setting of the session: in the text of a query it would be seen in pg_stat_activity,
pg_stat_statements and the log of slow statements.
"""

from typing import Final

from cdc.config.masks import HASH, TRUNCATE

SALT: Final = "wal2lake.hash_salt"
"""The setting of the session that holds the salt. A query that needs it fails where it is unset."""


def masked_sql(template: str, mask: str) -> str:
    """Return SQL for what the mask leaves of a value whose text ``template`` gives; NULL of NULL.

    Hexadecimal digits of SHA-256 over the salt and the text in UTF-8, or the first characters.
    """
    kind, _, argument = mask.partition(" ")
    if kind == HASH:
        salted = f"current_setting('{SALT}') || ({template})"
        return f"encode(sha256(convert_to({salted}, 'UTF8')), 'hex')"
    return f"left(({template}), {int(argument)})" if kind == TRUNCATE else template
