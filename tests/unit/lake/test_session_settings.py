"""Test the settings of Spark that depend on where its executors run."""

import pytest

from cdc.config import Config, Lake, Source, Spark
from cdc.lake.session import IN_COMMANDS, LOG_LEVEL, TEXTS, settings_of


def config(master: str, conf: dict[str, str] | None = None) -> Config:
    spark = Spark(master=master, conf=conf or {})
    return Config(source=Source(tables=["a.*"]), lake=Lake(path="lake"), spark=spark)


@pytest.mark.parametrize("master", ["local[2]", "local[*]"])
def test_the_driver_listens_on_the_loopback_if_its_executors_are_in_it(master: str) -> None:
    settings = settings_of(config(master))

    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.authenticate"] == "true"


def test_executors_of_a_cluster_reach_the_driver() -> None:
    settings = settings_of(config("spark://one:7077,two:7077"))

    assert "spark.driver.host" not in settings
    assert "spark.driver.bindAddress" not in settings


def test_the_user_sets_everything_but_how_texts_are_read() -> None:
    [literal, *_] = TEXTS
    given = {"spark.driver.host": "10.0.0.1", literal: "true"}

    settings = settings_of(config("local[1]", given))

    assert settings["spark.driver.host"] == "10.0.0.1"
    assert settings[literal] == TEXTS[literal] != "true"


def test_a_command_s_spark_says_errors_only_unless_the_user_wants_more() -> None:
    asked = config("local[2]", {LOG_LEVEL: "INFO"})

    assert settings_of(config("local[2]"))[LOG_LEVEL] == "WARN"
    assert settings_of(config("local[2]"), IN_COMMANDS)[LOG_LEVEL] == "ERROR"
    assert settings_of(asked, IN_COMMANDS)[LOG_LEVEL] == "INFO"
