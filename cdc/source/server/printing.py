"""Defines how Postgres prints values, by settings of sessions whose texts are compared or kept.

The connector's sessions have them too, in ``driver.options`` and ``database.initial.statements`` of
connectors/postgres-source.json.
"""

from typing import Final

PRINTING: Final = {
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",  # as many as tell one value from every other
}
"""One text for one value, whatever the server, the database or the user has set."""

READING: Final = {**PRINTING, "client_encoding": "UTF8"}
"""Settings of a session that reads rows."""
