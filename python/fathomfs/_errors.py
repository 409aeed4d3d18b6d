"""Exceptions. Each has the operation that failed, its path and its errno."""

from __future__ import annotations

import os


class FathomError(OSError):
    """An operation failed. ``filename`` is its path, ``errno`` is 0 for errors that are not the kernel's."""

    operation: str

    def __init__(self, errno: int, strerror: str, filename: str | bytes | None = None, operation: str = "") -> None:
        super().__init__(errno, strerror, None if filename is None else os.fsdecode(filename))
        self.operation = operation

    def __str__(self) -> str:
        if self.errno == 0:
            return str(self.strerror)
        action = f"cannot {self.operation} '{self.filename}': " if self.operation and self.filename else ""
        return f"{action}{self.strerror}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.errno, self.strerror, self.filename, self.operation)


class InventoryError(FathomError):
    """An inventory cannot be made, read or asked."""
