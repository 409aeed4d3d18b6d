"""Records of finished units: published once, read one by one.

A record gets its name ``done/ID.json`` by link(2), so that the first attempt at a unit wins, on
NFS and Lustre too. The set of records is the whole state of a scan.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import dataclass, field
from typing import Any

from . import _faults
from ._coordinator import Unit, children

Record = dict[str, Any]

#: The number of attempts of one driver: those of the next one have higher numbers.
ATTEMPTS_PER_DRIVER = 1 << 20


def publish(part: str, unit: str, attempt: int) -> bool:
    """Gives the record of an attempt its name. Returns whether this attempt was the first.

    A later one removes its tables.
    """
    done = os.path.join(part, "done")
    new = os.path.join(done, f".{unit}.{attempt}.new")
    _faults.point("before-link")
    try:
        os.link(new, os.path.join(done, f"{unit}.json"))
        won = True
    except OSError as error:
        # A lost reply of an NFS server makes a second request of the one that has succeeded, which
        # then fails: the number of links tells (open(2), on O_EXCL over NFS).
        won = _links(new) > 1
        if not won and error.errno != errno.EEXIST:
            raise
    sync_directory(done)
    _faults.point("after-link")
    os.unlink(new)
    if not won:
        shutil.rmtree(os.path.join(part, "parts", f"{unit}.{attempt}"), ignore_errors=True)
    return won


def read_record(part: str, unit: str) -> Record | None:
    """Returns the record of a unit if it is finished."""
    # Opening the directory makes an NFS client ask whether its names have changed.
    done = os.open(os.path.join(part, "done"), os.O_RDONLY | os.O_DIRECTORY)
    try:
        file = os.open(f"{unit}.json", os.O_RDONLY, dir_fd=done)
    except FileNotFoundError:
        return None
    finally:
        os.close(done)
    with os.fdopen(file, "rb") as stream:
        record: Record = json.load(stream)
    return record


@dataclass
class Totals:
    """The sums of the records."""

    units: int = 0
    failed: int = 0
    entries: int = 0
    dirs: int = 0
    errors: int = 0

    def add(self, record: Record) -> None:
        """Adds a record."""
        self.units += 1
        self.failed += record["kind"] == "failed"
        self.entries += record["entries"]
        self.dirs += record["dirs"]
        self.errors += record["errors"]


@dataclass
class ScanState:
    """What the records say of a scan."""

    totals: Totals = field(default_factory=Totals)
    pending: list[Unit] = field(default_factory=list)


def read_state(part: str, root: Unit) -> ScanState:
    """Reads all records, from that of ``root`` on. A unit without a record is pending.

    So is one that has failed: its record is removed, as workers may have died for another reason.

    Workers of an earlier driver may still publish records. Each record that exists when its unit
    is reached is followed, so none is missed, and one that comes later wins against an attempt of
    this driver.
    """
    state, reached = ScanState(), [root]
    while reached:
        unit = reached.pop()
        record = read_record(part, unit.id)
        if record is not None and record["kind"] == "failed":
            os.unlink(os.path.join(part, "done", f"{unit.id}.json"))
            record = None
        if record is None:
            state.pending.append(unit)
        else:
            state.totals.add(record)
            reached.extend(children(unit.id, record["pieces"]))
    return state


def remove_orphans(part: str) -> int:
    """Removes tables of attempts at units that another attempt has finished; returns their number.

    Those at units without a record stay: a worker out of reach may still publish one.
    """
    count = 0
    parts = os.path.join(part, "parts")
    with os.scandir(parts) as entries:
        for entry in entries:
            unit, _, attempt = entry.name.rpartition(".")
            record = read_record(part, unit)
            if record is not None and str(record["attempt"]) != attempt:
                shutil.rmtree(entry.path, ignore_errors=True)
                count += 1
    return count


def remove_unbegun(part: str) -> None:
    """Removes the directory of a scan of which no unit has a record."""
    with os.scandir(os.path.join(part, "done")) as records:
        is_begun = any(record.name.endswith(".json") for record in records)
    if not is_begun:
        shutil.rmtree(part, ignore_errors=True)


def next_driver(part: str) -> int:
    """Counts the drivers of a scan in a file. The caller holds the lock of the scan."""
    path = os.path.join(part, "drivers")
    try:
        with open(path, encoding="ascii") as file:
            number = int(file.read()) + 1
    except FileNotFoundError:
        number = 0
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(str(number))
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)
    sync_directory(part)
    return number


def sync_directory(path: str) -> None:
    """Makes the names in a directory durable, where the filesystem can."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(directory)


def _links(path: str) -> int:
    # An open file has new attributes on NFS; a path may have old ones.
    file = os.open(path, os.O_RDONLY)
    try:
        return os.fstat(file).st_nlink
    finally:
        os.close(file)
