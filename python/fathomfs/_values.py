"""Values that calls return: they compare, hash and pickle."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """An operation that failed on an entry, which did not end the call."""

    path_raw: bytes
    operation: str
    errno: int

    @property
    def path(self) -> str:
        """The path as ``os.fsdecode`` decodes it."""
        return os.fsdecode(self.path_raw)

    def __str__(self) -> str:
        return f"cannot {self.operation} {self.path!r}: {os.strerror(self.errno)}"

    def __repr__(self) -> str:
        return f"<Problem: {self}>"


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a tree."""

    #: Bytes allocated on disk, directories included.
    bytes: int
    #: The lengths of regular files and symbolic links.
    apparent: int
    #: Entries that are not directories.
    files: int
    #: Directories, with the root.
    dirs: int
    #: The first problems, by path.
    errors: tuple[Problem, ...] = field(repr=False)
    #: The number of all problems.
    error_count: int
    #: Whether everything was counted.
    complete: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call."""

    #: Entries seen.
    entries: int
    #: Directories opened, or tried.
    directories: int
    #: Allocated bytes counted; 0 for a call that does not count them.
    bytes: int
