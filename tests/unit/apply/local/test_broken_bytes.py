"""Whatever bytes arrive, an event is kept or refused, and the values of a kept one can be kept."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.apply.local.arrow import log_events, table_of
from cdc.apply.local.decode import TableDecoder
from cdc.events.schema import table_schema_from_avro
from cdc.tables import TableId, TableMode
from tests.events.broken import broken
from tests.events.local_lake import log_table
from tests.events.recorded import recording, table_topic


@pytest.mark.parametrize(
    ("name", "table", "mode"),
    [
        ("tables", "customers", TableMode.KEYED),
        ("tables", "toasty", TableMode.APPEND),
        ("tables", "no_key", TableMode.MULTISET),
        ("types", "every_type", TableMode.KEYED),
    ],
)
@given(random=st.randoms(use_true_random=False))
def test_no_bytes_break_the_decoder(name: str, table: str, mode: TableMode, random: Random) -> None:
    recorded, topic = recording(name), table_topic(table)
    written, key = recorded.written(topic), ("id",) if mode is TableMode.KEYED else ()
    schema = table_schema_from_avro(
        written[max(written)], table=TableId("public", table), key=key, mode=mode
    )
    messages = list(broken(recorded.of(topic), random, 20))
    decoder = TableDecoder(
        written, schema, placeholder=recorded.placeholder, key_schemas=recorded.schemas
    )

    changes = decoder.decode(log_events(log_table(messages)))

    assert {change.offset for change in changes} == {message.offset for message in messages}
    kept = [change for change in changes if change.reason is None]
    assert all(change.op in {"c", "r", "u", "d", "t"} for change in kept)
    assert len(table_of(schema, [change.values for change in kept], {})) == len(kept)
