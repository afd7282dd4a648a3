"""Without Spark too, a change without a column of the table stops it; see missing_columns.py."""

import pytest

from cdc.apply.local.missing_columns import refuse_lacking
from cdc.errors import CdcError, ErrorKind
from tests.events.lacking import CASES, SCHEMAS, Case
from tests.events.local_lake import log_table


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_only_a_change_without_the_column_stops_the_table(case: Case) -> None:
    rows = log_table(case.messages)

    if not case.stops:
        refuse_lacking(rows, SCHEMAS, case.structure)
        return
    with pytest.raises(CdcError) as stopped:
        refuse_lacking(rows, SCHEMAS, case.structure)

    assert stopped.value.kind is ErrorKind.TABLE_STOPPED
    assert stopped.value.message.startswith("a change arrived without lost:")
