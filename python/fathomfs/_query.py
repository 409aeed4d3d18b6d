"""Queries of inventories with DuckDB, on the views of the command ``fathom query``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._errors import InventoryError

if TYPE_CHECKING:
    from ._inventory import Inventory

#: The first version that can be kept from all files but some.
_OLDEST = (1, 2)


def query(inventory: Inventory, sql: str) -> Any:
    """Returns the relation of a query."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError("DuckDB is needed: pip install duckdb") from error
    if tuple(int(part) for part in duckdb.__version__.split(".")[:2]) < _OLDEST:
        raise ImportError(f"DuckDB 1.2 or newer is needed, this is {duckdb.__version__}")
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("expected a single SELECT")
    connection = duckdb.connect()
    # Variables of the caller are no tables.
    connection.execute("SET python_enable_replacements = false")
    for statement in _setup(inventory):
        connection.execute(statement)
    return connection.sql(sql)


def _setup(inventory: Inventory) -> list[str]:
    """The statements that create the views, and then deny access to everything else."""
    directory = os.path.join(inventory._place, "")
    if any(character in directory for character in "*?["):
        raise InventoryError(0, f"DuckDB reads {directory!r} as a pattern: rename the directory of the inventory")
    if any("\udc80" <= character <= "\udcff" for character in directory):
        raise InventoryError(0, f"DuckDB cannot open {directory!r}: its path is not UTF-8")
    return inventory._inner.views(directory)
