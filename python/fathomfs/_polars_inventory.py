"""Inventories as Polars LazyFrames: only the columns and row groups that a query needs are read."""

from __future__ import annotations

import os
from collections.abc import Iterator

import polars as pl
from polars.io.plugins import register_io_source

from . import _fathomfs
from ._inventory import Inventory
from ._options import StrOrBytesPath
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
    from .polars import SCHEMA, limited, pushed_down

    if not isinstance(inventory, Inventory):
        inventory = Inventory(_fathomfs.open_inventory(os.fsencode(inventory)))
    opened = inventory

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        columns = [*SCHEMA] if columns is None else columns
        read, wanted, residual = pushed_down(columns, predicate, n_rows, where or Where())
        with opened.entries(columns=read, where=wanted, below=below) as stream:
            for frame in limited(stream, n_rows):
                yield (frame if residual is None else frame.filter(residual)).select(columns)

    return register_io_source(source, schema=SCHEMA)
