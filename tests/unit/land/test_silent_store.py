"""The landing query says that an object store did not answer; Spark says only that it ended."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from cdc.config import Job
from cdc.lake.files.file_store import StoreError
from cdc.lake.table.positions import LandedPosition
from cdc.land.micro_batches import MicroBatches
from cdc.land.query import Lander, LandingHooks

BEGIN = LandedPosition(epoch=1, landing=0, offsets={}, topic_ids={})
SILENT = "Generic S3 error: Error performing PUT http://s/b in 30s, after 21 retries"


@pytest.mark.parametrize(
    ("raised", "is_told"),
    [(StoreError("put log"), True), (OSError(SILENT), True), (ValueError("defect"), False)],
)
def test_the_error_of_a_store_is_kept(tmp_path: Path, raised: Exception, *, is_told: bool) -> None:
    def timed() -> AbstractContextManager[None]:
        raise raised

    spark: Any = None
    hooks = LandingHooks(landed=lambda _: None, look=lambda _: None, timed=timed)
    lander = Lander(spark, str(tmp_path), BEGIN, Job(), notes_topic="notes", hooks=hooks)

    with pytest.raises(type(raised)):
        lander._paced(MicroBatches(tmp_path, {}), spark, 0)

    assert isinstance(lander.refused, StoreError) == is_told
