"""The Spark of the test run, lent to another process: what dies there is the process that maintains.

env = os.environ | lent.to_others(spark)        # here
matview.open(path, spark=lent.borrowed())       # there
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PORT, SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


def to_others(spark: SparkSession) -> dict[str, str]:
    """What the environment of the other process has to say."""
    gateway = spark.sparkContext._gateway.gateway_parameters
    return {PORT: str(gateway.port), SECRET: gateway.auth_token}


def borrowed() -> SparkSession | None:
    """A session of our own in the Java that was lent; None if none was."""
    if PORT not in os.environ:
        return None
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    running = gateway.jvm.org.apache.spark.SparkContext.getOrCreate()
    java = gateway.jvm.org.apache.spark.api.java.JavaSparkContext(running)
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    return SparkSession(context).newSession()
