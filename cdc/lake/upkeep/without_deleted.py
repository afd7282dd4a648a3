"""Rewrites a table's files without the rows that are marked as deleted."""

from pyspark.sql import SparkSession

from cdc.failpoints import Failpoint, reach
from cdc.lake.alter.alter import alter
from cdc.lake.commit.alteration import SetProperties
from cdc.lake.table.positions import open_table
from cdc.lake.upkeep.erasure import begin_anew
from cdc.lake.upkeep.kept_versions import FILES_KEPT, USUAL
from cdc.lake.upkeep.maintenance import purge


def rewrite(spark: SparkSession, path: str, metadata: str) -> float:
    """Rewrite the files that have deleted rows; return the time of the newest version then.

    Nothing in that version and its checkpoint says anything of a deleted row; what is older is for
    ``delete_older``. ``metadata`` is the position to repeat. Nobody else may write meanwhile.
    """
    purge(spark, path, metadata)
    _commit_once_more(spark, path, metadata)
    return begin_anew(path).time


def _commit_once_more(spark: SparkSession, path: str, metadata: str) -> None:
    """Set a property to what it is: an entry after the one that removed files, with their values.

    The checkpoint of its version makes that entry needless.
    """
    table = open_table(path)
    have = table.metadata().configuration if table else {}
    same = {FILES_KEPT: have.get(FILES_KEPT, USUAL[FILES_KEPT])}
    reach(Failpoint.BEFORE_ERASURE_COMMIT)
    alter(spark, path, SetProperties(same), metadata)
    reach(Failpoint.AFTER_ERASURE_COMMIT)
