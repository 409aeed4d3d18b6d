"""Inventories: recorded trees, and the answers that they give without a walk."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from . import _fathomfs, _options
from ._fathomfs import EntryStream
from ._options import StrOrBytesPath
from ._where import Where, conditions_of


class Inventory:
    """A recorded tree: Parquet files, and answers without a walk."""

    def __init__(self, inner: _fathomfs.Inventory) -> None:
        self._inner = inner
        # The working directory may change meanwhile.
        self._place = os.path.abspath(inner.path)

    def __repr__(self) -> str:
        return f"<Inventory {self.path!r}: {len(self):,} entries>"

    def __eq__(self, other: object) -> bool:
        """Whether both are the same inventory, as far as their manifests tell."""
        if not isinstance(other, Inventory):
            return NotImplemented
        return self._place == other._place and self.manifest == other.manifest

    def __hash__(self) -> int:
        return hash(self._place)

    def __reduce__(self) -> tuple[object, ...]:
        return _opened, (self._place,)

    def __len__(self) -> int:
        return self._inner.entry_count

    @property
    def path(self) -> str:
        """The directory of the inventory."""
        return self._inner.path

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return self._inner.complete

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest: roots, options, completeness, files."""
        manifest: dict[str, Any] = json.loads(self._inner.manifest_json())
        return manifest

    def files(self, table: str = "entries") -> Sequence[str]:
        """The Parquet files of a table: ``entries``, ``dirs``, ``errors``, ``links``, ``users`` or ``groups``."""
        return [os.fspath(path) for path in self._inner.files(table)]

    def top(
        self, by: str = "dir", count: int = 20, below: StrOrBytesPath | None = None
    ) -> Sequence[dict[str, Any]]:
        """What is large, by ``dir``, ``file``, ``user``, ``group``, ``ext``, ``age``, ``size``, ``type`` or ``depth``."""
        return self._inner.top(by, count, _options.encoded_or_none(below=below))

    def du(self, below: StrOrBytesPath | None = None) -> dict[str, int]:
        """The usage at and below a path of the inventory; of its root if there is only one."""
        if below is None:
            roots = self.manifest["roots"]
            if len(roots) != 1:
                raise ValueError("the inventory has several roots: choose one")
            root: str | bytes = bytes.fromhex(roots[0].get("path_hex") or "") or roots[0]["path"]
            below = root
        allocated, apparent, entries = self._inner.du(_options.encoded(below=below))
        return {"bytes": allocated, "apparent": apparent, "entries": entries}

    def verify(self) -> None:
        """Compares all files with the hashes in the manifest."""
        self._inner.verify()

    def entries(
        self,
        *,
        columns: str | Sequence[str] = ("path", "type", "size", "mtime"),
        where: Where | None = None,
        below: StrOrBytesPath | None = None,
    ) -> EntryStream:
        """Reads the entries, directories and roots among them, in the order of the scan.

        The result is as that of :func:`fathomfs.list`, and so are the columns. Values of entries whose metadata could
        not be read are null. ``below`` is a directory, as the inventory records it or relative to a root: only it and
        what is below it are read. Columns that neither ``columns`` nor ``where`` needs are not read, and where no
        entry of a row group can meet ``where``, only the columns that it compares are. Memory grows with the number
        of directories, not with that of entries.

        >>> import fathomfs as ff, tempfile
        >>> with tempfile.TemporaryDirectory() as temp:
        ...     inventory = ff.scan("/usr/share/doc", temp + "/doc.inv")
        ...     with inventory.entries(columns=["path"], where=ff.Where(types={"directory"})) as entries:
        ...         next(entries).column("path")[0]
        '/usr/share/doc'
        """
        conditions = conditions_of(where)
        return self._inner.entries(_options.names(columns), conditions, _options.encoded_or_none(below=below))

    def dirs(self, *, columns: str | Sequence[str] | None = None, below: StrOrBytesPath | None = None) -> EntryStream:
        """Reads the directories with the sums over their entries (``n_*``) and all below them (``t_*``).

        The columns are those of the table ``dirs`` in docs/inventory.md, all of them by default. A directory follows
        the directories in it. ``path`` is null where it is longer than the kernel accepts.
        """
        return self._inner.dirs(None if columns is None else _options.names(columns), _options.encoded_or_none(below=below))

    def errors(self, *, columns: str | Sequence[str] | None = None, below: StrOrBytesPath | None = None) -> EntryStream:
        """Reads the operations that failed in the scan: the columns of the table ``errors`` in docs/inventory.md."""
        return self._inner.errors(None if columns is None else _options.names(columns), _options.encoded_or_none(below=below))

    def diff(
        self, new: Inventory, *, columns: str | Sequence[str] | None = None, below: StrOrBytesPath | None = None
    ) -> EntryStream:
        """Reads the changes from this inventory to a later one, by path, as ``fathom diff`` finds them.

        ``change`` is ``created``, ``removed``, ``modified`` or ``renamed``; ``fields`` has the names of the fields that
        differ, with commas. Columns that begin with ``old_`` and ``new_`` have the values before and after.

        >>> import fathomfs as ff, os, tempfile
        >>> with tempfile.TemporaryDirectory() as temp:
        ...     os.mkdir(temp + "/tree")
        ...     old = ff.scan(temp + "/tree", temp + "/old.inv")
        ...     os.mkdir(temp + "/tree/made")
        ...     new = ff.scan(temp + "/tree", temp + "/new.inv")
        ...     [batch.column("change") for batch in old.diff(new)]
        [['created']]
        """
        return self._inner.diff(_inner(new), None if columns is None else _options.names(columns), _options.encoded_or_none(below=below))

    def growth(
        self, new: Inventory, *, count: int = 20, below: StrOrBytesPath | None = None
    ) -> Sequence[dict[str, Any]]:
        """The directories whose usage, with everything below, differs most in a later inventory.

        ``bytes``, ``apparent`` and ``entries`` are negative where a directory has shrunk.
        """
        return self._inner.growth(_inner(new), count, _options.encoded_or_none(below=below))

    def query(self, sql: str) -> Any:
        """Runs a SELECT of DuckDB on the views ``files``, ``dirs``, ``entries``, ``errors``, ``links``, ``users`` and ``groups``.

        docs/queries.md describes the views. The result is a relation of DuckDB: ``.fetchall()``, ``.pl()``, ``.df()`` and
        ``.arrow()`` convert it. It needs the package ``duckdb``. The query can read only the files of the inventory,
        cannot write, and cannot change DuckDB's settings.

        >>> import fathomfs as ff, tempfile
        >>> with tempfile.TemporaryDirectory() as temp:
        ...     inventory = ff.scan("/usr/share/doc", temp + "/doc.inv")
        ...     inventory.query("SELECT count(*) > 0 FROM entries").fetchall()
        [(True,)]
        """
        from ._query import query

        return query(self, sql)


def _opened(path: str) -> Inventory:
    """Opens a pickled inventory."""
    return Inventory(_fathomfs.open_inventory(os.fsencode(path)))


def _inner(new: Inventory) -> _fathomfs.Inventory:
    if not isinstance(new, Inventory):
        raise TypeError(f"new: expected fathomfs.Inventory, not {type(new).__name__}")
    return new._inner
