"""A batch runs with settings that suit its number of events."""

import pytest
from pyspark.sql import SparkSession

from cdc.apply.table import spark_plans

WHOLE_STAGE = "spark.sql.codegen.wholeStage"


def test_code_is_generated_only_for_many_events_in_one_session(
    spark: SparkSession,
) -> None:
    session, other = spark.newSession(), spark.newSession()

    spark_plans.suit(session, spark_plans.FEW)
    assert session.conf.get(WHOLE_STAGE) == "false"
    assert "WholeStageCodegen" not in plan(session)
    assert other.conf.get(WHOLE_STAGE) == "true"

    spark_plans.suit(session, spark_plans.WHOLE_FILES)
    assert session.conf.get(WHOLE_STAGE) == "true"
    assert "WholeStageCodegen" in plan(session)
    assert other.conf.get(WHOLE_STAGE) == "true"


def test_a_setting_in_the_configuration_is_kept(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = spark.newSession()
    monkeypatch.setattr("pyspark.SparkConf.contains", lambda _, name: name == WHOLE_STAGE)

    spark_plans.suit(session, 1)

    assert session.conf.get(WHOLE_STAGE) == "true"
    assert session.conf.get("spark.sql.adaptive.enabled") == "false"


def plan(session: SparkSession) -> str:
    rows = session.range(10).selectExpr("id + 1 AS next").where("next > 3")
    rows.collect()
    return str(rows._jdf.queryExecution().executedPlan().getClass().getName())
