"""Exceptions. Each has the operation that failed, its path and its errno."""

from __future__ import annotations

import os
from typing import Any, TypeVar

_Error = TypeVar("_Error", bound="FathomError")


class FathomError(OSError):
    """An operation failed. ``filename`` is its path, ``errno`` is 0 for errors that are not the kernel's.

    It is also the ``OSError`` of its errno:

    >>> import errno
    >>> isinstance(FathomError(errno.ENOENT, "No such file or directory", "/none"), FileNotFoundError)
    True
    """

    operation: str

    def __new__(
        cls: type[_Error], errno: int, strerror: str, filename: str | bytes | None = None, operation: str = ""
    ) -> _Error:
        path = None if filename is None else os.fsdecode(filename)
        made: _Error = OSError.__new__(_of_kind(cls, type(OSError(errno, strerror))), errno, strerror, path)
        made.operation = operation
        return made

    def __init__(self, *_arguments: object, **_named: object) -> None:
        pass

    def __str__(self) -> str:
        if self.errno == 0:
            return str(self.strerror)
        action = f"cannot {self.operation} {self.filename!r}: " if self.operation and self.filename else ""
        return f"{action}{self.strerror}"

    def __reduce__(self) -> tuple[object, ...]:
        fields = (self.errno, self.strerror, self.filename, self.operation)
        return _public(type(self)), fields, self.__dict__


class InventoryError(FathomError):
    """An inventory cannot be made, read or asked."""


#: The classes of both kinds that have been made.
_MADE: dict[tuple[type, type], Any] = {}


def _of_kind(cls: type[_Error], kind: type[OSError]) -> type[_Error]:
    """The class of errors that are ``cls`` and ``kind``, under the name of ``cls``."""
    if issubclass(cls, kind):
        return cls
    # It cannot be found by its name: pickles have the public class.
    members: dict[str, Any] = {"__module__": cls.__module__, "__doc__": cls.__doc__, "_public": cls}
    made: type[_Error] = _MADE.setdefault((cls, kind), type(cls.__name__, (cls, kind), members))
    return made


def _public(cls: type[FathomError]) -> type[FathomError]:
    public: type[FathomError] = getattr(cls, "_public", cls)
    return public
