"""A clinic whose patients' columns are masked, each with a canary in what must not be kept."""

from typing import Any, Final

TOKEN: Final = "SaltToken9x4"
SALT: Final = f" {TOKEN} ${{x}} \\ ünïcode"
CANARY: Final = "CANARY7f3a"
"""In every value that is dropped, hashed or cut off, and nowhere else."""

COLUMNS: Final[dict[str, Any]] = {
    "clinic.*.ssn": "hash",
    "clinic.*.e-mail ☎": "hash",
    "clinic.*.code": "hash",
    "clinic.*.nick": "hash",
    "clinic.*.scan": "hash",
    "clinic.*.late*": "hash",
    "clinic.*.diagnosis": "drop",
    "clinic.*.born": "drop",
    "clinic.*.note": {"truncate": 3},
}

_MASKED: Final = """
  ssn text, "e-mail ☎" varchar(60), code char(16), nick citext, scan text,
  diagnosis jsonb, born text NOT NULL, note varchar(80) DEFAULT 'none at all',
  loud text GENERATED ALWAYS AS (upper(ssn)) STORED"""
TABLES: Final = ("patients", "visits", "calls", "clicks")
SQL: Final = f"""
CREATE EXTENSION citext;
CREATE SCHEMA clinic;
CREATE SCHEMA ward;
CREATE TABLE clinic.patients (id int PRIMARY KEY, name text, day date, {_MASKED});
ALTER TABLE clinic.patients REPLICA IDENTITY FULL;
CREATE TABLE clinic.visits (id int PRIMARY KEY, name text, day date, {_MASKED});
CREATE TABLE clinic.calls (id int, name text, day date, {_MASKED});
ALTER TABLE clinic.calls REPLICA IDENTITY FULL;
CREATE TABLE clinic.clicks (id int, name text, day date, {_MASKED});
CREATE TABLE clinic.refused (LIKE clinic.patients, PRIMARY KEY (id));
ALTER TABLE clinic.refused REPLICA IDENTITY FULL;
CREATE TABLE ward.plain (id int PRIMARY KEY, ssn text);
INSERT INTO ward.plain VALUES (1, 'kept as it is');
"""


def inserted(table: str, first: int, last: int) -> str:
    """Return an INSERT of rows whose masked values hold the canary; every seventh is NULL."""
    return f"""
INSERT INTO clinic.{table} (id, name, ssn, "e-mail ☎", code, nick, scan, diagnosis, born, note)
SELECT i, 'name ' || i, 'ä😀{CANARY} ' || i, i || '@{CANARY}.org',
       CASE i % 7 WHEN 0 THEN NULL ELSE '{CANARY}' || i % 3 END, 'Nick{CANARY}' || i,
       (SELECT '{CANARY}' || string_agg(md5(random()::text), '{CANARY}')
          FROM generate_series(1, 1500) WHERE i % 2 = 0),
       '{{"is": "{CANARY}"}}', '{CANARY}', CASE i % 5 WHEN 0 THEN '' ELSE 'é😀z{CANARY}' END
  FROM generate_series({first}, {last}) i;
"""


def changed(table: str) -> str:
    """Return changes of rows, some of which leave large values as they are."""
    return f"""
UPDATE clinic.{table} SET name = name || '!' WHERE id % 2 = 0;
UPDATE clinic.{table} SET ssn = ssn || ' again', note = 'xy' WHERE id % 3 = 0;
UPDATE clinic.{table} SET scan = NULL, code = '{CANARY}' WHERE id % 11 = 0;
DELETE FROM clinic.{table} WHERE id % 4 = 1;
"""


def expected(column: str) -> str:
    """Return SQL by which Postgres computes what the lake is to have, with the salt as %(salt)s."""
    quoted = '"' + column + '"'
    if column == "note":
        return f"left({quoted}, 3)"
    if column in {"id", "name"}:
        return f"{quoted}::text"
    # A cast to text would strip the blanks of a char(n), which are part of its value.
    text = f"rpad({quoted}::text, 16)" if column == "code" else f"{quoted}::text"
    return f"encode(sha256(convert_to(%(salt)s || {text}, 'UTF8')), 'hex')"


KEPT_COLUMNS: Final = ("id", "name", "ssn", "e-mail ☎", "code", "nick", "scan", "note")
