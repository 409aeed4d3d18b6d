"""Engines: they run attempts at units on workers, and know nothing of units.

An engine keeps no state of the scan and never repeats an attempt: the driver decides.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ..._errors import FathomError
from .._worker import Outcome, Task


class EngineError(FathomError):
    """The engine cannot go on. The records of finished units are kept."""

    def __new__(cls, message: str) -> EngineError:
        return super().__new__(cls, 0, message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self),)


@dataclass(frozen=True)
class End:
    """The end of an attempt."""

    unit: str
    attempt: int
    outcome: Outcome

    @classmethod
    def of(cls, task: Task, outcome: Outcome) -> End:
        """The end of a task."""
        return cls(task["unit"], task["attempt"], outcome)

    @classmethod
    def lost(cls, task: Task, message: str) -> End:
        """The end of a task whose worker has died."""
        return cls.of(task, Outcome(kind="lost", message=message))


class Engine(Protocol):
    """Workers, wherever they are."""

    @property
    def spare(self) -> int:
        """The number of tasks that may wait in the engine, so that a cluster knows to grow."""
        ...

    def slots(self) -> int:
        """The number of tasks that can run at once now."""
        ...

    def submit(self, task: Task) -> None:
        """Starts an attempt."""
        ...

    def poll(self, timeout: float) -> list[End]:
        """Waits for the end of at least one attempt, at most ``timeout`` seconds."""
        ...

    def close(self, kill: bool) -> None:
        """Ends what this engine has started; with ``kill``, without waiting for running units."""
        ...


def open_engine(executor: Any, *, workers: int | None, threads: int | None, options: dict[str, Any]) -> Engine:
    """Opens the engine that ``executor`` names or is: see :func:`fathomfs.distributed.scan`."""
    if isinstance(executor, str) and executor in _ENGINES:
        return _ENGINES[executor](workers, threads, options)
    if executor is None:
        return _processes(workers, threads, options)
    if hasattr(executor, "poll") and hasattr(executor, "slots"):
        return cast(Engine, executor)
    if isinstance(executor, Executor):
        from .mpi import Futures

        return Futures(executor, workers)
    if isinstance(executor, str) and "://" not in executor:
        known = ", ".join(sorted(_ENGINES))
        raise ValueError(f"unknown executor {executor!r}: expected {known}, the address of a Dask scheduler, or a client")
    from .dask import Dask

    return Dask(executor, workers)


def _processes(workers: int | None, threads: int | None, options: dict[str, Any]) -> Engine:
    from .processes import Processes

    return Processes(workers)


def _dask(workers: int | None, threads: int | None, options: dict[str, Any]) -> Engine:
    from .dask import Dask

    return Dask("local", workers)


def _ray(workers: int | None, threads: int | None, options: dict[str, Any]) -> Engine:
    from .ray import Ray

    return Ray(workers, threads)


def _mpi(workers: int | None, threads: int | None, options: dict[str, Any]) -> Engine:
    from .mpi import mpi

    return mpi(workers)


def _slurm(workers: int | None, threads: int | None, options: dict[str, Any]) -> Engine:
    from .slurm import Slurm

    return Slurm(workers, threads, options.get("sbatch") or ())


_ENGINES: dict[str, Callable[[int | None, int | None, dict[str, Any]], Engine]] = {
    "processes": _processes,
    "local": _dask,
    "ray": _ray,
    "mpi": _mpi,
    "slurm": _slurm,
}
