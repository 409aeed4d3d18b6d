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
Makes an inventory of file trees by many workers. Trees and inventory have to be on storage that all
of them see, under the same paths. The inventory is that of 'fathom scan'.
"""
EPILOG = """\
exit status:
  0              The inventory is complete.
  1              There is an inventory, but something is missing in it.
  2              There is none: the command line was wrong, or it could not be written, or the
                 cluster failed. --resume goes on with the units that were finished.
  130, 143, 129  Interrupted, by Ctrl-C, SIGTERM or SIGHUP; there is an inventory of what was found
                 until then, and --resume goes on with it.

examples:
  fathom-scan-cluster --processes 4 -o srv.inv /srv
          Four processes on this machine.
  fathom-scan-cluster --dask tcp://head:8786 -o lustre.inv /lustre
          The workers of a Dask cluster.
  fathom-scan-cluster --slurm --workers 32 --sbatch=--partition=io --deadline 8h -o lustre.inv /lustre
          Array jobs of up to 32 units, for a night.
  fathom-scan-cluster --slurm --workers 32 --sbatch=--partition=io -o lustre.inv --resume
          And the next night, from there on.
  mpiexec -n 65 python -m mpi4py.futures -m fathomfs.distributed --mpi -o lustre.inv /lustre
          64 ranks, and one that drives them.
  fathom-scan-cluster --ray --rate 50000 --max-in-flight 256 -o nfs.inv /mnt/nfs
          The nodes of a Ray cluster, at most 50,000 entries a second in all.
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
        raise argparse.ArgumentTypeError(f"invalid time '{text}': it is a number with a unit, as 90s, 1h30m or 1.5d")
    return sum(float(number) * units[unit] for number, unit in parts)


def positive(text: str) -> int:
    """Parses a number of 1 or more."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"invalid number '{text}': it has to be 1 or more")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The options."""
    raw = argparse.RawDescriptionHelpFormatter
    made = _Parser(PROGRAM, description=DESCRIPTION, epilog=EPILOG, formatter_class=raw, allow_abbrev=False)
    made.add_argument("paths", metavar="PATH", nargs="*", help="a tree; may be left out with --resume")
    made.add_argument("-o", "--output", metavar="INVENTORY", required=True, help="make this inventory")
    engines = made.add_argument_group("workers, one of").add_mutually_exclusive_group()
    engines.add_argument("--processes", metavar="N", type=positive, help="N processes on this machine (the default)")
    engines.add_argument("--dask", metavar="ADDRESS", help="the Dask cluster at ADDRESS; 'local' starts one here")
    engines.add_argument("--ray", action="store_true", help="the Ray cluster of RAY_ADDRESS, or of this machine")
    engines.add_argument("--mpi", action="store_true", help="the other ranks of this MPI job")
    engines.add_argument("--slurm", action="store_true", help="array jobs, which this command submits")
    work = made.add_argument_group("how the work is done")
    work.add_argument("--workers", metavar="N", type=positive, help="run at most N units at once")
    work.add_argument("--threads", metavar="N", type=positive, help="use N threads for each unit instead of adapting")
    work.add_argument("--rate", metavar="N", type=positive, help="examine at most N entries a second in all")
    work.add_argument("--max-in-flight", metavar="N", type=positive, help="have at most N system calls waiting in all")
    work.add_argument("--deadline", metavar="TIME", type=seconds, help="end after TIME (90s, 1h30m, 1.5d)")
    work.add_argument("--budget", metavar="TIME", type=seconds, default=BUDGET_S, help="have units end after TIME (60s)")
    work.add_argument(
        "--max-deaths",
        metavar="N",
        type=positive,
        default=DEATHS_MAX,
        help=f"give up a directory of which N workers have died ({DEATHS_MAX})",
    )
    work.add_argument("--io", metavar="MODEL", default="auto", help="the I/O model of fathom scan (auto)")
    work.add_argument("--sbatch", metavar="OPTION", action="append", default=[], help="a further option of sbatch")
    what = made.add_argument_group("what is scanned")
    what.add_argument("-x", "--one-file-system", action="store_true", help="nothing that is on another file system")
    what.add_argument("--since", metavar="PREVIOUS", help="read only directories that have changed since PREVIOUS")
    what.add_argument("--resume", action="store_true", help="go on with the scan that was to make INVENTORY")
    return made


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit status."""
    options = parser().parse_args(arguments)
    if not options.paths and not options.resume:
        parser().error("no PATH is given")
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
        warn(f"'{options.output}' is incomplete: interrupted; --resume goes on with it")
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
        return f"{completeness['stopped']}; --resume goes on with it"
    return "its table of errors says what could not be read"


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
