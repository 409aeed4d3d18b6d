"""A read-only filesystem of fsspec over an inventory.

>>> import fathomfs as ff, tempfile
>>> from fathomfs.fsspec import InventoryFileSystem
>>> with tempfile.TemporaryDirectory() as temp:
...     fs = InventoryFileSystem(ff.scan("/usr/share/doc", temp + "/doc.inv").path)
...     fs.isdir("/usr/share/doc"), fs.du("/usr/share/doc") > 0
(True, True)
"""

from __future__ import annotations

# fsspec has no annotations: what pyright derives from its code is not what it returns.
# pyright: reportIncompatibleMethodOverride=false
import os
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from fsspec.spec import AbstractFileSystem  # type: ignore[import-untyped,unused-ignore]

from . import _fathomfs
from ._inventory import Inventory
from ._where import Where

Info = dict[str, Any]

_COLUMNS = ["path_raw", "type", "size", "st_ctime", "mode", "uid", "gid", "st_mtime", "ino", "nlink"]
_KEYS = ["name", "type", "size", "created", "mode", "uid", "gid", "mtime", "ino", "nlink"]
_KINDS = {"directory": "directory", "regular": "file"}


class InventoryFileSystem(AbstractFileSystem):  # type: ignore[misc,unused-ignore]
    """The tree that an inventory has, under the paths that the scan recorded, as it was at the scan.

    ``ls``, ``info``, ``find``, ``du``, ``glob``, ``walk``, ``exists``, ``isdir`` and ``isfile`` read the inventory and
    nothing else. Links are not followed: they have the type ``other`` and ``islink``, and ``du`` counts the length of
    their targets. Directories above the roots of the scan do not exist. ``open`` reads the file at the recorded path if it
    still has the recorded type, size and mtime, and raises ``FileNotFoundError`` or ``OSError`` otherwise: an inventory
    has no contents.
    """

    protocol = "fathom-inventory"
    root_marker = ""
    cachable = False

    def __init__(self, inventory: str | bytes | os.PathLike[str] | Inventory, **options: Any) -> None:
        super().__init__(**options)
        if not isinstance(inventory, Inventory):
            inventory = Inventory(_fathomfs.open_inventory(os.fsencode(inventory)))
        self.inventory = inventory

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, (list, tuple)):
            return [cls._strip_protocol(one) for one in path]
        text = os.fsdecode(path).removeprefix(f"{cls.protocol}://")
        return text.rstrip("/") or text[:1]

    def info(self, path: Any, **kwargs: Any) -> Info:
        """The recorded metadata of an entry."""
        path = self._strip_protocol(path)
        # Of the paths that begin with this one, only the entry itself is wanted.
        for info in self._infos(Where(path_prefix=path)):
            if info["name"] == path:
                return info
        raise FileNotFoundError(2, os.strerror(2), path)

    def ls(self, path: Any, detail: bool = True, **kwargs: Any) -> list[Any]:
        """The entries of a directory, or the entry itself if it is none."""
        path = self._strip_protocol(path)
        info = self.info(path)
        found = [info] if info["type"] != "directory" else [*self._below(path, 1).values()]
        return found if detail else sorted(info["name"] for info in found)

    def find(
        self, path: Any, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **kwargs: Any
    ) -> Any:
        """The files below a directory, with ``withdirs`` also the directories: sorted paths, or a dict of their infos."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        path = self._strip_protocol(path)
        try:
            info = self.info(path)
        except FileNotFoundError:
            return {} if detail else []
        if info["type"] != "directory":
            found = {path: info}
        else:
            below = self._below(path, maxdepth)
            found = {name: info for name, info in below.items() if withdirs or info["type"] != "directory"}
            if withdirs:
                found[path] = info
        names = sorted(found)
        return {name: found[name] for name in names} if detail else names

    def du(
        self, path: Any, total: bool = True, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any
    ) -> Any:
        """The lengths of the files at and below a path: their sum, or by path."""
        found = self.find(path, maxdepth=maxdepth, withdirs=withdirs, detail=True)
        sizes = {name: info["size"] or 0 for name, info in found.items()}
        return sum(sizes.values()) if total else sizes

    def walk(
        self, path: Any, maxdepth: int | None = None, topdown: bool = True, on_error: Any = "omit", **kwargs: Any
    ) -> Iterator[tuple[str, Any, Any]]:
        """Iterates over ``(directory, directories, files)``, of names, or with ``detail`` of dicts by name."""
        detail = kwargs.pop("detail", False)
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        top = self._strip_protocol(path)
        if self.exists(top) and not self.isdir(top):
            # As fsspec does: a file is the only file in itself, without a name.
            files_only = {"": self.info(top)}
            yield (top, {}, files_only) if detail else (top, [], [""])
            return
        if not self.isdir(top):
            if on_error == "raise":
                raise FileNotFoundError(2, os.strerror(2), top)
            if callable(on_error):
                on_error(FileNotFoundError(2, os.strerror(2), top))
            return
        # One reading of the inventory, and not one for each directory.
        triples: dict[str, tuple[dict[str, Info], dict[str, Info]]] = {top: ({}, {})}
        for name, info in self._below(top, maxdepth).items():
            parent, _, last = name.rpartition("/")
            is_file = info["type"] != "directory"
            triples.setdefault(parent or "/", ({}, {}))[is_file][last] = info
            if not is_file and (maxdepth is None or name.count("/") - top.rstrip("/").count("/") < maxdepth):
                triples.setdefault(name, ({}, {}))
        stack: list[tuple[str, bool]] = [(top, False)]
        while stack:
            here, is_done = stack.pop()
            dirs, files = triples[here]
            triple = (here, dirs, files) if detail else (here, [*dirs], [*files])
            if topdown or is_done:
                yield triple
            if is_done:
                continue
            if not topdown:
                stack.append((here, True))
            # The consumer may have removed directories.
            below = [dirs[name]["name"] for name in triple[1] if name in dirs]
            stack.extend((name, False) for name in reversed(below) if name in triples)

    def _open(self, path: Any, mode: str = "rb", **kwargs: Any) -> Any:
        if mode != "rb":
            raise OSError(30, "an inventory is read-only", path)
        recorded = self.info(path)
        now = os.lstat(path)
        if recorded["type"] != "file" or (now.st_size, now.st_mtime) != (recorded["size"], recorded["mtime"]):
            raise OSError(116, "the file has changed since the inventory was made", path)
        return open(path, mode)

    def _below(self, path: str, maxdepth: int | None) -> dict[str, Info]:
        """The infos of the entries below a directory, by path."""
        prefix = path if path.endswith("/") else path + "/"
        infos = self._infos(Where(path_prefix=prefix))
        # Roots that overlap have the same entries twice.
        return {
            info["name"]: info
            for info in infos
            if maxdepth is None or info["name"].count("/", len(prefix)) < maxdepth
        }

    def _infos(self, where: Where) -> Iterator[Info]:
        with self.inventory.entries(columns=_COLUMNS, where=where) as entries:
            for batch in entries:
                names = batch.decoded("path_raw")
                for name, kind, *values in zip(names, *map(batch.column, _COLUMNS[1:])):
                    info = dict(zip(_KEYS, [name, _KINDS.get(kind, "other"), *values]))
                    yield {**info, "islink": kind == "symlink"}

    def created(self, path: Any) -> Any:
        """The time of the last change of the inode, as that of fsspec's local filesystem."""
        return self._time(path, "created")

    def modified(self, path: Any) -> Any:
        """The time of the last modification."""
        return self._time(path, "mtime")

    def _time(self, path: Any, key: str) -> Any:
        return datetime.fromtimestamp(self.info(path)[key], tz=timezone.utc)
