"""Iterators over the entries of trees, with the names that ``os`` has for them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from . import _fathomfs

_TYPES = {
    "regular": stat.S_IFREG,
    "directory": stat.S_IFDIR,
    "symlink": stat.S_IFLNK,
    "fifo": stat.S_IFIFO,
    "socket": stat.S_IFSOCK,
    "block": stat.S_IFBLK,
    "char": stat.S_IFCHR,
    "unknown": 0,
}

StrOrBytesPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class DirEntry(os.PathLike[str]):
    """An entry, with the attributes of ``os.DirEntry``. Links are not followed."""

    __slots__ = ("_type", "name", "path")

    def __init__(self, path: str, name: str, type: str) -> None:
        self.path, self.name, self._type = path, name, type

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.path!r}>"

    def is_dir(self, *, follow_symlinks: bool = False) -> bool:
        """Whether it is a directory."""
        return self._is(stat.S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = False) -> bool:
        """Whether it is a regular file."""
        return self._is(stat.S_IFREG, follow_symlinks)

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return self._type == "symlink"

    def stat(self, *, follow_symlinks: bool = False) -> os.stat_result:
        """The result of ``os.stat``, of another system call."""
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def _is(self, mode: int, follow_symlinks: bool) -> bool:
        if follow_symlinks and self.is_symlink():
            try:
                return stat.S_IFMT(self.stat(follow_symlinks=True).st_mode) == mode
            except FileNotFoundError:
                return False
        return _TYPES[self._type] == mode


def scandir(
    path: StrOrBytesPath = ".", *, recursive: bool = False, threads: int | None = None, io: str = "auto"
) -> Iterator[DirEntry]:
    """Iterates over the entries of a directory, or of the tree below it, in no particular order.

    >>> import fathomfs as ff
    >>> any(entry.is_dir() for entry in ff.scandir("/usr", recursive=False))
    True
    """
    columns = ["path_raw", "name_raw", "type"]
    depth = None if recursive else 1
    with _fathomfs.list(os.fsencode(path), columns, [], False, depth, threads, io) as entries:
        for batch in entries:
            for path_raw, name_raw, kind in zip(*map(batch.column, columns)):
                yield DirEntry(os.fsdecode(path_raw), os.fsdecode(name_raw), kind)


def walk(
    top: StrOrBytesPath, *, threads: int | None = None, io: str = "auto"
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Iterates over ``(directory, names of directories, names of others)``, sorted by path.

    As ``os.walk``, but the whole tree is read first, on several threads, and links to directories are
    among the others. A directory that cannot be read is empty.

    >>> import fathomfs as ff
    >>> top, dirs, files = next(iter(ff.walk("/usr")))
    >>> top
    '/usr'
    """
    root = os.fsencode(top)
    found: dict[bytes, tuple[list[str], list[str]]] = {root: ([], [])}
    columns = ["path_raw", "name_raw", "type"]
    with _fathomfs.list(root, columns, [], False, None, threads, io) as entries:
        for batch in entries:
            for path, name, kind in zip(*map(batch.column, columns)):
                parent = root if path == root else path[: -len(name) - 1] or b"/"
                if kind == "directory":
                    found.setdefault(path, ([], []))
                triple = found.setdefault(parent if len(parent) >= len(root) else root, ([], []))
                triple[kind != "directory"].append(os.fsdecode(name))
    for path in sorted(found, key=lambda path: path.split(b"/")):
        dirs, files = found[path]
        yield os.fsdecode(path), sorted(dirs), sorted(files)
