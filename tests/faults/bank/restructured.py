"""A bank whose transactions may also be large or wide, or change a table's structure.

It cannot be used where a snapshot, the connector's or an exported one, reads its tables: Postgres
shows a table's newest columns there, whatever the moment of the snapshot.
"""

from functools import partial
from typing import Final

from tests.faults.bank.bank import COLUMNS, SELDOM, Bank, at_work

_ALL: Final = ", ".join(f"{column} = %(mark)s" for column in COLUMNS)
_RESHAPE: Final = """
ALTER TABLE bank.reshaped ADD COLUMN fresh bigint DEFAULT {mark};
UPDATE bank.reshaped SET n = {mark};
ALTER TABLE bank.reshaped DROP COLUMN shape;
ALTER TABLE bank.reshaped RENAME COLUMN fresh TO shape;
"""
"""Rows that are not written again after this get the new column's value by no event."""


class Restructured(Bank):
    """A bank in which one transaction in 80 is wide, one in 160 large, one in 320 an ALTER."""

    def _seldom(self, mark: int) -> None:
        super()._seldom(mark)
        turn, rest = divmod(mark, SELDOM)
        if rest != 8:
            return
        if turn % 32 == 0:
            self._connection.execute(_RESHAPE.format(mark=mark).encode())
        elif turn % 8 == 2:
            self._connection.execute(f"UPDATE bank.broad SET {_ALL}".encode(), {"mark": mark})
        elif turn % 16 == 4:
            self._connection.execute("UPDATE bank.thousands SET change = %s", (mark,))


restructured_at_work: Final = partial(at_work, kind=Restructured)
