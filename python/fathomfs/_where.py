"""Conditions on entries, which a walk or an inventory decides before rows are made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from ._options import StrOrBytesPath, check_counts, encoded_or_none

#: The types of entries.
TYPES = ("regular", "directory", "symlink", "fifo", "socket", "block", "char", "unknown")

#: A condition in the form that native code takes: path prefix, types, and (column, min, max) for each bounded column.
Conditions = tuple[bytes | None, list[str] | None, list[tuple[str, int | None, int | None]]]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, kw_only=True)
class Where:
    """Conditions that an entry must meet, all of them. Bounds are inclusive.

    ``path_prefix`` is compared byte by byte with the whole path, which begins with the path that is listed: end it with a
    slash for what is below a directory. Sizes are in bytes. Times are datetimes (local time if they are naive) or
    seconds since the epoch, compared in microseconds as they are in the columns. ``types`` has names of ``TYPES``.

    >>> import fathomfs as ff
    >>> large = ff.Where(size_min=100_000, types={"regular"})
    >>> with ff.list("/usr/lib", columns=["size"], where=large) as entries:
    ...     all(min(batch.column("size")) >= 100_000 for batch in entries)
    True
    """

    path_prefix: StrOrBytesPath | None = None
    size_min: int | None = None
    size_max: int | None = None
    mtime_min: datetime | float | None = None
    mtime_max: datetime | float | None = None
    atime_min: datetime | float | None = None
    atime_max: datetime | float | None = None
    ctime_min: datetime | float | None = None
    ctime_max: datetime | float | None = None
    types: Collection[str] | None = None

    def __post_init__(self) -> None:
        for name in ("size_min", "size_max"):
            check_counts(-(1 << 64), **{name: getattr(self, name)})
        for name in (f"{time}_{end}" for time in ("mtime", "atime", "ctime") for end in ("min", "max")):
            if not isinstance(getattr(self, name), (datetime, float, int, type(None))):
                raise TypeError(f"{name}: expected datetime or seconds, not {type(getattr(self, name)).__name__}")
        if isinstance(self.types, str):
            raise TypeError(f"types must be a set of names, not {self.types!r}")
        unknown = sorted(set(self.types or ()).difference(TYPES))
        if unknown:
            raise ValueError(f"unknown type {unknown[0]!r}: the types are {', '.join(TYPES)}")
        if self.types is not None:
            object.__setattr__(self, "types", frozenset(self.types))
        self.conditions()

    def conditions(self) -> Conditions:
        """The conditions as path prefix, types, and an inclusive range of each bounded column; times in microseconds."""
        prefix = encoded_or_none(path_prefix=self.path_prefix)
        ranges = [
            ("size", self.size_min, self.size_max),
            ("mtime", _microseconds(self.mtime_min), _microseconds(self.mtime_max)),
            ("atime", _microseconds(self.atime_min), _microseconds(self.atime_max)),
            ("ctime", _microseconds(self.ctime_min), _microseconds(self.ctime_max)),
        ]
        bounded = [(name, _clamp(low), _clamp(high)) for name, low, high in ranges if (low, high) != (None, None)]
        return prefix, None if self.types is None else sorted(self.types), bounded


def conditions_of(where: Where | None) -> Conditions | None:
    """The conditions of an argument ``where``.

    >>> conditions_of("size > 5")
    Traceback (most recent call last):
    ...
    TypeError: where: expected fathomfs.Where, not str
    """
    if where is not None and not isinstance(where, Where):
        raise TypeError(f"where: expected fathomfs.Where, not {type(where).__name__}")
    return None if where is None else where.conditions()


def _microseconds(time: datetime | float | None) -> int | None:
    if time is None or isinstance(time, int):
        return None if time is None else time * 1_000_000
    if isinstance(time, datetime):
        return (time.astimezone(timezone.utc) - _EPOCH) // timedelta(microseconds=1)
    return round(time * 1_000_000)


def _clamp(value: int | None) -> int | None:
    """Moves a bound that no column can reach to the ends of 64 bits."""
    return None if value is None else max(-(1 << 63), min(value, (1 << 63) - 1))
