"""The directories of a tree, as ``os.walk`` has them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from . import _fathomfs


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
