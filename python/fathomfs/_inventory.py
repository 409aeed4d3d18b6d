"""Inventories: recorded trees, and the answers that they give without a walk."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from . import _fathomfs
from ._walk import StrOrBytesPath


class Inventory:
    """A recorded tree: Parquet files, and answers without a walk."""

    def __init__(self, inner: _fathomfs.Inventory) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"<Inventory {self.path!r}: {len(self):,} entries>"

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
        return self._inner.top(by, count, None if below is None else os.fsencode(below))

    def du(self, below: StrOrBytesPath | None = None) -> dict[str, int]:
        """The usage at and below a path of the inventory; of its root if there is only one."""
        if below is None:
            roots = self.manifest["roots"]
            if len(roots) != 1:
                raise ValueError("the inventory has several roots: name one of them")
            below = bytes.fromhex(roots[0].get("path_hex") or "") or roots[0]["path"]
        allocated, apparent, entries = self._inner.du(os.fsencode(below))
        return {"bytes": allocated, "apparent": apparent, "entries": entries}

    def verify(self) -> None:
        """Compares all files with the hashes in the manifest."""
        self._inner.verify()
