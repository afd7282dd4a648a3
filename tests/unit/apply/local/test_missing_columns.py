"""Without Spark, the changes that may stop a table are the ones that Spark would find."""

import pytest

from cdc.apply.local.missing_columns import some_change
from tests.events.lacking import CASES, SCHEMAS, Case
from tests.events.local_lake import log_table

LACKING = [case for case in CASES if case.name != "with all columns"]


@pytest.mark.parametrize("case", LACKING, ids=lambda case: case.name)
def test_only_a_change_of_such_a_schema_counts(case: Case) -> None:
    assert some_change(log_table(case.messages), SCHEMAS) is case.stops
    assert not some_change(log_table(case.messages), {})
