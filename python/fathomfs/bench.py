"""Measures which I/O model fits a filesystem, with ``fathom bench``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any

from ._command import find_command
from ._errors import FathomError
from ._options import StrOrBytesPath, encoded

__all__ = ["Advice", "Candidate", "Cell", "Interval", "LeftOut", "advise"]


@dataclass(frozen=True)
class Interval:
    """A median and the bounds of its interval of 95 % confidence."""

    median: float
    low: float
    high: float

    @classmethod
    def _read(cls, value: dict[str, float] | None) -> Interval | None:
        return None if value is None else cls(value["median"], value["low"], value["high"])


@dataclass(frozen=True)
class Candidate:
    """A method for a cell, with its time per operation. A method is measured if it may be the best."""

    method: str
    predicted_us: float | None
    measured_us: float | None


@dataclass(frozen=True)
class Cell:
    """The advice for one workload in one state of the page cache."""

    name: str
    workload: str
    cache: str | None
    #: The method to use, as the reports name it, and its parts.
    method: str
    model: str
    threads: int
    depth: int
    #: Its time divided by that of blocking calls; None for blocking calls themselves.
    ratio: Interval | None
    #: Its time divided by that of the fastest method; None where it is the fastest.
    ratio_to_best: Interval | None
    #: The methods that were not shown to be slower than the fastest.
    among_best: tuple[str, ...]
    #: Whether the choice makes a material difference.
    matters: bool
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class LeftOut:
    """A cell without advice, and the reason."""

    cell: str
    reason: str


@dataclass(frozen=True)
class Advice:
    """The result of :func:`advise`."""

    #: One sentence: which model for which workload, and how much faster it is.
    sentence: str
    #: A line for each of fathom's commands and each kind of work.
    commands: tuple[str, ...]
    cells: tuple[Cell, ...]
    #: Conditions with which the advice would be another one.
    conditions: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    #: The document of ``fathom bench advise --json``, with every sample.
    document: dict[str, Any]

    def __str__(self) -> str:
        return self.sentence


def advise(
    path: StrOrBytesPath = ".", *, time: float | None = None, quick: bool = False, seed: int | None = None
) -> Advice:
    """Measures the filesystem of the directory ``path`` and recommends an I/O model for each workload.

    It takes up to ``time`` seconds, or three minutes; ``quick`` does a tenth of the work, in half a minute
    unless ``time`` is given. If no question is answered, ``FathomError`` is raised.
    Files are made below ``path`` and removed again. Ctrl-C ends it. As root, it drops the caches of
    the whole machine before cold samples.
    """
    flags = ["--quick"] if quick else []
    flags += [] if time is None else [f"--time={time}s"]
    flags += [] if seed is None else [f"--seed={seed}"]
    arguments: list[str | bytes] = [find_command(), "bench", "advise", "--json", *flags, "--", encoded(path=path)]
    return _read_advice(json.loads(_run(arguments, os.fsdecode(path))))


def _run(arguments: list[str | bytes], path: str) -> bytes:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # A session of its own: Ctrl-C in the terminal reaches it once, by the signal below.
        process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
        )
        try:
            status = process.wait()
        except BaseException:
            # After SIGINT, the command removes its files and ends.
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        if status != 0:
            errors.seek(0)
            message = errors.read().decode(errors="replace").strip()
            raise FathomError(0, message or f"fathom bench exited with status {status}", path, "measure")
        output.seek(0)
        return output.read()


def _read_advice(document: dict[str, Any]) -> Advice:
    return Advice(
        sentence=document["sentence"],
        commands=tuple(document["commands"]),
        cells=tuple(map(_read_cell, document["verdicts"])),
        conditions=tuple(document["flips"]),
        left_out=tuple(LeftOut(item["cell"], item["reason"]) for item in document["left_out"]),
        document=document,
    )


def _read_cell(verdict: dict[str, Any]) -> Cell:
    candidates = verdict["candidates"]
    return Cell(
        name=verdict["cell"],
        workload=verdict["workload"],
        cache=verdict["cache"],
        method=verdict["method"],
        model=verdict["model"],
        threads=verdict["threads"],
        depth=verdict["depth"],
        ratio=Interval._read(verdict["ratio"]),
        ratio_to_best=Interval._read(verdict["ratio_to_best"]),
        among_best=tuple(verdict["among_best"]),
        matters=verdict["matters"],
        candidates=tuple(Candidate(item["method"], item["predicted_us"], item["measured_us"]) for item in candidates),
    )
