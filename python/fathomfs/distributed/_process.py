"""A worker process, ``python -m fathomfs.distributed._process``.

It does units that it reads from standard input, a JSON object a line; with a file and an index, the
one unit of a task of a Slurm array.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import TextIO

from ._worker import native, run_unit


def _serve(tasks: TextIO, outcomes: TextIO) -> None:
    """Does the units of ``tasks`` until their end. If that comes during a unit, the driver has died."""
    native()
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    idle = threading.Event()
    idle.set()

    def read() -> None:
        for line in tasks:
            idle.clear()
            lines.put(line)
        if not idle.is_set():
            os._exit(1)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    print("ready", file=outcomes, flush=True)
    while line := lines.get():
        outcome = json.dumps(run_unit(json.loads(line)))
        # Pairs with `idle.clear()` of the reader: the driver sends the next unit after this outcome.
        idle.set()
        print(outcome, file=outcomes, flush=True)


def _run_array_task(wave: str, index: int) -> None:
    """Does one unit of a wave, and leaves the outcome in a file beside it."""
    with open(f"{wave}.json", encoding="ascii") as file:
        task = json.load(file)[index]
    outcome = f"{wave}.{index}"
    with open(f"{outcome}.new", "w", encoding="ascii") as file:
        json.dump(run_unit(task), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{outcome}.new", f"{outcome}.outcome")


def main(arguments: list[str]) -> None:
    """The worker process."""
    if arguments:
        _run_array_task(arguments[0], int(arguments[1]))
        return
    # Standard output is for outcomes alone, whatever libraries print.
    outcomes = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    try:
        _serve(sys.stdin, outcomes)
    except BrokenPipeError:
        # The driver has died. The record of the unit is published.
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
