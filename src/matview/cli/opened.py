"""A warehouse opened from the command line: Spark starts when it is first needed, and says so."""

from __future__ import annotations

from pyspark.sql import SparkSession

from matview.cli.interrupts import Worker
from matview.cli.texts import announce
from matview.cli.where import Where
from matview.spark.session import running, spark_session
from matview.warehouse import Warehouse, open_warehouse


def open_here(where: Where) -> Warehouse:
    return open_warehouse(where.root, spark=started_spark, catalog=where.catalog, create=False)


def started_spark() -> SparkSession:
    if running() is None:
        announce("starting Spark …")
    return Worker().run(spark_session)
