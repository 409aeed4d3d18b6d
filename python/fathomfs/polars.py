"""Trees as Polars LazyFrames: the walk reads only the columns, and finds only the entries, that a query needs.

>>> import polars as pl
>>> from fathomfs.polars import scan_tree
>>> tree = scan_tree("/usr/share/doc")
>>> large = tree.filter(pl.col("size") > 10_000, pl.col("type") == "regular").select("path", "size")
>>> large.collect().columns
['path', 'size']
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from . import _fathomfs, _options
from ._errors import FathomError
from ._polars_inventory import scan_inventory as scan_inventory
from ._options import StrOrBytesPath
from ._where import TYPES, Where

_TIME = pl.Datetime("us", "UTC")

#: The columns of a tree and their types in Polars.
SCHEMA: dict[str, pl.DataType] = {
    "path": pl.String(),
    "path_raw": pl.Binary(),
    "name": pl.String(),
    "name_raw": pl.Binary(),
    "type": pl.String(),
    "depth": pl.UInt32(),
    "size": pl.Int64(),
    "allocated": pl.UInt64(),
    "mtime": _TIME,
    "atime": _TIME,
    "ctime": _TIME,
    "btime": _TIME,
    "mode": pl.UInt32(),
    "nlink": pl.UInt64(),
    "uid": pl.UInt32(),
    "gid": pl.UInt32(),
    "ino": pl.UInt64(),
    "dev": pl.UInt64(),
    "st_mtime": pl.Float64(),
    "st_ctime": pl.Float64(),
}

#: A comparison with the sides exchanged.
_EXCHANGED = {"Gt": "Lt", "Lt": "Gt", "GtEq": "LtEq", "LtEq": "GtEq", "Eq": "Eq", "NotEq": "NotEq"}
_TIMES = ("mtime", "atime", "ctime")


class IncompleteWarning(UserWarning):
    """A part of a tree could not be read, so rows are missing."""


def scan_tree(
    path: StrOrBytesPath,
    *,
    where: Where | None = None,
    exclude: str | bytes | Iterable[str | bytes] = (),
    one_file_system: bool = False,
    max_depth: int | None = None,
    threads: int | None = None,
    io: str = "auto",
    strict: bool = False,
) -> pl.LazyFrame:
    """A LazyFrame of the entries below ``path``. Each ``collect`` walks the tree.

    The walk reads the columns that the query uses: ``path``, ``name``, ``type`` and ``depth`` need no call for each
    entry. Conditions on the beginning of ``path``, on ``type``, ``size``, ``mtime``, ``atime`` and ``ctime`` are decided
    in the walk, other ones by Polars on each batch. ``head`` ends the walk early. The order of the rows is that in
    which the walk finds them. Unless everything could be read, there is an ``IncompleteWarning``; with ``strict`` the
    first problem is raised.
    """
    options = (_options.patterns(exclude), one_file_system, max_depth, threads, io)
    root = os.fsencode(path)

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        columns = [*SCHEMA] if columns is None else columns
        read, wanted, residual = pushed_down(columns, predicate, n_rows, where or Where())
        stream = _fathomfs.list(root, read, wanted.conditions(), *options)
        with stream:
            found = 0
            for frame in limited(stream, n_rows):
                found += len(frame)
                yield (frame if residual is None else frame.filter(residual)).select(columns)
        if n_rows is None or found < n_rows:
            _report(stream, strict)

    return register_io_source(source, schema=SCHEMA)


def lazy(stream: _fathomfs.EntryStream) -> pl.LazyFrame:
    """A LazyFrame of the rest of a list, which can be collected once."""
    schema = {name: SCHEMA[name] for name in stream.columns}
    taken = False

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        nonlocal taken
        if taken:
            raise ValueError("the entries were already taken")
        taken = True
        with stream:
            for frame in limited(stream, n_rows):
                frame = frame if predicate is None else frame.filter(predicate)
                yield frame if columns is None else frame.select(columns)

    return register_io_source(source, schema=schema)


def where_of(predicate: pl.Expr, where: Where | None = None) -> tuple[Where, bool]:
    """The conditions that a predicate on the columns ``path``, ``type``, ``size`` and times implies, added to ``where``.

    Also returns whether they are exact. If not, the predicate must be applied to the rows that they leave.

    >>> import polars as pl
    >>> where_of(pl.col("size").is_between(1, 9) & (pl.col("type") != "directory"))[0].size_max
    9
    >>> where, is_exact = where_of((pl.col("size") > 1) & (pl.col("uid") == 0))
    >>> where.size_min, is_exact
    (2, False)
    """
    where = where or Where()
    try:
        node = json.loads(predicate.meta.serialize(format="json"))
    except (ValueError, pl.exceptions.PolarsError):
        return where, False
    return _added(where, node)


def _added(where: Where, node: dict[str, Any]) -> tuple[Where, bool]:
    """Adds the conditions of a node of a serialized expression. A node of any unknown form adds none."""
    match node:
        case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
            where, is_left_exact = _added(where, left)
            where, is_right_exact = _added(where, right)
            return where, is_left_exact and is_right_exact
        case {"BinaryExpr": {"left": {"Column": name}, "op": op, "right": right}}:
            return _compared(where, name, op, _literal(right))
        case {"BinaryExpr": {"left": left, "op": op, "right": {"Column": name}}} if op in _EXCHANGED:
            return _compared(where, name, _EXCHANGED[op], _literal(left))
        case {"Function": {"input": [{"Column": "path"}, prefix], "function": {"StringExpr": "StartsWith"}}}:
            return _prefixed(where, _literal(prefix))
        case {"Function": {"input": [{"Column": "type"}, types], "function": {"Boolean": {"IsIn": _}}}}:
            return _typed(where, _literal(types))
        case {"Function": {"input": [{"Column": name}, low, high], "function": {"Boolean": {"IsBetween": between}}}}:
            closed = between.get("closed")
            lower, upper = closed in ("Both", "Left"), closed in ("Both", "Right")
            where, is_low_exact = _compared(where, name, "GtEq" if lower else "Gt", _literal(low))
            where, is_high_exact = _compared(where, name, "LtEq" if upper else "Lt", _literal(high))
            return where, is_low_exact and is_high_exact
    return where, False


def _literal(node: dict[str, Any]) -> Any:
    """The value of a literal; ``None`` for other nodes, and for times that are finer than microseconds."""
    if not isinstance(node, dict) or "Literal" not in node:
        return None
    try:
        values = pl.select(pl.Expr.deserialize(json.dumps(node).encode(), format="json")).to_series()
    except pl.exceptions.PolarsError:
        return None
    if len(values) != 1 or values.dtype == pl.Datetime("ns"):
        return None
    value = values[0]
    return value.to_list() if isinstance(value, pl.Series) else value


def _compared(where: Where, name: str, op: str, value: Any) -> tuple[Where, bool]:
    if name == "type" and isinstance(value, str):
        types = {"Eq": {value}, "NotEq": set(TYPES) - {value}}.get(op)
        return (where, False) if types is None else _typed(where, types)
    if name == "path" and op == "Eq":
        return _prefixed(where, value)[0], False
    step: Any
    if name == "size" and isinstance(value, int) and not isinstance(value, bool):
        step = 1
    elif name in _TIMES and isinstance(value, datetime) and value.tzinfo is not None:
        step = timedelta(microseconds=1)
    else:
        return where, False
    try:
        match op:
            case "Gt":
                return _bounded(where, name, value + step, None), True
            case "GtEq":
                return _bounded(where, name, value, None), True
            case "Lt":
                return _bounded(where, name, None, value - step), True
            case "LtEq":
                return _bounded(where, name, None, value), True
            case "Eq":
                return _bounded(where, name, value, value), True
    except OverflowError:
        # A time beyond the last one that Python can represent.
        pass
    return where, False


def _bounded(where: Where, name: str, low: Any, high: Any) -> Where:
    """Narrows the range of a column."""
    ranges = {column: (old_low, old_high) for column, old_low, old_high in where.conditions()[2]}
    old_low, old_high = ranges.get(name, (None, None))
    (_, new_low, new_high), = Where(**{f"{name}_min": low, f"{name}_max": high}).conditions()[2]
    changes = {}
    if new_low is not None and (old_low is None or new_low > old_low):
        changes[f"{name}_min"] = low
    if new_high is not None and (old_high is None or new_high < old_high):
        changes[f"{name}_max"] = high
    return replace(where, **changes)


def _typed(where: Where, types: Any) -> tuple[Where, bool]:
    if not isinstance(types, Iterable) or isinstance(types, str):
        return where, False
    # Other values are no types, so no row has them.
    known = frozenset(TYPES).intersection(types)
    return replace(where, types=known if where.types is None else known.intersection(where.types)), True


def _prefixed(where: Where, text: Any) -> tuple[Where, bool]:
    if not isinstance(text, str):
        return where, False
    # U+FFFD stands for any bytes that are not UTF-8.
    known = text.split("\N{REPLACEMENT CHARACTER}")[0]
    old, new = os.fsencode(where.path_prefix or b""), known.encode()
    if new.startswith(old):
        return replace(where, path_prefix=new), known == text
    # No path begins with both, unless the new prefix is the shorter one.
    return where, old.startswith(new) and known == text


def pushed_down(
    columns: list[str], predicate: pl.Expr | None, n_rows: int | None, where: Where
) -> tuple[list[str], Where, pl.Expr | None]:
    """The columns to read, the conditions of the reader, and the predicate that is left for Polars."""
    residual = predicate
    # Polars counts n_rows before the predicate, so the reader must then not leave out any row.
    if predicate is not None and n_rows is None:
        where, is_exact = where_of(predicate, where)
        residual = None if is_exact else predicate
    needed = {*columns, *(residual.meta.root_names() if residual is not None else ())}
    return [name for name in SCHEMA if name in needed] or ["type"], where, residual


def limited(stream: _fathomfs.EntryStream, n_rows: int | None) -> Iterator[pl.DataFrame]:
    """The batches of a stream, up to a number of rows. With the last of these rows the walk has ended: polars may keep
    an iterator for a while that it takes nothing more from."""
    left = n_rows
    for batch in stream:
        frame = pl.DataFrame(batch)
        if left is not None and len(frame) >= left:
            stream.close()
            yield frame.head(left)
            return
        yield frame
        left = None if left is None else left - len(frame)


def _report(stream: _fathomfs.EntryStream, strict: bool) -> None:
    if not stream.error_count:
        return
    problem = stream.errors[0]
    error = FathomError(problem.errno, os.strerror(problem.errno), problem.path_raw, problem.operation)
    if strict:
        raise error
    message = f"{error}; {stream.error_count} problems in all, rows are missing"
    warnings.warn(message, IncompleteWarning, stacklevel=2)
