"""A warehouse opened from the command line: Spark starts when it is first needed, and says so."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from matview.cli.texts import note
from matview.cli.where import Where
from matview.spark.session import spark_session
from matview.warehouse import Warehouse, open_warehouse


def open_here(where: Where) -> Warehouse:
    return open_warehouse(where.root, spark=started_spark, catalog=where.catalog, create=False)


def started_spark() -> SparkSession:
    if sys.stderr.isatty() and SparkSession.getActiveSession() is None:
        note("starting Spark …")
    return spark_session(None)
