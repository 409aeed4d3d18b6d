"""Worker processes on this machine. A process that ends is replaced."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from dataclasses import dataclass, field

from .._worker import Task
from . import End, EngineError

#: The time that an ended process has to be reaped: a worker in an uninterruptible call stays.
REAP_S = 5.0


@dataclass(eq=False)
class _Child:
    process: subprocess.Popen[bytes]
    task: Task | None = None
    ready: bool = False
    #: The beginning of a line.
    read: bytearray = field(default_factory=bytearray)


class Processes:
    """One unit at a time in each of some processes."""

    spare = 0

    def __init__(self, workers: int | None) -> None:
        cpus = len(os.sched_getaffinity(0))
        self._count = workers or cpus
        # All workers share the CPUs of this machine.
        self._threads = max(1, cpus // self._count)
        self._children: list[_Child] = []
        self._selector = selectors.DefaultSelector()

    @property
    def processes(self) -> list[int]:
        """The process numbers of the workers."""
        return [child.process.pid for child in self._children]

    def slots(self) -> int:
        return self._count

    def submit(self, task: Task) -> None:
        while len(self._children) < self._count:
            self._start()
        child = next(child for child in self._children if child.task is None)
        if task["threads"] is None:
            task["threads"] = self._threads
        child.task = task
        assert child.process.stdin is not None
        try:
            child.process.stdin.write(json.dumps(task).encode() + b"\n")
            child.process.stdin.flush()
        except BrokenPipeError:
            # It has died: `poll` finds the end of its output.
            pass

    def poll(self, timeout: float) -> list[End]:
        ends = []
        for key, _ in self._selector.select(timeout):
            child: _Child = key.data
            block = os.read(key.fd, 1 << 16)
            if not block:
                ends.extend(self._bury(child))
                continue
            child.read += block
            *lines, rest = child.read.split(b"\n")
            child.read = rest
            for line in lines:
                if not child.ready:
                    child.ready = True
                elif child.task is not None:
                    ends.append(End.of(child.task, json.loads(line)))
                    child.task = None
                    # In turn, so that a worker that refuses units does not get all of them.
                    self._children.remove(child)
                    self._children.append(child)
        return ends

    def close(self, kill: bool) -> None:
        for child in self._children:
            if kill or child.task is not None:
                child.process.kill()
            assert child.process.stdin is not None
            try:
                child.process.stdin.close()
            except BrokenPipeError:
                pass
        for child in self._children:
            self._reap(child)
        self._children.clear()
        self._selector.close()

    def _start(self) -> None:
        # A session of its own: Ctrl-C is for the driver, which has the workers end their units.
        process = subprocess.Popen(
            [sys.executable, "-m", "fathomfs.distributed._process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        child = _Child(process)
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, child)
        self._children.append(child)

    def _bury(self, child: _Child) -> list[End]:
        """Forgets a process that has ended."""
        assert child.process.stdout is not None
        self._selector.unregister(child.process.stdout)
        self._children.remove(child)
        status = self._reap(child)
        if not child.ready and status is not None and status > 0:
            raise EngineError(f"cannot start a worker: it exited with status {status}")
        if child.task is None:
            return []
        return [End.lost(child.task, f"worker process {child.process.pid} ended with status {status}")]

    @staticmethod
    def _reap(child: _Child) -> int | None:
        try:
            child.process.wait(REAP_S)
        except subprocess.TimeoutExpired:
            child.process.kill()
        for stream in (child.process.stdin, child.process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                # The task of a process that has died.
                pass
        return child.process.poll()
