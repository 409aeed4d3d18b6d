"""Inventories as Polars LazyFrames: only the columns and row groups that a query needs are read."""

from __future__ import annotations

import os
from collections.abc import Iterator

import polars as pl
from polars.io.plugins import register_io_source

from . import _fathomfs
from ._fathomfs import EntryStream
from ._inventory import Inventory
from ._walk import StrOrBytesPath
from ._where import Where


def scan_inventory(
    inventory: Inventory | StrOrBytesPath, *, where: Where | None = None, below: StrOrBytesPath | None = None
) -> pl.LazyFrame:
    """A LazyFrame of the entries of an inventory, in the order of the scan. Each ``collect`` reads it.

    Columns that the query does not use are not read. Conditions on the beginning of ``path``, on ``type``, ``size``,
    ``mtime``, ``atime`` and ``ctime`` select row groups and rows, other ones are decided by Polars on each batch.
    ``head`` ends the reading early.

    >>> import fathomfs as ff, polars as pl, tempfile
    >>> from fathomfs.polars import scan_inventory
    >>> with tempfile.TemporaryDirectory() as temp:
    ...     doc = scan_inventory(ff.scan("/usr/share/doc", temp + "/doc.inv"))
    ...     doc.filter(pl.col("size") > 10_000, pl.col("type") == "regular").select("path").collect().columns
    ['path']
    """
    # The module with the translation of predicates imports this one.
    from .polars import SCHEMA, where_of

    if not isinstance(inventory, Inventory):
        inventory = Inventory(_fathomfs.open_inventory(os.fsencode(inventory)))
    opened = inventory

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = where or Where()
        residual = predicate
        # Polars counts n_rows before the predicate, so no row may then be left out here.
        if predicate is not None and n_rows is None:
            wanted, is_exact = where_of(predicate, wanted)
            residual = None if is_exact else predicate
        columns = [*SCHEMA] if columns is None else columns
        needed = {*columns, *(residual.meta.root_names() if residual is not None else ())}
        read = [name for name in SCHEMA if name in needed] or ["type"]
        with opened.entries(columns=read, where=wanted, below=below) as stream:
            for frame in _limited(stream, n_rows):
                yield (frame if residual is None else frame.filter(residual)).select(columns)

    return register_io_source(source, schema=SCHEMA)


def _limited(stream: EntryStream, n_rows: int | None) -> Iterator[pl.DataFrame]:
    left = n_rows
    for batch in stream:
        frame = pl.DataFrame(batch)
        yield frame if left is None else frame.head(left)
        if left is not None:
            left -= len(frame)
            if left <= 0:
                return
