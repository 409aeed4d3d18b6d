"""Dask: units as tasks of a cluster, one a thread of a worker."""

from __future__ import annotations

import importlib
import queue
import time
from typing import Any

from .._worker import Task, run_unit
from . import End, EngineError

#: The time between two looks at the workers of the cluster, in seconds.
LOOK_S = 0.5
#: The longest wait for the outcome of a finished task, in seconds: its worker may have died since.
GATHER_S = 5.0


class Dask:
    """A cluster: of a client, at an address, or ``local`` with some processes."""

    def __init__(self, target: Any, workers: int | None) -> None:
        distributed: Any = importlib.import_module("distributed")
        self._cluster: Any = None
        self._own: Any = None
        if target == "local":
            self._cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
            )
        if isinstance(target, distributed.Client):
            client: Any = target
            if client.asynchronous:
                raise TypeError("an asynchronous client cannot run a scan: pass Client(address)")
        else:
            self._own = distributed.Client(self._cluster or target)
        self._client: Any = self._own or target
        self._limit = workers
        self._looked, self._slots = float("-inf"), 0
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        #: The attempts that were submitted, by their keys.
        self._running: dict[str, tuple[Task, Any]] = {}

    @property
    def spare(self) -> int:
        # An adaptive cluster grows if tasks wait.
        slots = self.slots()
        return max(1, slots // 4) if self._limit is None or slots < self._limit else 0

    def slots(self) -> int:
        self._check()
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            self._slots = sum(self._client.nthreads().values())
        return self._slots if self._limit is None else min(self._slots, self._limit)

    def submit(self, task: Task) -> None:
        # A new key for each attempt: the scheduler keeps results by key.
        key = f"fathom_scan-{task['unit']}-{task['attempt']}"
        future = self._client.submit(run_unit, task, key=key, retries=0, pure=False)
        self._running[key] = (task, future)
        future.add_done_callback(self._ended.put)

    def poll(self, timeout: float) -> list[End]:
        self._check()
        ends: list[End] = []
        try:
            ends.extend(self._end(self._ended.get(timeout=timeout)))
            while True:
                ends.extend(self._end(self._ended.get_nowait()))
        except queue.Empty:
            return ends

    def close(self, kill: bool) -> None:
        futures = [future for _, future in self._running.values()]
        self._running.clear()
        if futures and self._client.status == "running":
            self._client.cancel(futures)
        if self._own is not None:
            self._own.close()
        if self._cluster is not None:
            self._cluster.close()

    def _end(self, future: Any) -> list[End]:
        task, _ = self._running.pop(future.key, (None, None))
        if task is None:
            return []
        self._check()
        error: BaseException | None = None
        if future.status == "finished":
            try:
                return [End.of(task, future.result(timeout=GATHER_S))]
            except Exception as lost:
                # The outcome went with its worker. The driver looks for the record.
                return [End.lost(task, f"the outcome was lost: {type(lost).__name__}: {lost}")]
        # KilledWorker: too many workers have died of it. Cancelled: somebody has restarted workers.
        if future.status == "error":
            error = future.exception()
        if error is not None and not _is_death(error):
            raise EngineError(f"cannot run a unit on Dask: {type(error).__name__}: {error}")
        return [End.lost(task, f"the worker of Dask was lost: {error or future.status}")]

    def _check(self) -> None:
        if self._client.status not in ("running", "newly-created"):
            raise EngineError(f"lost the connection to the Dask scheduler: the client is {self._client.status}")


def _is_death(error: BaseException) -> bool:
    return type(error).__name__ in ("KilledWorker", "CancelledError", "FutureCancelledError")
