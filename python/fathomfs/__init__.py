"""Disk usage, lists and inventories of file trees, as fast as the storage.

>>> import fathomfs as ff
>>> usage = ff.du("/usr/share/doc")
>>> usage.bytes > 0 and usage.complete
True
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from . import _fathomfs, _options, bench
from ._errors import FathomError, InventoryError
from ._fathomfs import EntryBatch, EntryStream, __version__
from ._inventory import Inventory
from ._options import StrOrBytesPath, encoded
from ._scandir import DirEntry, scandir
from ._serve import Server, serve
from ._values import Problem, Progress, Usage
from ._walk import walk
from ._where import Where, conditions_of

__all__ = [
    "DirEntry",
    "EntryBatch",
    "EntryStream",
    "FathomError",
    "Inventory",
    "InventoryError",
    "Problem",
    "Progress",
    "Server",
    "Usage",
    "Where",
    "__version__",
    "bench",
    "du",
    "list",
    "open",
    "scan",
    "scandir",
    "serve",
    "walk",
]

#: The columns of :func:`list` unless others are asked for.
DEFAULT_COLUMNS = ("path", "type", "size", "mtime")


def du(
    path: StrOrBytesPath,
    *,
    exclude: str | bytes | Iterable[str | bytes] = (),
    one_file_system: bool = False,
    threads: int | None = None,
    io: str = "auto",
    strict: bool = False,
    progress: Callable[[Progress], object] | None = None,
) -> Usage:
    """Counts a tree as GNU du does: allocated and apparent bytes, files and directories.

    A file with several names counts once. ``exclude`` is a pattern as du's ``--exclude``, or several. What
    cannot be read is in ``errors`` of the result; with ``strict`` the first of them is raised.
    ``progress`` is called about twenty times a second.

    >>> import fathomfs as ff
    >>> ff.du("/nonexistent").errors[0].operation
    'access'
    """
    _options.check_counts(threads=threads)
    _options.check_text(io=io)
    _options.check_callable(progress=progress)
    patterns = _options.patterns(exclude)
    return _fathomfs.du(encoded(path=path), patterns, one_file_system, threads, io, strict, progress)


def list(
    path: StrOrBytesPath,
    *,
    columns: str | Sequence[str] = DEFAULT_COLUMNS,
    where: Where | None = None,
    exclude: str | bytes | Iterable[str | bytes] = (),
    one_file_system: bool = False,
    max_depth: int | None = None,
    threads: int | None = None,
    io: str = "auto",
) -> EntryStream:
    """Lists the entries below ``path``, in batches, in the order in which they are found.

    The result is an iterator of batches and an Arrow stream: ``polars.DataFrame(s)``,
    ``duckdb.sql("FROM s")``, ``pyarrow.table(s)`` and ``pandas.DataFrame.from_arrow(s)`` read it.
    Columns that are made of names alone (``path``, ``name``, ``type``, ``depth``) need no call for
    each entry. ``where`` is decided in the walk: directories outside its path prefix are not entered, and
    conditions on paths and types need no call either. ``st_mtime`` and ``st_ctime`` are seconds as floats, as those of
    ``os.stat``. Names that are not UTF-8 are in ``path_raw`` and ``name_raw``; in ``path`` and
    ``name`` their bytes are replaced.

    >>> import fathomfs as ff
    >>> with ff.list("/usr/share/doc", columns=["path", "size"]) as entries:
    ...     rows = sum(len(batch) for batch in entries)
    >>> rows > 0
    True
    """
    _options.check_counts(threads=threads)
    _options.check_counts(0, max_depth=max_depth)
    _options.check_text(io=io)
    conditions = conditions_of(where)
    options = (_options.patterns(exclude), one_file_system, max_depth, threads, io)
    return _fathomfs.list(encoded(path=path), _options.names(columns), conditions, *options)


def open(path: StrOrBytesPath) -> Inventory:
    """Opens an inventory that ``scan`` or the command ``fathom scan`` has made."""
    return Inventory(_fathomfs.open_inventory(encoded(path=path)))


def scan(
    roots: StrOrBytesPath | Iterable[StrOrBytesPath],
    out: StrOrBytesPath,
    *,
    one_file_system: bool = False,
    since: StrOrBytesPath | None = None,
    deadline: float | None = None,
    rate: int | None = None,
    max_in_flight: int | None = None,
    resume: bool = False,
    threads: int | None = None,
    io: str = "auto",
    progress: Callable[[Progress], object] | None = None,
) -> Inventory:
    """Scans trees into the new inventory ``out`` and opens it.

    Ctrl-C and ``deadline`` (seconds) end the scan with an incomplete inventory, which another call
    with ``resume=True`` completes. ``since`` is an earlier inventory, from which unchanged
    directories are copied.

    >>> import fathomfs as ff, tempfile
    >>> with tempfile.TemporaryDirectory() as temp:
    ...     inventory = ff.scan("/usr/share/doc", temp + "/doc.inv")
    ...     inventory.complete, inventory.top(by="type")[0]["entries"] > 0
    (True, True)
    """
    if isinstance(roots, (str, bytes, os.PathLike)):
        roots = [roots]
    paths = [encoded(roots=root) for root in _options.items("roots", roots)]
    if not paths and not resume:
        raise ValueError("roots: expected at least one path")
    earlier = _options.encoded_or_none(since=since)
    _options.check_text(io=io)
    _options.check_callable(progress=progress)
    _options.check_counts(rate=rate, max_in_flight=max_in_flight, threads=threads)
    limits = (deadline, rate, max_in_flight)
    inner = _fathomfs.scan(
        paths, encoded(out=out), one_file_system, earlier, *limits, resume, threads, io, progress
    )
    return Inventory(inner)
