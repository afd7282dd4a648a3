"""Brings small batches of events to this process, whole and once."""

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import structlog
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

MOST_RECORDS: Final = 200_000
"""Records of a landing's micro-batch that is brought here; a larger one stays with Spark. After a
minute in which nothing landed, a few tables together have tens of thousands: each has few."""
MOST_BYTES: Final = 64 << 20
"""Bytes of such a micro-batch."""
_USUAL_BYTES: Final = 1024  # of a record, before any was seen
_TOO_LARGE: Final = "spark.driver.maxResultSize"
logger = structlog.get_logger(__name__)


class SmallBatches:
    """Decides which batches are small; used by one thread, that of the landing or of the rounds.

    How many records one has is known before it is read, how many bytes is not: it is taken from
    the records before it. Where that was wrong by far, Spark refuses to bring them.
    """

    def __init__(self, most: int = MOST_RECORDS) -> None:
        """``most`` is the number of records up to which a batch is small; 0 for none."""
        self.most: Final = most
        self._record_bytes: float = _USUAL_BYTES

    def rows(
        self,
        events: DataFrame,
        most: int | None,
        read_here: Callable[[], pa.Table | None] = lambda: None,
    ) -> pa.Table | None:
        """Return the rows of a batch; None if it is left to Spark.

        ``most`` is how many records it has at most, None where that is unknown. ``read_here``
        returns the rows without Spark, if that is possible.
        """
        if most is None or most > self.most:
            return None
        if most * self._record_bytes > MOST_BYTES:
            self._record_bytes /= 2  # one large record is not to count for ever
            return None
        try:
            rows = read_here()
            rows = events.toArrow() if rows is None else rows
        except (Py4JJavaError, PySparkException) as error:
            if _TOO_LARGE not in str(error):
                raise
            logger.info("left to spark", records=most, reason="its records are large")
            self._record_bytes = MOST_BYTES / max(1, most) * 2
            return None
        if len(rows):
            self._record_bytes = rows.nbytes / len(rows)
        return rows
