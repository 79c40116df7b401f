"""Versioned Delta tables on Spark: Spark writes Parquet, the driver commits, a snapshot says what is there."""
