"""A server process on one core: start, wait for readiness, inspect, stop."""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from runner.run import ENVIRONMENT, Failure
from serve_arms import replaced

START_S, END_S = 20, 10
TICKS_S = os.sysconf("SC_CLK_TCK")
PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


@dataclass(frozen=True)
class Server:
    """A running server."""

    pid: int
    port: int

    def processes(self):
        """Returns its process and all descendants."""
        found = [self.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        return found

    def cpu_s(self):
        """Returns the CPU time of all its processes, with the resolution of a clock tick (10 ms).
        """
        return sum(ticks(Path(f"/proc/{pid}/stat").read_text()) for pid in self.processes()) / TICKS_S

    def resident_kib(self):
        """Returns resident memory; pages shared by several processes count for each of them."""
        sizes = [Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in self.processes()]
        return sum(map(int, sizes)) * PAGE_KIB


def ticks(stat):
    """Returns user plus system time from a line of /proc/PID/stat; the program name may contain
    anything.
    """
    user, system = stat.rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


@contextlib.contextmanager
def serving(arm, root, cpu):
    """Runs the server of an arm on one processor for the duration of the context."""
    with tempfile.TemporaryDirectory(prefix="fathom-bench-") as scratch, tempfile.TemporaryFile() as errors:
        port = free_port()
        names = names_for(port, root, Path(scratch))
        (Path(scratch) / "conf").write_text(replaced(arm.configuration, names))
        process = subprocess.Popen(
            [shutil.which("taskset") or "taskset", "-c", str(cpu), *arm.argv(names)],
            cwd=scratch,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            wait_for(process, port, errors)
            yield Server(process.pid, port)
        finally:
            terminate(process)


def names_for(port, root, scratch):
    """Returns the values of the placeholders in commands and configurations."""
    return {
        "PORT": port,
        "ROOT": root,
        "SCRATCH": scratch,
        "CONF": scratch / "conf",
        "USER": "user root;" if os.geteuid() == 0 else "",
        "LIMIT": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_for(process, port, errors):
    """Waits until the server accepts connections. Raises Failure with its last message if it exits.
    """
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    raise Failure(f"does not start: {lines[-1] if lines else 'no message'}")


def terminate(process):
    """Terminates the whole process group, at last with SIGKILL."""
    for number, patience_s in ((signal.SIGTERM, END_S), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            return


def raise_descriptor_limit(wanted):
    """Raises the limit as far as permitted and returns the resulting limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((wanted, max(wanted, hard)), (hard, hard)):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limits[0]), limits[1]))
            break
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
