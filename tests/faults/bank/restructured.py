"""The bank, whose transactions are also large and wide, and change a table's structure.

Not where tables are read beside them as of an older moment (by a snapshot, the connector's or an
exported one): Postgres itself shows a table's newest columns then, whatever the moment.
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
"""No event carries the new column's value to a row that is not written again after it."""


class Restructured(Bank):
    """One transaction in eighty is wide, one in 160 large; one in 320 changes a structure."""

    def _seldom(self, mark: int) -> None:
        super()._seldom(mark)
        turn, of = divmod(mark, SELDOM)
        if of != 8:
            return
        if turn % 32 == 0:
            self._connection.execute(_RESHAPE.format(mark=mark).encode())
        elif turn % 8 == 2:
            self._connection.execute(f"UPDATE bank.broad SET {_ALL}".encode(), {"mark": mark})
        elif turn % 16 == 4:
            self._connection.execute("UPDATE bank.thousands SET change = %s", (mark,))


restructured_at_work: Final = partial(at_work, kind=Restructured)
