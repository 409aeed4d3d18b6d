"""The native functions of distributed scans in pure Python, for tests of the driver and its engines.

The tables are lists of paths. A unit ends after FAKE_BUDGET entries, so that tests do not depend on
time. FAKE_DEADLY is a directory whose reader dies. Of several processes, the first one that finds
the directory FAKE_REFUSE empty sees another mount from then on.
"""

import fcntl
import json
import os
import shutil
import signal
import time
from collections import deque
from itertools import islice

from fathomfs import InventoryError
from fathomfs.distributed import _faults


def _write(path, records):
    with open(path, "w", encoding="ascii") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _read(path, start=0, end=None):
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in islice(file, start, end)]


def _write_record(part, record):
    _write(f"{part}/done/.{record['id']}.{record['attempt']}.new", [record])
    return json.dumps(record)


class FakeInventory:
    def __init__(self, path, complete, paths):
        self.path, self.complete, self.entry_count, self.paths = path, complete, len(paths), paths

    def manifest_json(self):
        return json.dumps({"completeness": {"complete": self.complete}})


class FakeScan:
    finished = False

    def __init__(self, out, resume, job):
        self._out, self.part = out, f"{out}.part"
        if not resume or not os.path.exists(self.part):
            if os.path.exists(self.part) or os.path.exists(out):
                raise InventoryError(0, f"cannot create '{out}': it exists")
            for name in ("", "/parts", "/done"):
                os.mkdir(self.part + name)
        self._lock = open(f"{self.part}/lock", "wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise InventoryError(0, f"cannot lock '{self.part}': another process is scanning into it") from None
        path = f"{self.part}/job.json"
        if not os.path.exists(path):
            _write(path, [job])
        self.job = _read(path)[0]
        self.roots = len(self.job["roots"])

    def _record(self, kind, unit, parent, start, end, pieces, reason):
        record = {"id": unit, "attempt": -1, "parent": parent, "start": start, "end": end, "kind": kind}
        record |= {"pieces": pieces, "entries": 0, "dirs": 0, "errors": 0, "seconds": 0.0, "reason": reason}
        return _write_record(self.part, record)

    def record_split(self, unit, parent, start, end, pieces):
        return self._record("split", unit, parent, start, end, pieces, "")

    def record_failed(self, unit, parent, start, end, reason):
        return self._record("failed", unit, parent, start, end, [], reason)

    def finish(self, stopped, progress):
        """Takes every record there is: one that covers again what another covers gives paths twice."""
        records = [_read(f"{self.part}/done/{name}")[0] for name in os.listdir(f"{self.part}/done") if name[0] != "."]
        paths = []
        for record in records:
            if record["kind"] == "scanned":
                paths.extend(_read(f"{self.part}/parts/{record['id']}.{record['attempt']}/paths"))
        complete = stopped is None and all(record["kind"] != "failed" for record in records)
        shutil.rmtree(self._out, ignore_errors=True)
        os.makedirs(self._out, exist_ok=True)
        _write(f"{self._out}/paths", paths)
        if complete:
            self.close()
            shutil.rmtree(self.part)
        return FakeInventory(self._out, complete, paths)

    def close(self):
        self._lock.close()


def begin_cluster_scan(roots, out, one_file_system, since, resume, io):
    return FakeScan(os.fsdecode(out), resume, {"roots": [os.fsdecode(root) for root in roots]})


def _check_mount(part):
    directory = os.environ.get("FAKE_REFUSE")
    if directory is None:
        return
    mine = os.path.join(directory, str(os.getpid()))
    if not os.listdir(directory):
        os.mkdir(mine)
    if os.path.exists(mine):
        raise InventoryError(0, f"cannot scan '{part}': it differs from what the driver has there: is another file system mounted?")


def _references(part, unit, parent, start, end):
    """The references of a unit: those that a scanned parent left, or a range of a split one's."""
    if parent == "":
        return _read(f"{part}/job.json")[0]["roots"][start:end]
    record = _read(f"{part}/done/{parent}.json")[0]
    if record["kind"] == "split":
        first = record["start"]
        return _references(part, unit, record["parent"], first + start, first + end)
    return _read(f"{part}/parts/{parent}.{record['attempt']}/refs", start, end)


def _scan_directory(path, paths, stack):
    if path == os.environ.get("FAKE_DEADLY"):
        os.kill(os.getpid(), signal.SIGKILL)
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                # Its row comes with its entries.
                stack.append(entry.path)
            else:
                paths.append(entry.path)
    paths.append(path)


def scan_unit(
    part, unit, parent, start, end, attempt, budget_s, pieces, slices, rate, max_in_flight, threads, io, progress
):
    part = os.fsdecode(part)
    _check_mount(part)
    begin = time.monotonic()
    budget = int(os.environ.get("FAKE_BUDGET", "200")) if budget_s > 0 else 0
    stack = deque(reversed(_references(part, unit, parent, start, end)))
    out = f"{part}/parts/{unit}.{attempt}"
    os.mkdir(out)
    paths, dirs = [], 0
    while stack and (dirs == 0 or (len(paths) < budget and not os.path.exists(f"{part}/hungry"))):
        _scan_directory(stack.pop(), paths, stack)
        dirs += 1
    _write(f"{out}/paths", paths[: len(paths) // 2])
    _faults.point("write")
    _write(f"{out}/paths", paths)
    _write(f"{out}/refs", stack)
    count = min(pieces, len(stack))
    bounds = [len(stack) * piece // count for piece in range(count + 1)] if count else []
    record = {"id": unit, "attempt": attempt, "parent": parent, "start": start, "end": end, "kind": "scanned"}
    record |= {"pieces": [*zip(bounds, bounds[1:])], "entries": len(paths), "dirs": dirs, "errors": 0}
    record |= {"complete": True, "seconds": time.monotonic() - begin, "host": "here", "latency_us": None}
    record |= {"shares": [rate, max_in_flight]}
    return _write_record(part, record)
