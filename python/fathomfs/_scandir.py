"""The entries of directories and of trees, as ``os.scandir`` has them."""

from __future__ import annotations

import os
import stat
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, AnyStr, Generic, Literal, NoReturn, overload

from . import _fathomfs, _options
from ._values import Problem

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


class DirEntry(os.PathLike[AnyStr], Generic[AnyStr]):
    """An entry of a tree, with the attributes of ``os.DirEntry``."""

    __slots__ = ("_ino", "_stats", "_type", "name", "path")
    path: AnyStr
    name: AnyStr

    def __init__(self, path: AnyStr, name: AnyStr, type: str, ino: int) -> None:
        self.path, self.name, self._type, self._ino = path, name, type, ino
        self._stats: dict[bool, os.stat_result] = {}

    def __fspath__(self) -> AnyStr:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle 'DirEntry' object")

    def inode(self) -> int:
        """The inode number, as the directory has it."""
        return self._ino

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory, or a link to one."""
        return self._is(stat.S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a regular file, or a link to one."""
        return self._is(stat.S_IFREG, follow_symlinks)

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return self._type == "symlink"

    def is_junction(self) -> bool:
        """Whether it is a junction, which only Windows has."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The result of ``os.stat``, of another system call the first time."""
        follows = follow_symlinks and self.is_symlink()
        if follows not in self._stats:
            self._stats[follows] = os.stat(self.path, follow_symlinks=follows)
        return self._stats[follows]

    def _is(self, mode: int, follow_symlinks: bool) -> bool:
        if not (follow_symlinks and self.is_symlink()):
            return _TYPES[self._type] == mode
        try:
            return stat.S_IFMT(self.stat().st_mode) == mode
        except FileNotFoundError:
            return False


class TreeIterator(Iterator[DirEntry[AnyStr]]):
    """The entries below a directory, with the methods of what ``os.scandir`` returns."""

    _stream: _fathomfs.EntryStream | None = None

    def __init__(self, path: Any, threads: int | None, io: str) -> None:
        # The errors of the path itself are those of os.scandir.
        os.scandir(path).close()
        self._is_bytes = isinstance(os.fspath(path), bytes)
        columns = ["path_raw", "name_raw", "type", "d_ino"]
        options = (None, list[bytes](), False, None, threads, io, True)
        self._read = self._stream = _fathomfs.list(os.fsencode(path), columns, *options)
        self._entries: Iterator[DirEntry[AnyStr]] = iter(())
        self._lock = threading.Lock()

    def __iter__(self) -> TreeIterator[AnyStr]:
        return self

    def __next__(self) -> DirEntry[AnyStr]:
        # Threads that share it have one entry each.
        with self._lock:
            for entry in self._entries:
                return entry
            try:
                batch = next(self._read)
            except BaseException:
                self.close()
                raise
            values: Any = batch.column if self._is_bytes else batch.decoded
            columns = (values("path_raw"), values("name_raw"), batch.column("type"), batch.column("d_ino"))
            self._entries = map(DirEntry, *columns)
            return next(self._entries)

    @property
    def errors(self) -> Sequence[Problem]:
        """The directories below the path that could not be read, so far."""
        return self._read.errors

    def close(self) -> None:
        """Ends the iteration, and the walk."""
        if self._stream is not None:
            self._entries = iter(())
            self._stream.close()
            self._stream = None

    def __enter__(self) -> TreeIterator[AnyStr]:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __del__(self, _warn: Any = warnings.warn) -> None:
        if self._stream is not None:
            _warn(f"unclosed scandir iterator {self!r}", ResourceWarning, source=self)
            self.close()


@overload
def scandir(path: None = None, *, recursive: Literal[False] = False) -> os._ScandirIterator[str]: ...
@overload
def scandir(path: int, *, recursive: Literal[False] = False) -> os._ScandirIterator[str]: ...
@overload
def scandir(
    path: AnyStr | os.PathLike[AnyStr], *, recursive: Literal[False] = False
) -> os._ScandirIterator[AnyStr]: ...
@overload
def scandir(
    path: None = None, *, recursive: Literal[True], threads: int | None = None, io: str = "auto"
) -> TreeIterator[str]: ...
@overload
def scandir(
    path: AnyStr | os.PathLike[AnyStr], *, recursive: Literal[True], threads: int | None = None, io: str = "auto"
) -> TreeIterator[AnyStr]: ...
def scandir(path: Any = None, *, recursive: bool = False, threads: int | None = None, io: str = "auto") -> Any:
    """Iterates over the entries of a directory, or of the tree below it, in no particular order.

    Of one directory it is ``os.scandir``. With ``recursive``, the entries and their iterator have the same methods, and
    directories below that cannot be read are in ``errors`` of the iterator.

    >>> import fathomfs as ff
    >>> with ff.scandir("/usr/share/doc", recursive=True) as entries:
    ...     any(entry.is_dir() for entry in entries)
    True
    """
    if not recursive:
        if threads is not None or io != "auto":
            raise ValueError("threads and io have no effect without recursive=True")
        return os.scandir(path)
    _options.check_counts(threads=threads)
    return TreeIterator("." if path is None else path, threads, io)
