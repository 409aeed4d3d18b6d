"""The command ``fathom-scan-cluster``: ``fathom scan`` by many workers."""

from __future__ import annotations

import argparse
import re
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

from .._errors import FathomError
from . import ClusterProgress, scan
from ._coordinator import BUDGET_S, DEATHS_MAX

PROGRAM = "fathom-scan-cluster"
DESCRIPTION = """\
Records file trees in an inventory of 'fathom scan', by many workers. All workers must see trees and
inventory under the same paths.
"""
EPILOG = """\
exit status:
  0              The inventory is complete.
  1              The inventory was written, but something is missing in it.
  2              No inventory was written: the command line is wrong, writing failed, or the cluster
                 failed. --resume continues from the finished units.
  130, 143, 129  Interrupted by Ctrl-C, SIGTERM or SIGHUP; the inventory has what was found, and
                 --resume continues it.

examples:
  fathom-scan-cluster --processes 4 -o srv.inv /srv
          Four processes on this machine.
  fathom-scan-cluster --dask tcp://head:8786 -o lustre.inv /lustre
          The workers of a Dask cluster.
  fathom-scan-cluster --slurm --workers 32 --sbatch=--partition=io --deadline 8h -o lustre.inv /lustre
          Array jobs of up to 32 units, for a night.
  fathom-scan-cluster --slurm --workers 32 --sbatch=--partition=io -o lustre.inv --resume
          Continue the next night.
  mpiexec -n 65 python -m mpi4py.futures -m fathomfs.distributed --mpi -o lustre.inv /lustre
          64 ranks, and a rank that drives them.
  fathom-scan-cluster --ray --rate 50000 --max-in-flight 256 -o nfs.inv /mnt/nfs
          The nodes of a Ray cluster, at most 50,000 entries per second in all.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: {message}\nTry '{PROGRAM} --help' for more information.\n")


def seconds(text: str) -> float:
    """Parses a time as fathom scan does.

    >>> seconds("90s"), seconds("1h30m"), seconds("1.5d"), seconds("1w"), seconds("500ms")
    (90.0, 5400.0, 129600.0, 604800.0, 0.5)
    """
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|[smhdwy])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"invalid time '{text}': expected a number with a unit, such as 90s, 1h30m or 1.5d")
    return sum(float(number) * units[unit] for number, unit in parts)


def positive(text: str) -> int:
    """Parses a number of 1 or more."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"invalid number '{text}': expected 1 or more")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The options."""
    raw = argparse.RawDescriptionHelpFormatter
    made = _Parser(PROGRAM, description=DESCRIPTION, epilog=EPILOG, formatter_class=raw, allow_abbrev=False)
    made.add_argument("paths", metavar="PATH", nargs="*", help="a tree to scan; optional with --resume")
    made.add_argument("-o", "--output", metavar="INVENTORY", required=True, help="write the inventory to the new directory INVENTORY")
    engines = made.add_argument_group("workers (choose one)").add_mutually_exclusive_group()
    engines.add_argument("--processes", metavar="N", type=positive, help="use N processes on this machine (default: one per CPU)")
    engines.add_argument("--dask", metavar="ADDRESS", help="use the Dask cluster at ADDRESS; 'local' starts a cluster here")
    engines.add_argument("--ray", action="store_true", help="use the Ray cluster of RAY_ADDRESS, or of this machine")
    engines.add_argument("--mpi", action="store_true", help="use the other ranks of this MPI job")
    engines.add_argument("--slurm", action="store_true", help="submit array jobs to Slurm")
    work = made.add_argument_group("performance and limits")
    work.add_argument("--workers", metavar="N", type=positive, help="run at most N units at once")
    work.add_argument("--threads", metavar="N", type=positive, help="use N threads for each unit instead of adapting")
    work.add_argument("--rate", metavar="N", type=positive, help="read at most N entries per second in all (default: no limit)")
    work.add_argument("--max-in-flight", metavar="N", type=positive, help="run at most N system calls at once in all (default: no limit)")
    work.add_argument("--deadline", metavar="TIME", type=seconds, help="stop after TIME, such as 90s, 1h30m or 1.5d, and keep what was found")
    work.add_argument("--budget", metavar="TIME", type=seconds, default=BUDGET_S, help="stop each unit after TIME (default: 60s)")
    work.add_argument(
        "--max-deaths",
        metavar="N",
        type=positive,
        default=DEATHS_MAX,
        help=f"skip a directory that killed N workers (default: {DEATHS_MAX})",
    )
    work.add_argument("--io", metavar="MODEL", default="auto", help="choose the I/O model of fathom scan (default: auto)")
    work.add_argument("--sbatch", metavar="OPTION", action="append", default=[], help="pass OPTION to sbatch; repeatable")
    what = made.add_argument_group("input")
    what.add_argument("-x", "--one-file-system", action="store_true", help="stay on the file system of each PATH")
    what.add_argument("--since", metavar="PREVIOUS", help="read only directories that have changed since PREVIOUS")
    what.add_argument("--resume", action="store_true", help="continue the scan of INVENTORY that was stopped")
    return made


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser().parse_args(arguments)
    if not options.paths and not options.resume:
        parser().error("missing operand: PATH to scan")
    signals = _Signals()
    terminal = _Terminal() if sys.stderr.isatty() else None
    executor, workers = _executor(options)
    try:
        inventory = scan(
            options.paths,
            options.output,
            executor=executor,
            workers=workers,
            threads=options.threads,
            one_file_system=options.one_file_system,
            since=options.since,
            deadline=options.deadline,
            rate=options.rate,
            max_in_flight=options.max_in_flight,
            resume=options.resume,
            io=options.io,
            budget=options.budget,
            max_deaths=options.max_deaths,
            progress=terminal,
            warn=warn,
            sbatch=options.sbatch,
        )
    except KeyboardInterrupt:
        warn(f"'{options.output}' is incomplete: interrupted; --resume continues it")
        return 128 + signals.number
    except (OSError, ValueError, ImportError) as error:
        warn(_cause(error))
        return 2
    finally:
        if terminal is not None:
            terminal.clear()
    if not inventory.complete:
        warn(f"'{options.output}' is incomplete: {_missing(inventory.manifest)}")
    return 0 if inventory.complete else 1


def warn(message: str) -> None:
    """Prints a message."""
    print(f"{PROGRAM}: {message}", file=sys.stderr)


def _executor(options: argparse.Namespace) -> tuple[Any, int | None]:
    for name in ("ray", "mpi", "slurm"):
        if getattr(options, name):
            return name, options.workers
    if options.dask is not None:
        return options.dask, options.workers
    return "processes", options.processes or options.workers


def _cause(error: Exception) -> str:
    if isinstance(error, FathomError) or not isinstance(error, OSError):
        return str(error)
    where = f" '{error.filename}'" if error.filename is not None else ""
    return f"cannot use{where}: {error.strerror or error}"


def _missing(manifest: dict[str, Any]) -> str:
    completeness = manifest.get("completeness") or {}
    if completeness.get("stopped"):
        return f"{completeness['stopped']}; --resume continues it"
    return "its table of errors lists what could not be read"


class _Signals:
    """SIGTERM and SIGHUP do as Ctrl-C does, and their number is kept."""

    def __init__(self) -> None:
        self.number = int(signal.SIGINT)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._pass_on)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)


class _Terminal:
    """A line of progress."""

    def __call__(self, progress: ClusterProgress) -> None:
        units = f"{progress.units_done} of {progress.units_done + progress.units_running + progress.units_queued} units"
        of = f" of about {progress.entries_expected:,}" if progress.entries_expected else ""
        rate = f"{progress.rate:,.0f}/s" if progress.phase == "scan" else "putting the tables together"
        line = f"{progress.entries:,}{of} entries, {units}, {progress.workers} workers, {rate}"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line."""
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
