"""List the forms of ``FOR SYSTEM_TIME AS OF`` for the reference page."""

from typing import Final

FORMS: Final = (
    (
        "JOIN schema.table FOR SYSTEM_TIME AS OF o._commit AS c ON c.id = o.customer_id",
        "as it was after the transaction that inserted the row of o, a captured table before it",
    ),
    (
        "JOIN schema.table FOR SYSTEM_TIME AS OF o.paid_at AS c ON c.id = o.customer_id",
        "as it was at the time in a column of a table before it; no row where that is NULL",
    ),
    (
        "FROM schema.table FOR SYSTEM_TIME AS OF TIMESTAMPTZ '2024-01-31 12:00:00+00' AS c",
        "as it was at a time, in UTC if no zone is given; also in JOIN",
    ),
)
"""Each form, and a remark."""
