"""`python -m matview.spark.warm`: writes the class archive with which Spark starts faster.

A short run of what refreshes do loads the classes; Java writes them down when it ends. Nothing else ever does.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from matview.errors import NoJava
from matview.spark.archive import archive_path, base_path, can_be_archived
from matview.spark.cache import cache_dir
from matview.spark.java import Java, find_java

_TRAINING = """
import pyarrow as pa
from pyspark.sql import functions as F
from matview.spark.session import spark_session

spark = spark_session()
rows = pa.table({"k": list(range(100)), "s": [str(i) for i in range(100)]})
rows = spark.createDataFrame(rows).selectExpr("k", "s", "cast(k as decimal(12,2)) d", "current_timestamp() t")
rows.write.parquet(PLACE)
spark.read.parquet(PLACE).createOrReplaceTempView("a")
spark.sql("SELECT a.s, sum(b.d) FROM a JOIN a b ON a.k = b.k WHERE b.k > 3 GROUP BY a.s ORDER BY 2").collect()
spark.sql("SELECT * FROM a WHERE k NOT IN (SELECT k FROM a WHERE d > 5)").groupBy("t").agg(F.max("d")).toArrow()
spark.sql("SELECT *, row_number() OVER (PARTITION BY s ORDER BY k) n FROM a").collect()
"""


def main() -> int:
    """0 if the archive is there in the end, 1 if this Java or this Spark can have none."""
    java, cache = find_java(), cache_dir()
    archive = archive_path(java, cache)
    if archive.exists():
        return 0
    if not can_be_archived():
        return 1
    for old in cache.glob("spark-*.jsa"):
        old.unlink()
    draft = archive.with_name(f"{archive.name}.{os.getpid()}")
    _train(draft, _base_options(java, base_path(archive)))
    if draft.exists():
        draft.replace(archive)
    return 0 if archive.exists() else 1


def _train(draft: Path, options: list[str]) -> None:
    """One short Spark run in a process of its own. Its pipes end when its Java has ended, archive written."""
    with tempfile.TemporaryDirectory(prefix="matview-warm-") as scratch:
        program = f"PLACE = {str(Path(scratch, 'table'))!r}\n{_TRAINING}"
        environment = os.environ | {"MATVIEW_JAVA_OPTIONS": shlex.join([*options, f"-XX:ArchiveClassesAtExit={draft}"])}
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, timeout=600, check=False)


def _base_options(java: Java, base: Path) -> list[str]:
    """Most runtimes come with an archive of Java's own classes to build on; for the others it is made first."""
    if (java.home / "lib" / "server" / "classes.jsa").exists():
        return []
    command = [str(java.command), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
    subprocess.run(command, capture_output=True, timeout=600, check=False)
    return [f"-XX:SharedArchiveFile={base}"] if base.exists() else []


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NoJava as error:
        sys.exit(str(error))
