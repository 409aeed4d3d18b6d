"""Slurm: waves of units, each an array job. The driver runs where ``sbatch`` does."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from .._worker import Task
from . import End, EngineError

#: The time between two array jobs and between two looks at the queue, in seconds.
LOOK_S = float(os.environ.get("FATHOMFS_SLURM_LOOK_S", "5"))
#: The number of units that run at once unless another number is given.
WORKERS = 16

SCRIPT = """\
#!/bin/sh
# A unit of a distributed scan: sbatch --array=0-N {name} WAVE
exec {python} -m fathomfs.distributed._process "$1" "$SLURM_ARRAY_TASK_ID"
"""


@dataclass
class _Submitted:
    task: Task
    #: The file with the outcome, once there is one.
    outcome: str
    #: Whether the queue did not have the task at the last look.
    gone: bool = False


class Slurm:
    """Array jobs of the units that are ready, with outcomes in files of ``INVENTORY.part/slurm``."""

    spare = 0

    def __init__(self, workers: int | None, threads: int | None, sbatch: Sequence[str]) -> None:
        self._count = workers or WORKERS
        self._options = [*sbatch, *([] if threads is None else [f"--cpus-per-task={threads}"])]
        self._wave: list[Task] = []
        self._acted = float("-inf")
        #: The tasks in the queue, by job and index as squeue has them.
        self._submitted: dict[str, _Submitted] = {}

    def slots(self) -> int:
        return self._count

    def submit(self, task: Task) -> None:
        self._wave.append(task)

    def poll(self, timeout: float) -> list[End]:
        wait = self._acted + LOOK_S - time.monotonic()
        if wait > 0:
            time.sleep(min(wait, timeout))
            if wait > timeout:
                return []
        self._acted = time.monotonic()
        if self._wave:
            self._submit_wave()
        return self._look()

    def close(self, kill: bool) -> None:
        jobs = {name.partition("_")[0] for name in self._submitted}
        self._wave.clear()
        self._submitted.clear()
        if jobs:
            subprocess.run(["scancel", *sorted(jobs)], check=False)

    def _submit_wave(self) -> None:
        tasks, self._wave = self._wave, []
        directory = os.path.join(tasks[0]["part"], "slurm")
        script = os.path.join(directory, "unit.sh")
        # Waves of an earlier driver keep their names: attempts are numbered over all drivers.
        wave = os.path.join(directory, f"wave-{tasks[0]['unit']}.{tasks[0]['attempt']}")
        os.makedirs(directory, exist_ok=True)
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(name=os.path.basename(script), python=shlex.quote(sys.executable)))
        with open(f"{wave}.json", "w", encoding="ascii") as file:
            json.dump(tasks, file)
            file.flush()
            os.fsync(file.fileno())
        array, log = f"--array=0-{len(tasks) - 1}", os.path.join(directory, "%A_%a.log")
        command = ["sbatch", "--parsable", array, "--job-name=fathom-scan", f"--output={log}"]
        job = _run([*command, *self._options, script, wave]).strip().partition(";")[0]
        for index, task in enumerate(tasks):
            self._submitted[f"{job}_{index}"] = _Submitted(task, f"{wave}.{index}.outcome")

    def _look(self) -> list[End]:
        """Collects outcomes. A task that has left the queue without one is lost at the second look,
        because the file may become visible later than the end of the task."""
        if not self._submitted:
            return []
        jobs = ",".join(sorted({name.partition("_")[0] for name in self._submitted}))
        queued: set[str] | None
        try:
            queued = set(_run(["squeue", "--noheader", "--array", f"--jobs={jobs}", "--format=%i"]).split())
        except EngineError as error:
            # A job that ended long ago is not known any more.
            queued = set() if "Invalid job id" in str(error) else None
        # Opening the directory makes an NFS client ask whether its names have changed.
        os.close(os.open(os.path.dirname(next(iter(self._submitted.values())).outcome), os.O_RDONLY))
        ends = []
        for name, submitted in [*self._submitted.items()]:
            end = self._end(submitted, queued is not None and name not in queued)
            if end is not None:
                del self._submitted[name]
                ends.append(end)
        return ends

    @staticmethod
    def _end(submitted: _Submitted, is_gone: bool) -> End | None:
        try:
            with open(submitted.outcome, encoding="ascii") as file:
                end = End.of(submitted.task, json.load(file))
        except FileNotFoundError:
            if is_gone and submitted.gone:
                return End.lost(submitted.task, "the task of the array ended without an outcome")
            submitted.gone = is_gone
            return None
        os.unlink(submitted.outcome)
        return end


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise EngineError(f"cannot run '{command[0]}': {error.strerror}") from error
    if done.returncode != 0:
        raise EngineError(f"cannot run '{command[0]}': {done.stderr.strip() or done.returncode}")
    return done.stdout
