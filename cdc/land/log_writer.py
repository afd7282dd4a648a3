"""Appends a landing to the log in one commit: by this process if it is small, or by Spark."""

from typing import Final

import pyarrow as pa
import structlog
from pyspark.sql import DataFrame, SparkSession

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.appender import Appender
from cdc.lake.commit.protocol import TakeMergeError
from cdc.land.arrow_rows import DELTA_TYPES
from cdc.land.log_table import LOG_COLUMNS

ONE_FILE_EVENTS: Final = 50_000  # a landing with more events is written by two tasks
logger = structlog.get_logger(__name__)


class LogWriter:
    """Writes to the log at ``path``; used by the landing thread alone."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self.appender: Final = Appender(path, DELTA_TYPES)

    def append(self, rows: pa.Table, metadata: str) -> None:
        """Append rows that are in memory, with the commit's metadata."""
        if not self._appended(rows, metadata):
            frame = self._spark.createDataFrame(rows, LOG_COLUMNS)
            self.append_frame(frame, metadata, events=len(rows))

    def append_frame(self, rows: DataFrame, metadata: str, *, events: int) -> None:
        """Append that many rows by Spark, with the commit's metadata."""
        files = 1 if events <= ONE_FILE_EVENTS else 2
        ordered = rows.coalesce(files).sortWithinPartitions("topic", "offset")
        writer = ordered.write.format("delta").option("userMetadata", metadata)
        writer.mode("append").save(self._path)

    def _appended(self, rows: pa.Table, metadata: str) -> bool:
        """Append without Spark; return whether that was possible."""
        try:
            self.appender.append(rows, metadata)
        except TakeMergeError as why:
            logger.info("left to spark", path=self._path, reason=why.reason)
            return False
        except CdcError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
            return False  # Spark appends behind the other commit
        return True
