"""Gives a table a Spark session of its own, made when Spark is first asked for it.

A new session costs a start some tenths of a second while the JVM is cold, and most tables never
need one: their batches are small, and applied without Spark.
"""

import threading

from pyspark.sql import SparkSession


class OwnSession:
    """Makes a session of ``spark`` once; any thread may ask for it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._made: SparkSession | None = None

    @classmethod
    def of(cls, session: "SparkSession | OwnSession") -> "OwnSession":
        """Return what hands out this session, which has been made already, or is to be made."""
        if isinstance(session, OwnSession):
            return session
        made = cls(session)
        made._made = session
        return made

    @property
    def is_made(self) -> bool:
        """Return whether anybody has asked for the session."""
        return self._made is not None

    def get(self) -> SparkSession:
        """Return the session."""
        with self._lock:
            if self._made is None:
                self._made = self._spark.newSession()
            return self._made


AnySession = SparkSession | OwnSession
"""A table's own session, or what makes it when Spark is asked."""
