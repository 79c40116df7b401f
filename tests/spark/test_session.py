"""The local Spark: what it is set to, and what is left alone."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_process_has_one_session(spark: SparkSession) -> None:
    from matview.spark.session import spark_session

    found = []
    thread = threading.Thread(target=lambda: found.append(spark_session()))
    thread.start()
    thread.join()
    assert found[0].sparkContext is spark.sparkContext


def test_a_session_given_keeps_its_settings_but_those_that_answers_depend_on(spark: SparkSession) -> None:
    from matview.spark.session import spark_session

    given = spark.newSession()
    given.conf.set("spark.sql.ansi.enabled", "false")
    given.conf.set("spark.sql.shuffle.partitions", "7")
    assert spark_session(given) is given
    assert given.conf.get("spark.sql.ansi.enabled") == "true"
    assert given.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS"
    assert given.sql("SELECT '${spark.app.name}'").first() == ("${spark.app.name}",)
    assert given.conf.get("spark.sql.shuffle.partitions") == "7"


def test_starting_leaves_the_environment_as_it_was(spark: SparkSession) -> None:
    assert "SPARK_LOCAL_IP" not in os.environ
    assert "java-" not in os.environ.get("JAVA_HOME", "")


def test_python_workers_run_the_same_python(spark: SparkSession) -> None:
    import sys

    assert spark.sparkContext.pythonExec == sys.executable


@pytest.mark.spark
@pytest.mark.parametrize(("memory", "gib"), [(1 << 30, 1), (16 << 30, 4), (256 << 30, 8)])
def test_a_quarter_of_the_memory_between_one_and_eight(monkeypatch: pytest.MonkeyPatch, memory: int, gib: int) -> None:
    from matview.spark import session

    monkeypatch.setattr(session, "memory", lambda: memory)
    assert session.driver_memory_gib() == gib


def test_what_is_turned_off_comes_back_after_the_last(spark: SparkSession) -> None:
    """Also if two wrappers of one session, as two warehouses of a process have them, begin and end in turn."""
    from matview.spark.session import turned_off

    given, setting = spark.newSession(), "spark.sql.constraintPropagation.enabled"
    for before in None, "true", "false":
        given.conf.unset(setting) if before is None else given.conf.set(setting, before)
        first, second = turned_off(given, setting), turned_off(given, setting)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert given.conf.get(setting, None) == "false"
        second.__exit__(None, None, None)
        assert given.conf.get(setting, None) == before
