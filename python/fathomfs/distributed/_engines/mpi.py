"""MPI by mpi4py.futures, and every other executor of that interface."""

from __future__ import annotations

import importlib
import queue
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

from .._worker import Outcome, Task, run_unit
from . import End, EngineError


class Futures:
    """An executor of ``concurrent.futures`` with some workers.

    A worker that dies breaks the executor, and under MPI the job: the scan is resumed by the next.
    """

    spare = 0

    def __init__(self, executor: Executor, workers: int | None, *, owned: bool = False) -> None:
        known: int = getattr(executor, "num_workers", None) or getattr(executor, "_max_workers", None) or workers or 1
        self._executor, self._owned = executor, owned
        self._slots = min(known, workers or known)
        self._ended: queue.SimpleQueue[tuple[Task, Future[Outcome]]] = queue.SimpleQueue()
        self._running: set[Future[Outcome]] = set()

    def slots(self) -> int:
        return self._slots

    def submit(self, task: Task) -> None:
        try:
            future = self._executor.submit(run_unit, task)
        except RuntimeError as error:
            raise EngineError(f"cannot give a unit to the executor: {error}") from error
        self._running.add(future)
        future.add_done_callback(lambda ended: self._ended.put((task, ended)))

    def poll(self, timeout: float) -> list[End]:
        ends: list[End] = []
        try:
            ends.append(self._end(*self._ended.get(timeout=timeout)))
            while True:
                ends.append(self._end(*self._ended.get_nowait()))
        except queue.Empty:
            return ends

    def close(self, kill: bool) -> None:
        for future in self._running:
            future.cancel()
        if self._owned:
            self._executor.shutdown(wait=not kill, cancel_futures=True)

    def _end(self, task: Task, future: Future[Outcome]) -> End:
        self._running.discard(future)
        try:
            return End.of(task, future.result())
        except CancelledError:
            return End.lost(task, "the executor has cancelled the unit")
        except Exception as error:
            raise EngineError(f"the executor has failed: {type(error).__name__}: {error}") from error


def mpi(workers: int | None) -> Futures:
    """The ranks that ``mpiexec python -m mpi4py.futures`` has started; rank 0 is the driver."""
    futures: Any = importlib.import_module("mpi4py.futures")
    engine = Futures(futures.MPIPoolExecutor(), None, owned=True)
    if not engine.slots():
        raise EngineError("MPI has no workers: start with mpiexec -n N python -m mpi4py.futures -m fathomfs.distributed")
    if workers is not None:
        engine._slots = min(engine._slots, workers)
    return engine
