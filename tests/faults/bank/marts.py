"""Derived tables over the bank, each with a query of plain DuckDB for what it must be at a cut.

The second query shares no code with wal2lake: windows, runs and folds are spelled in other words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.faults.bank.armed import Armed


@dataclass(frozen=True, slots=True, kw_only=True)
class Mart:
    """One derived table. ``wanted`` reads its inputs by name, ``stored`` reads it as ``t``.

    ``{epoch}`` and ``{lsn}`` in them are those of the cut.
    """

    inputs: tuple[str, ...]
    wanted: str
    stored: str
    text: str = ""
    """Of its file; empty for a table that another definition makes besides."""
    ending: str = "sql"


_AT: Final = "_epoch = {epoch} AND _from_lsn <= {lsn} AND (_to_lsn IS NULL OR _to_lsn > {lsn})"
_RUNS: Final = """
WITH steps AS (SELECT *, lag(amount) OVER (PARTITION BY counter ORDER BY version) AS before
               FROM entries),
     runs AS (SELECT *, sum(CASE WHEN amount > before THEN 0 ELSE 1 END)
                          OVER (PARTITION BY counter ORDER BY version) AS run FROM steps)
SELECT counter, min(version) AS first, count(*) - 1 AS more, max(amount) AS top
FROM runs GROUP BY counter, run HAVING count(*) > 1
"""
_WINDOWS: Final = """
WITH held AS (
  SELECT * FROM windows__late l WHERE _effect <> 'admitted' AND NOT EXISTS (
    SELECT 1 FROM windows__late a WHERE a._effect = 'admitted' AND a._offset >= l._offset
    AND (a.counter, a.version, a._window_start) = (l.counter, l.version, l._window_start)))
SELECT window_start, count(*) AS n, sum(amount)::bigint AS amount FROM (
  SELECT time_bucket(INTERVAL '10 seconds', e."at", TIMESTAMPTZ '1970-01-01 00:00:00Z')
           AS window_start, e.amount
  FROM entries e
  WHERE NOT EXISTS (SELECT 1 FROM held l WHERE (l.counter, l.version, l._window_start)
    = (e.counter, e.version,
       time_bucket(INTERVAL '10 seconds', e."at", TIMESTAMPTZ '1970-01-01 00:00:00Z')))
  UNION ALL
  SELECT _window_start, amount FROM held WHERE _effect = 'kept')
GROUP BY window_start
"""
_SUMS: Final = '''"""What was entered for each counter."""

table = {
    "events": "bank.entries",
    "stream": "counter",
    "version": "version",
    "columns": {"entries": "bigint", "amount": "bigint"},
}


def apply(state, event):
    before = state or {"entries": 0, "amount": 0}
    return {"entries": before["entries"] + 1, "amount": before["amount"] + event["amount"]}
'''
MARTS: Final[Mapping[str, Mart]] = {
    "kept.pages": Mart(  # scoped, over a table without a key
        inputs=("bank.visits",),
        text="SELECT who, page, count(*) AS n, max(at) AS last FROM bank.visits GROUP BY who, page",
        wanted='SELECT who, page, count(*), max("at") FROM visits GROUP BY ALL',
        stored="SELECT who, page, n, last FROM t",
    ),
    "kept.follows": Mart(  # scoped, over a join whose keys change places
        inputs=("bank.counters", "bank.ring"),
        text="SELECT c.name, c.n, r.name AS follows FROM bank.counters c"
        " LEFT JOIN bank.ring r ON r.id = c.name",
        wanted="SELECT name, n, (SELECT r.name FROM ring r WHERE r.id = c.name) FROM counters c",
        stored="SELECT name, n, follows FROM t",
    ),
    "kept.moves": Mart(
        inputs=("bank.debits", "bank.credits"),
        text="SELECT d.mark, d.amount AS debited, c.amount AS credited FROM bank.debits d"
        " JOIN bank.credits c ON c.mark = d.mark",
        wanted="SELECT mark, d.amount, c.amount FROM debits d FULL JOIN credits c USING (mark)",
        stored="SELECT mark, debited, credited FROM t",
    ),
    "kept.total": Mart(  # over a derived table, and calculated as a whole
        inputs=("bank.debits",),
        text="SELECT count(*) AS n, sum(debited) AS debited, sum(credited) AS credited"
        " FROM kept.moves",
        wanted="SELECT count(*), sum(amount)::bigint, sum(amount)::bigint FROM debits",
        stored="SELECT n, debited::bigint, credited::bigint FROM t",
    ),
    "kept.minutes": Mart(
        inputs=("bank.visits",),
        text="SELECT w.window_start, w.page, count(*) AS n"
        " FROM tumble(bank.visits, at, INTERVAL '1 minute') w GROUP BY w.window_start, w.page",
        wanted="""SELECT date_trunc('minute', "at"), page, count(*) FROM visits GROUP BY ALL""",
        stored="SELECT window_start, page, n FROM t",
    ),
    "kept.windows": Mart(
        inputs=("bank.entries", "kept.windows__late"),
        text="/* ---\nlate: {column: at, allowed: 2 seconds, policy: aside}\n--- */\n"
        "SELECT w.window_start, count(*) AS n, sum(w.amount) AS amount"
        " FROM tumble(bank.entries, at, INTERVAL '10 seconds') w GROUP BY w.window_start",
        wanted=_WINDOWS,
        stored="SELECT window_start, n, amount::bigint FROM t",
    ),
    "kept.days": Mart(  # over a table of which deleted rows are forgotten
        inputs=("bank.odd",),
        text="SELECT day, count(*) AS n FROM bank.odd GROUP BY day",
        wanted="SELECT day, count(*) FROM odd GROUP BY day",
        stored="SELECT day, n FROM t",
    ),
    "kept.risen": Mart(
        inputs=("bank.entries",),
        text="/* ---\nkind: pattern\nmax_partition_rows: 100000\n--- */\n"
        "SELECT * FROM bank.entries MATCH_RECOGNIZE (PARTITION BY counter ORDER BY version"
        " MEASURES FIRST(A.version) AS first, COUNT(B.version) AS more, LAST(B.amount) AS top"
        " ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW"
        " PATTERN (A B+) DEFINE B AS B.amount > PREV(B.amount))",
        wanted=_RUNS,
        stored="SELECT counter, first, more, top FROM t",
    ),
    "kept.sums": Mart(
        inputs=("bank.entries",),
        text=_SUMS,
        ending="py",
        wanted="SELECT counter, max(version), count(*), sum(amount)::bigint FROM (SELECT *,"
        " row_number() OVER (PARTITION BY counter ORDER BY version) AS place FROM entries)"
        " WHERE version = place GROUP BY counter",
        stored="SELECT counter, version, entries, amount FROM t",
    ),
    "kept.sums__faults": Mart(
        inputs=("bank.entries",),
        wanted="SELECT counter, before + 1, 'gap' FROM (SELECT *,"
        " lag(version, 1, 0) OVER (PARTITION BY counter ORDER BY version) AS before FROM entries)"
        " WHERE version > before + 1",
        stored="SELECT counter, version, fault FROM t",
    ),
    "kept.accounts_past": Mart(
        inputs=("bank.accounts",),
        text="/* ---\nkind: history\ntable: bank.accounts\n--- */\n",
        wanted="SELECT id, balance FROM accounts",
        stored=f"SELECT id, balance FROM t WHERE {_AT}",
    ),
    "kept.flicker_past": Mart(
        inputs=("bank.flicker",),
        text="/* ---\nkind: history\ntable: bank.flicker\ntrack: [n]\n--- */\n",
        wanted="SELECT id, n FROM flicker",
        stored=f"SELECT id, n FROM t WHERE {_AT}",
    ),
}
HISTORIES: Final = tuple(name for name in MARTS if name.endswith("_past"))
SECONDS: Final = 3.0
"""A cut waits so long for them; the machine may be busy, and lagging ones are judged as well."""


def define(bank: Armed, tables: Sequence[str] | None = None) -> None:
    """Write the definitions over these tables of the bank; of all without any."""
    folder = bank.folder / "derived"
    folder.mkdir()
    seen = None if tables is None else {f"bank.{name}" for name in tables}
    for name, mart in MARTS.items():
        if mart.text and (seen is None or seen.issuperset(mart.inputs)):
            (folder / f"{name}.{mart.ending}").write_text(mart.text)
    bank.configure(_patient)


def assert_derived(bank: Armed) -> None:
    """Compare with what the source calculates, at rest; what it cannot, by calculating again."""
    beyond = assert_agreed(bank, "--source")
    again = bank.facts("derived", "verify", *beyond)
    assert again["equal"], again


def assert_agreed(bank: Armed, *witness: str) -> list[str]:
    """Compare with what a witness calculates; return the tables that it cannot compare."""
    verdicts = bank.any_facts("derived", "verify", *witness)["tables"]
    wrong = [each for each in verdicts if each["missing"] or each["extra"]]
    assert not wrong, wrong
    beyond = [each["table"] for each in verdicts if each["reason"]]
    assert len(beyond) < len(verdicts), verdicts
    return beyond


def _patient(written: dict[str, Any]) -> None:
    written["derived"] = {"seconds": SECONDS}
