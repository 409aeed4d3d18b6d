"""Iterators over the entries of trees, with the names that ``os`` has for them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

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
    with _fathomfs.list(os.fsencode(path), columns, None, [], False, depth, threads, io) as entries:
        for batch in entries:
            yield from map(DirEntry, batch.decoded("path_raw"), batch.decoded("name_raw"), batch.column("type"))


def walk(
    top: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    topdown: bool = True,
    onerror: Callable[[OSError], object] | None = None,
    followlinks: bool = False,
    *,
    threads: int | None = None,
) -> Iterator[tuple[Any, list[Any], list[Any]]]:
    """Iterates over ``(directory, names of directories, names of others)``, as ``os.walk`` does.

    The order is that of the names, and the names are ``bytes`` if ``top`` is. As with ``os.walk``, top down the caller
    may remove, add and reorder names of directories before it goes on. Where the storage is slow, eight threads read
    ahead what is about to come; with ``threads``, as many do so from the beginning.

    >>> import fathomfs as ff
    >>> top, dirs, files = next(iter(ff.walk("/usr")))
    >>> top
    '/usr'
    """
    start = os.fspath(top)
    reader = _fathomfs.DirectoryReader(["name_raw", "type"], threads)
    stack: list[Any] = []

    def push(paths: list[Any]) -> None:
        stack.extend(reversed(paths))
        reader.push([os.fsencode(path) for path in reversed(paths)])

    push([start])
    while stack:
        here = stack.pop()
        if isinstance(here, tuple):
            yield here
            continue
        try:
            dirs, files, links = _read(reader, here)
        except OSError as error:
            if onerror is not None:
                onerror(OSError(error.errno, error.strerror, here))
            continue
        listed = set(dirs)
        if topdown:
            yield here, dirs, files
        else:
            stack.append((here, dirs, files))
        below = []
        for name in dirs:
            path = os.path.join(here, name)
            # A name that the caller has added may be a link, too.
            if followlinks or name not in links and (name in listed or not os.path.islink(path)):
                below.append(path)
        push(below)


def _read(reader: _fathomfs.DirectoryReader, path: Any) -> tuple[list[Any], list[Any], set[Any]]:
    """The directories, the others, and the links among the directories."""
    dirs: list[Any] = []
    files: list[Any] = []
    links = set()
    for batch in reader.pop():
        names: list[Any] = batch.column("name_raw") if isinstance(path, bytes) else batch.decoded("name_raw")
        for name, kind in zip(names, batch.column("type")):
            is_link = kind == "symlink" and os.path.isdir(os.path.join(path, name))
            (dirs if is_link or kind == "directory" else files).append(name)
            if is_link:
                links.add(name)
    return sorted(dirs), sorted(files), links
