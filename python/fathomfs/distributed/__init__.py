"""Scans that outgrow one machine: units of a tree, done by many workers, and put together.

>>> import fathomfs.distributed, tempfile
>>> with tempfile.TemporaryDirectory() as temp:
...     inventory = fathomfs.distributed.scan("/usr/share/doc", temp + "/doc.inv", workers=2)
...     inventory.complete
True
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import Any

from .. import Inventory
from .. import open as open_inventory
from .._errors import FathomError, InventoryError
from .._options import StrOrBytesPath, check_callable, check_counts, encoded, encoded_or_none, items, names
from . import _commit
from ._coordinator import BUDGET_S, DEATHS_MAX
from ._driver import ClusterProgress, Driver, Options
from ._engines import Engine, EngineError, open_engine
from ._ramp import FIRST, NETWORK, Ramp, filesystem
from ._worker import ClusterScan, native

__all__ = ["ClusterProgress", "EngineError", "scan"]


def scan(
    roots: StrOrBytesPath | Iterable[StrOrBytesPath],
    out: StrOrBytesPath,
    *,
    executor: Any = None,
    workers: int | None = None,
    threads: int | None = None,
    one_file_system: bool = False,
    since: StrOrBytesPath | None = None,
    deadline: float | None = None,
    rate: int | None = None,
    max_in_flight: int | None = None,
    resume: bool = False,
    io: str = "auto",
    budget: float = BUDGET_S,
    max_deaths: int = DEATHS_MAX,
    progress: Callable[[ClusterProgress], object] | None = None,
    warn: Callable[[str], object] | None = None,
    strict: bool = False,
    sbatch: str | Iterable[str] = (),
) -> Inventory:
    """Scans trees by many workers into the new inventory ``out``, which all of them see.

    ``executor`` is a Dask ``Client``, the address of a Dask scheduler, ``"local"`` (a Dask cluster
    here), ``"ray"``, ``"mpi"``, ``"slurm"`` (``sbatch`` has further options of its array jobs), an
    executor of ``concurrent.futures``, or ``"processes"``, the default: worker processes on this
    machine. ``workers`` is the most units that run at once, ``threads`` the threads of each.
    A unit ends after ``budget`` seconds and leaves the rest to others. If ``max_deaths`` workers die
    of a unit, it is cut, and in the end one directory is given up.
    ``rate`` (entries a second) and ``max_in_flight`` are shared by all workers.

    Ctrl-C and ``deadline`` (seconds) end the scan with an incomplete inventory, which another call
    with ``resume=True`` completes, as it does the scan of a driver that was killed, and one of which
    units were given up. ``strict`` raises an error if anything is missing. ``progress`` is called a few times a second, ``warn``
    with a line for each refused worker, for each directory that could not be scanned, and if there
    is no worker for a minute.
    """
    check_counts(
        workers=workers, threads=threads, rate=rate, max_in_flight=max_in_flight, max_deaths=max_deaths
    )
    paths = _absolute(roots)
    if not paths and not resume:
        raise ValueError("roots: expected at least one path")
    start = time.monotonic()
    options = Options(threads=threads, io=io, rate=rate, in_flight=max_in_flight, budget_s=budget, deaths_max=max_deaths)
    options.progress, options.warn = progress, warn
    options.deadline = None if deadline is None else start + deadline
    options.entries_expected = _expected(paths, since)
    if any(filesystem(path) in NETWORK for path in paths):
        options.ramp = Ramp(FIRST)
    target = os.path.join(os.getcwdb(), encoded(out=out))
    earlier = encoded_or_none(since=since)
    is_new = not os.path.lexists(target + b".part")
    # Before anything is written: an engine that cannot be reached leaves nothing to resume.
    engine = open_engine(executor, workers=workers, threads=threads, options={"sbatch": names(sbatch, "sbatch")})
    try:
        cluster = native().begin_cluster_scan(paths, target, one_file_system, earlier, resume, io)
    except BaseException:
        engine.close(True)
        raise
    try:
        inventory = _run(cluster, engine, options)
    except EngineError:
        if is_new:
            _commit.remove_unbegun(os.fspath(cluster.part))
        raise
    finally:
        cluster.close()
    if strict and not inventory.complete:
        raise InventoryError(0, f"'{os.fsdecode(target)}' is incomplete")
    return inventory


def _run(cluster: ClusterScan, engine: Engine, options: Options) -> Inventory:
    """Runs the driver and puts the tables together."""
    if cluster.finished:
        engine.close(True)
        cluster.remove_part()
        return open_inventory(os.fspath(cluster.part).removesuffix(".part"))
    stopped, kill = None, True
    with _Interrupts() as interrupts:
        options.interrupted = interrupts.came
        try:
            driver = Driver(cluster, engine, options)
            stopped = driver.run()
            kill = stopped is not None
        finally:
            engine.close(kill)
    _commit.remove_orphans(os.fspath(cluster.part))

    def report(seen: Any) -> None:
        driver.report("finish", entries=seen.entries)

    inner = cluster.finish(stopped, None if options.progress is None else report)
    driver.report("finish", force=True)
    if stopped == "interrupted":
        raise KeyboardInterrupt
    return Inventory(inner)


class _Interrupts:
    """Notes the first Ctrl-C: running units return what they have. The second one is as usual."""

    def __init__(self) -> None:
        self._came = False
        self._former: Any = None

    def came(self) -> bool:
        return self._came

    def __enter__(self) -> _Interrupts:
        former = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is threading.main_thread() and callable(former):
            self._former = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._former is not None:
            signal.signal(signal.SIGINT, self._former)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._came:
            self._former(number, frame)
        self._came = True


def _absolute(roots: StrOrBytesPath | Iterable[StrOrBytesPath]) -> list[bytes]:
    """Makes operands absolute: workers have other working directories."""
    if isinstance(roots, (str, bytes, os.PathLike)):
        roots = [roots]
    paths = [os.path.join(os.getcwdb(), encoded(roots=root)) for root in items("roots", roots)]
    # With a symbolic link before it, ".." is not what a normalized path says.
    return [path if b".." in path.split(b"/") else os.path.normpath(path) for path in paths]


def _expected(paths: list[bytes], since: StrOrBytesPath | None) -> int | None:
    """The number of entries of the earlier inventory, or of inodes of whole filesystems."""
    if since is not None:
        try:
            return len(open_inventory(since))
        except FathomError:
            # The scan itself says why.
            return None
    inodes = 0
    for path in paths:
        try:
            if not os.path.ismount(path):
                return None
            found = os.statvfs(path)
        except OSError:
            return None
        inodes += found.f_files - found.f_ffree
    return inodes or None
