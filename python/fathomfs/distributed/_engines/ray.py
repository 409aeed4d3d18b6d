"""Ray: units as tasks, by default one a node."""

from __future__ import annotations

import importlib
import time
from typing import Any

from .._worker import Task, run_unit
from . import End, EngineError

#: The time between two looks at the nodes, in seconds.
LOOK_S = 0.5


class Ray:
    """The cluster that ``RAY_ADDRESS`` or an earlier ``ray.init`` names, or else this machine."""

    def __init__(self, workers: int | None, threads: int | None) -> None:
        self._ray: Any = importlib.import_module("ray")
        self._own = not self._ray.is_initialized()
        if self._own:
            self._ray.init(log_to_driver=False, include_dashboard=False, logging_level="error")
        cpus = self._cpus()
        # A unit has a node to itself, unless it is told to use fewer threads.
        self._unit_cpus = threads or max(1, min(cpus, default=1))
        options = {"max_retries": 0, "num_cpus": self._unit_cpus, "scheduling_strategy": "SPREAD"}
        self._run = self._ray.remote(**options)(run_unit)
        self._limit = workers
        self._looked, self._slots = float("-inf"), 0
        self._running: dict[Any, Task] = {}

    @property
    def spare(self) -> int:
        # An autoscaler adds nodes if tasks wait.
        return 1 if self._limit is None or self.slots() < self._limit else 0

    def slots(self) -> int:
        now = time.monotonic()
        if now - self._looked >= LOOK_S:
            self._looked = now
            self._slots = sum(cpus // self._unit_cpus for cpus in self._cpus())
        return self._slots if self._limit is None else min(self._slots, self._limit)

    def submit(self, task: Task) -> None:
        name = f"fathom-scan {task['unit']} {task['attempt']}"
        self._running[self._run.options(name=name).remote(task)] = task

    def poll(self, timeout: float) -> list[End]:
        if not self._running:
            time.sleep(timeout)
            return []
        ready, _ = self._ray.wait([*self._running], num_returns=1, timeout=timeout)
        # The reference goes with its task: nothing is kept in the object store.
        return [self._end(reference, self._running.pop(reference)) for reference in ready]

    def close(self, kill: bool) -> None:
        for reference in self._running:
            self._ray.cancel(reference, force=kill)
        self._running.clear()
        if self._own:
            self._ray.shutdown()

    def _end(self, reference: Any, task: Task) -> End:
        errors = self._ray.exceptions
        try:
            return End.of(task, self._ray.get(reference))
        except errors.RayTaskError as error:
            # `run_unit` does not raise: the worker could not be set up.
            raise EngineError(f"cannot run a unit on Ray: {error}") from error
        except errors.RayError as error:
            return End.lost(task, f"the worker of Ray was lost: {type(error).__name__}")

    def _cpus(self) -> list[int]:
        return [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]
