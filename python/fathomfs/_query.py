"""Queries of inventories with DuckDB, on the views of the command ``fathom query``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ._errors import InventoryError

if TYPE_CHECKING:
    from ._inventory import Inventory

#: The first version that can be kept from all files but some.
_OLDEST = (1, 2)
_PLAIN_VIEWS = ("dirs", "errors", "links", "users", "groups")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.parquet", re.ASCII)

#: The same views as in crates/cli/src/query/views.rs.
_FILES = r"""
CREATE VIEW files AS SELECT
    e.dir_id,
    CASE
        WHEN e.dir_id = 0 THEN e.name
        WHEN d.path IS NULL THEN NULL
        WHEN d.path_raw IS NULL AND e.name_raw IS NULL THEN d.path || CASE WHEN d.path LIKE '%/' THEN '' ELSE '/' END || e.name
        ELSE CASE WHEN d.path_raw IS NULL THEN replace(d.path, '\', '\\') ELSE d.path END
            || CASE WHEN d.path LIKE '%/' THEN '' ELSE '/' END
            || CASE WHEN e.name_raw IS NULL THEN replace(e.name, '\', '\\') ELSE e.name END
    END AS path,
    CASE
        WHEN e.dir_id = 0 THEN e.name_raw
        WHEN d.path IS NULL OR d.path_raw IS NULL AND e.name_raw IS NULL THEN NULL
        ELSE coalesce(d.path_raw, encode(d.path)) || encode(CASE WHEN d.path LIKE '%/' THEN '' ELSE '/' END)
            || coalesce(e.name_raw, encode(e.name))
    END AS path_raw,
    e.* EXCLUDE (dir_id)
FROM read_parquet({entries}) e LEFT JOIN read_parquet({dirs}) d USING (dir_id)
"""
_ENTRIES = """
CREATE VIEW entries AS FROM files UNION ALL BY NAME SELECT
    coalesce(parent_id, 0) AS dir_id, path, path_raw, name, name_raw, 'd' AS type,
    COLUMNS('^(dev|ino|mode|uid|gid|nlink|size|blocks|[amc]time(_ns)?|btime|attributes|project|xattrs|acl|ignored)$'),
    CASE WHEN mode IS NULL THEN errno END AS errno
FROM dirs
"""


def query(inventory: Inventory, sql: str) -> Any:
    """Returns the relation of a query."""
    try:
        import duckdb
    except ImportError as error:
        raise ImportError("queries of an inventory need the package duckdb: pip install duckdb") from error
    if tuple(int(part) for part in duckdb.__version__.split(".")[:2]) < _OLDEST:
        raise ImportError(f"queries of an inventory need duckdb 1.2 or newer, this is {duckdb.__version__}")
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ValueError("a query is one SELECT")
    connection = duckdb.connect()
    # Variables of the caller are no tables.
    connection.execute("SET python_enable_replacements = false")
    for statement in _setup(inventory):
        connection.execute(statement)
    return connection.sql(sql)


def _setup(inventory: Inventory) -> list[str]:
    """The statements that create the views, and then deny access to everything else."""
    tables = {table: _list(_paths(inventory, table)) for table in ("entries", *_PLAIN_VIEWS)}
    views = [f"CREATE VIEW {table} AS FROM read_parquet({tables[table]})" for table in _PLAIN_VIEWS]
    files = _FILES.replace("{entries}", tables["entries"]).replace("{dirs}", tables["dirs"])
    everything = [path for table in tables for path in _paths(inventory, table)]
    limits = [
        "SET temp_directory = ''",
        f"SET allowed_paths = {_list(everything)}",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ]
    return [*views, files, _ENTRIES, *limits]


def _paths(inventory: Inventory, table: str) -> list[str]:
    paths = [os.path.abspath(path) for path in inventory.files(table)]
    if not paths:
        raise InventoryError(0, f"the manifest of {inventory.path!r} lists no file of the table {table!r}")
    for path in paths:
        # The manifest is untrusted, and DuckDB expands patterns.
        if not _FILE_NAME.fullmatch(os.path.basename(path)):
            raise InventoryError(0, f"the manifest of {inventory.path!r} lists {path!r}, which is no file of an inventory")
        if any(character in path for character in "*?["):
            raise InventoryError(0, f"DuckDB takes {path!r} for a pattern: rename the directory of the inventory")
    return paths


def _list(paths: list[str]) -> str:
    return "[" + ", ".join(map(_literal, paths)) + "]"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
