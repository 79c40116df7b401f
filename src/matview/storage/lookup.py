"""Stored tuples by the values of some columns, read on the driver: few values meet few row groups, if any.

A row group is opened only if its bounds, and then the columns themselves, have some of the values. None is the answer
where that would be to read much, or where the driver has no such values: then Spark shall look.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from matview.local.batch import one_array
from matview.local.reach import MOST_CHANGED
from matview.remembered import cached_property
from matview.storage.few import arrow_schema, arrow_type, most, read_few, shaped
from matview.storage.files import translated_storage
from matview.storage.groups import Bounds, Groups
from matview.storage.members import members
from matview.storage.snapshot import DataFile, Level
from matview.storage.table import VersionedTable
from matview.versions.layout import RID
from matview.versions.predicates import Kind, Predicate, kind_of
from matview.versions.tuples import Operation

Wanted = Mapping[str, pa.Array]
"""Values by column; of no column, everything is wanted."""
MOST_LOOKED_THROUGH = 120_000_000
"""Values, in the columns that are looked up by and in the row groups that have those wanted: a second or two."""
_EXACT: dict[Kind | None, type] = {Kind.INTEGRAL: int, Kind.STRING: str, Kind.DATE: date}
"""Kinds of columns that tuples are looked up by, and the constants that they are compared with as they are."""
AT_ONCE = 2
"""So many files are looked through at a time."""
MOST_HIDING = MOST_CHANGED
"""Tuples in the overlay."""
WORTH_A_THREAD = 200_000
"""Rows of files that are looked through: fewer are sooner read one after the other."""
MOST_MERGED = 32 * 1024 * 1024
"""Bytes of files whose tuples are put together on the driver."""


def looked_up(
    table: VersionedTable,
    files: Sequence[DataFile],
    columns: Sequence[str],
    wanted: Wanted,
    most: int,
    through: int = MOST_LOOKED_THROUGH,
) -> pa.Table | None:
    """The newest state of each tuple that has one of the values wanted in every column named; void ones are left out.

    The columns come in stored order, with `__rid`, `__vn1` and `__op1` among them. If more than `most` states have the
    values, or more than `through` values would be read, that is much.
    """
    layout = table.layout
    asked = {*columns, *wanted, RID, layout.vn(1), layout.op(1)}
    schema = arrow_schema(table.engine.struct([c for c in layout.columns if c[0] in asked]))
    overlay = [f for f in files if f.level is Level.OVERLAY]
    if schema is None or sum(f.rows for f in overlay) > MOST_HIDING:
        return None
    if not all(map(len, wanted.values())):
        return schema.empty_table()
    look = _Look(table, schema, wanted, most, through)
    base, later = look.among(f for f in files if f.level is Level.BASE), look.among(overlay)
    if base is None or later is None:
        return None
    found = _newest(table, base, later, overlay) if overlay else base
    return found.filter(pc.not_equal(found[layout.op(1)], int(Operation.VOID)))


def wanted_of(predicates: Iterable[Predicate], table: VersionedTable) -> dict[str, pa.Array]:
    """The values that columns must have one of, where tuples can be looked up by them."""
    wanted: dict[str, pa.Array] = {}
    for predicate in predicates:
        values = [constant.value for constant in predicate.constants]
        exact = _EXACT.get(kind_of(table.layout.type_of(predicate.column)))
        if predicate.comparison != "=" or any(type(value) is not exact for value in values):
            continue
        kind = arrow_type(table.engine.struct(table.layout.columns)[predicate.column].dataType)
        if kind is None:
            continue
        try:
            wanted[predicate.column] = pa.array(values, kind)
        except (pa.ArrowException, OverflowError):
            continue  # no such value can be stored
    return wanted


def newest_of(table: VersionedTable, overlay: Sequence[DataFile]) -> pa.Table | None:
    """The newest state of each tuple of the overlay, void ones too; None if they are much, or do not travel."""
    states = whole_of(table, overlay)
    if states is None or not overlay:
        return states
    return _newest(table, states.schema.empty_table(), states, overlay)


def whole_of(table: VersionedTable, files: Sequence[DataFile]) -> pa.Table | None:
    """The states that files hold, to be written again; None if they are much, or do not travel."""
    if sum(f.size for f in files) > MOST_MERGED:
        return None
    return read_few(table.read, files, table.engine.struct(table.layout.columns), most())


def _newest(table: VersionedTable, base: pa.Table, later: pa.Table, overlay: Sequence[DataFile]) -> pa.Table:
    """Whatever the overlay has a later state of is hidden, in the base and in the overlay itself."""
    vn = table.layout.vn(1)
    states = pa.concat_tables(table.states(file) for file in overlay)
    shown = base.filter(pc.invert(pc.is_in(base[RID], states[RID].combine_chunks())))
    if not later.num_rows:
        return shown
    concerned = states.filter(pc.is_in(states[RID], later[RID].combine_chunks()))
    greatest = concerned.group_by(RID, use_threads=False).aggregate([(vn, "max")])
    newest = greatest[f"{vn}_max"].take(pc.index_in(later[RID], greatest[RID].combine_chunks()))
    return pa.concat_tables([shown, later.filter(pc.equal(later[vn], newest))])


@dataclass(frozen=True)
class _Candidate:
    """A file, and those of its row groups that may have the values."""

    file: DataFile
    groups: Groups
    wanted: Sequence[int]


class _Look:
    """A look through files for values of some columns, those first that tell most; what it reads is counted."""

    def __init__(self, table: VersionedTable, schema: pa.Schema, wanted: Wanted, most: int, through: int) -> None:
        self._table = table
        self._schema = schema
        self._nothing = schema.empty_table()
        once = {name: values.unique() for name, values in wanted.items()}
        self._wanted = dict(sorted(once.items(), key=lambda item: -len(item[1])))
        self._sorted = {name: known for name, values in once.items() if (known := _sorted(values)) is not None}
        self._counting = threading.Lock()
        self._left = through
        self._found_left = most

    def among(self, files: Iterable[DataFile]) -> pa.Table | None:
        """The stored states with the values; None if that is to read too much."""
        small, places = [self._nothing], []
        for file in files:
            if (whole := self._table.whole(file)) is not None:
                small.append(whole.select(self._schema.names))
            elif (place := self._candidate(file)).wanted:
                places.append(place)
        if self._expected(places) > self._left:
            return None
        if len(places) > 1 and sum(place.file.rows for place in places) > WORTH_A_THREAD:
            with ThreadPoolExecutor(AT_ONCE, "matview-lookup") as pool:
                found = list(pool.map(self._of_file, places))
        else:
            found = [self._of_file(place) for place in places]
        parts = [part for part in (self._of_small(small), *found) if part is not None]
        return pa.concat_tables(parts) if len(parts) == len(found) + 1 else None

    def _of_small(self, tables: Sequence[pa.Table]) -> pa.Table | None:
        """Of small files, all at once: most of what one of them costs are the calls."""
        found = pa.concat_tables(tables)
        if not self._may_read(found.num_rows * len(self._wanted)):
            return None
        for name, values in self._wanted.items():
            found = found.filter(pc.is_in(found[name], values))
        return found if self._may_find(found.num_rows) else None

    def _candidate(self, file: DataFile) -> _Candidate:
        groups = self._table.groups(file.path)
        columns = [name for name in self._sorted if name in groups.leaves]
        may_have = (g for g in range(len(groups)) if all(self._is_within(groups.bounds(g, c), c) for c in columns))
        return _Candidate(file, groups, list(may_have))

    def _is_within(self, bounds: Bounds, name: str) -> bool:
        if bounds is None:
            return True
        if not bounds:
            return False  # nothing but nulls
        least, greatest = bounds
        values = self._sorted[name]
        return bisect_left(values, least) < bisect_right(values, greatest)

    def _expected(self, places: Sequence[_Candidate]) -> float:
        """How many values there are to read, if each of those wanted is in one row group."""
        groups = [(place.groups, group) for place in places for group in place.wanted]
        if not groups:
            return 0.0
        hit = min([len(groups), *map(len, self._wanted.values())])
        looked_at = sum(there.weight(group, self._wanted) for there, group in groups)
        return looked_at + sum(there.weight(group, self._schema.names) for there, group in groups) * hit / len(groups)

    def _of_file(self, place: _Candidate) -> pa.Table | None:
        found = [self._nothing]
        with _Opened(self._table, place) as file:
            for group in place.wanted:
                part = self._of_group(file, group)
                if part is None:
                    return None
                found.append(part)
        return pa.concat_tables(found)

    def _of_group(self, file: _Opened, group: int) -> pa.Table | None:
        groups = file.place.groups
        rows = groups.rows[group]
        if not self._may_read(groups.weight(group, self._wanted)):
            return None
        hits = self._hits(file, group, rows)
        if hits is not None and not len(hits):
            return self._nothing
        found = rows if hits is None else len(hits)
        known = {name: value[0] for name in self._schema.names if (value := groups.constant(group, name)) is not None}
        read = pa.schema([field for field in self._schema if field.name not in known])
        if not (self._may_find(found) and self._may_read(groups.weight(group, read.names))):
            return None
        whole = shaped(file.columns(group, read.names), read, rows)
        taken = whole if hits is None else whole.take(hits)
        columns = [
            pa.repeat(pa.scalar(known[field.name], field.type), found) if field.name in known else taken[field.name]
            for field in self._schema
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _may_read(self, values: int) -> bool:
        with self._counting:
            self._left -= values
            return self._left >= 0

    def _may_find(self, rows: int) -> bool:
        with self._counting:
            self._found_left -= rows
            return self._found_left >= 0

    def _hits(self, file: _Opened, group: int, rows: int) -> pa.Array | None:
        """Where the rows are that have one of the values in every column; None: everywhere."""
        places, groups = None, file.place.groups
        for name in sorted(self._wanted, key=lambda name: not groups.is_known_to_rise(group, name)):
            schema = pa.schema([self._schema.field(name)])
            column = one_array(shaped(file.columns(group, [name]), schema, rows)[name])
            known, bounds = self._sorted.get(name), groups.bounds(group, name) if name in groups.leaves else None
            rises = groups.rises(group, name, column)
            if places is None:
                places = members(column, self._wanted[name], known, bounds, rises=rises)
            else:
                places = places.take(members(column.take(places), self._wanted[name], known, bounds))
            if not len(places):
                break
        return places


class _Opened:
    """A file, opened when something of it is read that is not known already."""

    def __init__(self, table: VersionedTable, place: _Candidate) -> None:
        self.place = place
        self._table = table
        self._opened = ExitStack()

    @cached_property
    def _file(self) -> pq.ParquetFile:
        stream = self._opened.enter_context(self._table.files.input(self.place.file.path))
        return pq.ParquetFile(stream, metadata=self.place.groups.footer)

    def columns(self, group: int, names: Sequence[str]) -> pa.Table:
        """Those of the named columns that the file has."""
        path = self.place.file.path
        there = [name for name in names if name in self.place.groups.names]
        with translated_storage(f"reading {path}"):
            return self._table.pool.columns(
                (self._table.files.uri(path), group), there, lambda missing: self._file.read_row_group(group, missing)
            )

    def __enter__(self) -> _Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _sorted(values: pa.Array) -> list[Any] | None:
    """None if a null is among them, which is in no bounds, or one that Python has not."""
    if values.null_count:
        return None
    try:
        return sorted(values.to_pylist())
    except (ValueError, OverflowError):
        return None
