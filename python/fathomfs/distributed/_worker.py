"""The work of a worker: one attempt at one unit, published if it is the first to end."""

from __future__ import annotations

import errno
import importlib
import json
import os
import socket
import time
from typing import Any, Literal, Protocol, TypedDict, cast

from .._errors import FathomError
from . import _commit, _faults

#: The module with ``begin_cluster_scan`` and ``scan_unit``, if it is not the native one.
NATIVE_VARIABLE = "FATHOMFS_NATIVE"
#: The longest time that a worker keeps each further unit that it cannot do, in seconds.
USELESS_WAIT_MAX_S = 30.0
#: Errors of the storage of the inventory, which other workers would have as well.
STORAGE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)

_useless = 0


class Task(TypedDict):
    """An attempt at a unit, as it goes to a worker; JSON can hold it."""

    part: str
    unit: str
    parent: str
    start: int
    end: int
    attempt: int
    budget_s: float
    pieces: int
    slices: int
    rate: int | None
    in_flight: int | None
    threads: int | None
    io: str


class _Kind(TypedDict):
    #: ``won``: this attempt's record is published. ``beaten``: another one's is. ``refused``: this
    #: worker sees other filesystems. ``storage``: the inventory cannot be written. ``error``: the
    #: unit failed. ``lost``: the worker has died.
    kind: Literal["won", "beaten", "refused", "storage", "error", "lost"]


class Outcome(_Kind, total=False):
    """The end of an attempt, as it comes back from a worker; JSON can hold it."""

    #: The keys of the record that the driver needs, if the attempt has won.
    record: _commit.Record
    host: str
    message: str
    errno: int


class ClusterScan(Protocol):
    """A distributed scan that has begun, with its lock."""

    @property
    def part(self) -> str: ...
    @property
    def roots(self) -> int: ...
    def record_split(self, unit: str, parent: str, start: int, end: int, pieces: list[tuple[int, int]]) -> str: ...
    def record_failed(self, unit: str, parent: str, start: int, end: int, reason: str) -> str: ...
    @property
    def finished(self) -> bool: ...
    def remove_part(self) -> None: ...
    def finish(self, stopped: str | None, progress: Any) -> Any: ...
    def close(self) -> None: ...


class Native(Protocol):
    """The functions that read trees and write tables."""

    def begin_cluster_scan(
        self, roots: list[bytes], out: bytes, one_file_system: bool, since: bytes | None, resume: bool, io: str
    ) -> ClusterScan: ...
    def scan_unit(
        self,
        part: bytes,
        unit: str,
        parent: str,
        start: int,
        end: int,
        attempt: int,
        budget_s: float,
        pieces: int,
        slices: int,
        rate: int | None,
        max_in_flight: int | None,
        threads: int | None,
        io: str,
        progress: Any,
    ) -> str: ...


def native() -> Native:
    """Returns the native module; the one that ``FATHOMFS_NATIVE`` names instead, in tests."""
    return cast(Native, importlib.import_module(os.environ.get(NATIVE_VARIABLE, "fathomfs._fathomfs")))


def run_unit(task: Task) -> Outcome:
    """Makes an attempt at a unit. Failures are outcomes: no engine needs to carry exceptions."""
    try:
        outcome = _attempt(task)
    except FileExistsError as error:
        # The engine has started the attempt again after the death of its worker.
        outcome = Outcome(kind="lost", message=str(error))
    except OSError as error:
        outcome = Outcome(kind=_kind(task, error), message=_message(task, error), errno=error.errno or 0)
    except Exception as error:
        outcome = Outcome(kind="error", message=f"{type(error).__name__}: {error}")
    outcome["host"] = socket.gethostname()
    _wait_if_useless(outcome["kind"] in ("refused", "error"))
    return outcome


def _attempt(task: Task) -> Outcome:
    _faults.point("before-write")
    part = os.fsencode(task["part"])
    text = native().scan_unit(
        part,
        task["unit"],
        task["parent"],
        task["start"],
        task["end"],
        task["attempt"],
        task["budget_s"],
        task["pieces"],
        task["slices"],
        task["rate"],
        task["in_flight"],
        task["threads"],
        task["io"],
        None,
    )
    _faults.point("after-write")
    if not _commit.publish(task["part"], task["unit"], task["attempt"]):
        return Outcome(kind="beaten")
    record = json.loads(text)
    needed = ("kind", "pieces", "entries", "dirs", "errors", "seconds", "latency_us")
    return Outcome(kind="won", record={key: record.get(key) for key in needed})


def _kind(task: Task, error: OSError) -> Literal["refused", "storage", "error"]:
    if error.errno in STORAGE_ERRORS:
        return "storage"
    if "another file system mounted" in str(error) or not _sees_inventory(task):
        return "refused"
    return "error"


def _message(task: Task, error: OSError) -> str:
    if _sees_inventory(task):
        if isinstance(error, FathomError) or error.filename is None:
            return str(error)
        return f"cannot write '{error.filename}': {error.strerror}"
    return f"cannot read '{task['part']}': the inventory has to be on storage that all workers see"


def _sees_inventory(task: Task) -> bool:
    return os.path.exists(os.path.join(task["part"], "job.json"))


def _wait_if_useless(useless: bool) -> None:
    """Keeps a worker that is of no use from taking unit after unit: the first goes back at once."""
    global _useless
    if useless and _useless > 0:
        time.sleep(min(USELESS_WAIT_MAX_S, 2.0 ** (_useless - 1)))
    _useless = _useless + 1 if useless else 0
