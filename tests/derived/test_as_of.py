"""A move is joined with the account as its transaction left it, which the move itself says."""

from typing import Final

import pytest

from tests.derived.conftest import define
from tests.derived.test_histories import stored
from tests.e2e.installation import Installation

pytestmark = pytest.mark.e2e

PAST: Final = "/* ---\nkind: history\ntable: bank.{}\n--- */\n"
DEFINED: Final = {
    "marts.accounts_then": PAST.format("accounts"),
    "marts.moves_then": PAST.format("moves"),
    "marts.paid": "SELECT m.id, m.amount, a.balance FROM bank.moves AS m JOIN bank.accounts "
    "FOR SYSTEM_TIME AS OF m._commit AS a ON a.id = m.from_id WHERE m.id >= 5000000",
    "marts.paid_at": "SELECT m.id, a.balance FROM bank.moves AS m LEFT JOIN bank.accounts "
    "FOR SYSTEM_TIME AS OF m.at AS a ON a.id = m.to_id WHERE m.id >= 5000000",
}
PAY: Final = """
UPDATE bank.accounts SET balance = balance + {n} WHERE id = {account};
INSERT INTO bank.moves VALUES ({id}, {account}, {account}, 0, localtimestamp);
UPDATE bank.accounts SET balance = balance * 2 WHERE id = {account};
UPDATE bank.moves SET amount = (SELECT balance FROM bank.accounts WHERE id = {account})
  WHERE id = {id};
"""


def test_it_is_the_account_as_the_transaction_left_it(derived: Installation) -> None:
    define(derived, DEFINED)
    for n in range(20):
        derived.execute(f"BEGIN; {PAY.format(n=n, id=5_000_000 + n, account=1 + n % 3)} COMMIT")
        if n % 7 == 0:
            derived.run("sync", "--timeout", "900")
    derived.execute("UPDATE bank.accounts SET balance = 0 WHERE id <= 3")
    derived.execute("UPDATE bank.moves SET at = at WHERE id >= 5000000")
    derived.execute("DELETE FROM bank.moves WHERE id = 5000000")
    derived.run("sync", "--timeout", "900")

    found = stored(derived, "marts.paid")
    assert [row["id"] - 5_000_000 for row in found] == list(range(1, 20))
    assert [row["balance"] for row in found] == [row["amount"] for row in found]
    assert len(stored(derived, "marts.paid_at")) == 19
    verdicts = derived.facts("derived", "verify", *DEFINED)
    assert [verdict["equal"] for verdict in verdicts["tables"]] == [True] * len(DEFINED)
    for name in DEFINED:
        derived.run("derived", "rebuild", name)
    assert stored(derived, "marts.paid") == found
    for name in DEFINED:
        (derived.folder / "derived" / f"{name}.sql").unlink()
    derived.run("apply-config")
