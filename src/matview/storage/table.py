"""A versioned table: its record, its layout, its Delta log, and its tuples as Spark sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from matview.algebra.schema import Schema
from matview.remembered import Remembered
from matview.storage.delta import DeltaFiles
from matview.storage.engine import Engine, small
from matview.storage.few import arrow_schema, read_few, shaped, write_few
from matview.storage.files import Files
from matview.storage.groups import VALUE, Groups
from matview.storage.pool import Pool
from matview.storage.snapshot import DataFile, Level
from matview.storage.stats import described
from matview.versions.layout import LEVEL, RID, RID_TYPE, VN_TYPE, Layout
from matview.versions.text import quoted
from matview.versions.tuples import Operation

Columns = Sequence[tuple[str, str]]
REMEMBERED = 32
MOST_KEPT = 4 * 1024 * 1024
"""Few tuples can be many bytes: those are read again when they are asked for."""
MOST_FOOTERS = 256
SMALL_ROWS, SMALL_VALUES = 4_000, 64_000
"""Files of no more are read whole, once: what each transaction leaves is a file, and whoever looks meets several."""
MOST_WHOLE = 64


class VersionedTable:
    """One table directory; the same object serves readers and the maintenance transaction."""

    def __init__(
        self,
        id: int,
        name: str,
        schema: Schema,
        versions: int,
        files: Files,
        engine: Engine,
        pool: Pool,
        cluster_by: Sequence[str] = (),
        remote: str | None = None,
        expected_rows: int = 0,
    ) -> None:
        self.id = id
        self.name = name
        self.layout = Layout(schema, versions)
        self.files = files
        self.engine = engine
        self.pool = pool
        self.cluster_by = tuple(cluster_by)
        self.remote = remote
        """The source at which the rows stay, if they do; then there are about so many, and none here."""
        self.expected_rows = expected_rows
        self.log = DeltaFiles(files, lambda: delta_fields(engine.struct(self.layout.columns)))
        self._few: Remembered[pa.Table | None] = Remembered(REMEMBERED, _is_small)
        self._frames: Remembered[DataFrame] = Remembered(REMEMBERED)
        self._groups: Remembered[Groups] = Remembered(MOST_FOOTERS)
        self._states: Remembered[pa.Table] = Remembered(REMEMBERED)
        self._whole: Remembered[pa.Table | None] = Remembered(MOST_WHOLE, _is_small)

    @property
    def schema(self) -> Schema:
        return self.layout.schema

    def tuples(self, data: Sequence[DataFile]) -> DataFrame:
        """The stored tuples of the given files, hidden ones included, with `__level`."""
        levels = [some for level in Level if (some := tuple(f for f in data if f.level is level))]
        found = [self._of_level(some) for some in levels or [()]]
        return reduce(DataFrame.unionAll, found)

    def _of_level(self, data: tuple[DataFile, ...]) -> DataFrame:
        known = ("tuples", *(f.path for f in data))
        return self._frames.get(known, lambda: self.engine.scan(self.files, data, self.layout.columns))

    def few(
        self, data: Sequence[DataFile], columns: Columns | None = None, limit: int | None = None
    ) -> pa.Table | None:
        """The stored tuples of the given files on the driver, if they are few, or within a limit, and can be there."""
        wanted = tuple(columns or self.layout.columns)
        known = (wanted, limit, *(f.path for f in data))
        return self._few.get(known, lambda: read_few(self.read, data, self.engine.struct(wanted), limit))

    def read(self, file: DataFile, schema: pa.Schema) -> pa.Table:
        """The stored tuples of a file; a column that it lacks is null."""
        whole = self.whole(file)
        if whole is not None:
            return whole.select(schema.names)
        return shaped(self.files.read(file.path, schema.names), schema, file.rows)

    def whole(self, file: DataFile) -> pa.Table | None:
        """All columns of a small file; None if it is not, or if some do not travel."""
        return self._whole.get(file.path, lambda: self._read_whole(file)) if file.rows <= SMALL_ROWS else None

    def _read_whole(self, file: DataFile) -> pa.Table | None:
        schema, groups = arrow_schema(self.engine.struct(self.layout.columns)), self.groups(file.path)
        if schema is None or sum(groups.weight(g, schema.names) for g in range(len(groups))) > SMALL_VALUES:
            return None
        return shaped(self.files.read(file.path, schema.names), schema, file.rows)

    def write(self, directory: str, level: Level, tuples: pa.Table) -> tuple[DataFile, ...]:
        """The file of tuples that the driver has, of which columns may be missing; none of none."""
        if not tuples.num_rows:
            return ()
        path = f"{directory}/{LEVEL}={level.value}/part-0.parquet"
        size, footer = write_few(self.files, path, tuples)
        schema = arrow_schema(self.engine.struct(self.layout.columns))
        self._groups.get(path, lambda: Groups(footer))
        if schema is not None and tuples.num_rows <= SMALL_ROWS and tuples.nbytes <= VALUE * SMALL_VALUES:
            self._whole.get(path, lambda: shaped(tuples, schema, tuples.num_rows))  # it need not be read
        return (described(path, level, size, footer),)

    def groups(self, path: str) -> Groups:
        return self._groups.get(path, lambda: Groups(self.files.parquet(path)))

    def states(self, file: DataFile) -> pa.Table:
        """Which tuples a file has a state of, and of which version: `__rid` and `__vn1`."""
        schema = pa.schema([(RID, pa.int64()), (self.layout.vn(1), pa.int64())])
        return self._states.get(file.path, lambda: self.read(file, schema))

    def at_hand(self, data: Sequence[DataFile], columns: Columns | None = None) -> DataFrame:
        """The stored tuples of the given files, without `__level`; if they are few, they are in the plan itself."""
        wanted = tuple(columns or self.layout.columns)

        def made() -> DataFrame:
            few = self.few(data, wanted)
            if few is None:
                return self.engine.scan(self.files, data, wanted).drop(LEVEL)
            return self.engine.local(few, self.engine.struct(wanted))

        return self._frames.get((wanted, *(f.path for f in data)), made)

    def hiders(self, overlay: Sequence[DataFile]) -> DataFrame:
        """Which tuples the overlay has a newer state of: `__rid` and `__vn1`."""
        return self.at_hand(overlay, ((RID, RID_TYPE), (self.layout.vn(1), VN_TYPE)))

    def newest(self, data: Sequence[DataFile], overlay: Sequence[DataFile]) -> DataFrame:
        """The tuples in `data` that `overlay` does not hide: each tuple once, in its newest stored state."""
        return self._beside(self.tuples(data), overlay, "left_anti") if overlay else self.tuples(data)

    def _beside(self, tuples: DataFrame, overlay: Sequence[DataFile], how: str) -> DataFrame:
        """Tuples joined to what hides them, `__later_rid`."""
        vn = self.layout.vn(1)
        later = self.hiders(overlay).select(F.col(RID).alias("__later_rid"), F.col(vn).alias("__later_vn"))
        hides = (F.col(LEVEL) == Level.BASE.value) | (F.col("__later_vn") > F.col(vn))
        later = small(later, sum(f.rows for f in overlay))
        return tuples.join(later, (F.col(RID) == F.col("__later_rid")) & hides, how)

    def latest(self, data: Sequence[DataFile], overlay: Sequence[DataFile]) -> DataFrame:
        """As `newest`, without void tuples; logically deleted ones are there."""
        return self.newest(data, overlay).where(F.col(self.layout.op(1)) != int(Operation.VOID))

    def asked(self, data: Sequence[DataFile], overlay: Sequence[DataFile], skipping: str = "TRUE") -> DataFrame:
        """As `latest`, for a user's conditions: none of them is asked of a hidden tuple (`versions.rewrite` says why).

        `skipping` is a condition of stored values that never fails; tuples that do not meet it are left out.
        """
        tuples = self.tuples(data).where(skipping)
        if overlay:
            not_hidden = F.col("__later_rid").isNull()
            values = {c: F.when(not_hidden, F.col(quoted(c))) for c in self.schema.names}
            columns = [values.get(c, F.col(quoted(c))).alias(c) for c in tuples.columns]
            tuples = self._beside(tuples, overlay, "left_outer").where(not_hidden).select(*columns)
        return tuples.where(F.col(self.layout.op(1)) != int(Operation.VOID))


def _is_small(few: pa.Table | None) -> bool:
    return few is None or few.nbytes <= MOST_KEPT


def delta_fields(struct: StructType) -> list[Mapping[str, object]]:
    """Spark's fields as a Delta schema has them; what Delta has no type for is declared as the integer stored."""
    return [{**field.jsonValue(), "type": _delta_type(field.jsonValue()["type"])} for field in struct.fields]


def _delta_type(spark_type: object) -> object:
    match spark_type:
        case str() if spark_type.startswith("interval"):
            return "integer" if "year" in spark_type or "month" in spark_type else "long"
        case str() if spark_type.startswith("time("):
            return "long"
        case str():
            return spark_type
        case {"type": "array", "elementType": element, **rest}:
            return {**rest, "type": "array", "elementType": _delta_type(element)}
        case {"type": "map", "keyType": key, "valueType": value, **rest}:
            return {**rest, "type": "map", "keyType": _delta_type(key), "valueType": _delta_type(value)}
        case {"type": "struct", "fields": fields}:
            return {"type": "struct", "fields": [{**f, "type": _delta_type(f["type"])} for f in fields]}
    return spark_type
