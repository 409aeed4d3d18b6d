"""What asks servers: wrk for hot files, floor/load.c for all else, Python for single answers; and strace beside them."""

import contextlib
import http.client
import json
import re
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass

from runner.run import Failure

TIMEOUT_S = 900


@dataclass(frozen=True)
class Answer:
    """What one request brought."""

    status: int
    head_bytes: int
    body: bytes


def fetch(port, path):
    """One request, by Python's own client."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        with contextlib.closing(connection):
            connection.putrequest("GET", path, skip_accept_encoding=True)
            connection.endheaders()
            response = connection.getresponse()
            return Answer(response.status, head_bytes(response), response.read())
    except (OSError, http.client.HTTPException) as error:
        raise Failure(f"{path}: {error or type(error).__name__}") from None


def head_bytes(response):
    line = f"HTTP/1.1 {response.status} {response.reason}\r\n"
    return len(line) + sum(len(f"{name}: {value}\r\n") for name, value in response.getheaders()) + 2


def wrk(port, path, connections, seconds):
    """(requests, seconds) of a closed loop on one thread."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", f"http://127.0.0.1:{port}{path}"]
    return wrk_said(output_of(command))


def wrk_said(text):
    """(requests, seconds) of what wrk prints; an answer that was wrong or none is a failure."""
    wrong = re.search(r"^ *(Socket errors:.*|Non-2xx.*)$", text, re.MULTILINE)
    if wrong:
        raise Failure(f"wrk: {wrong.group(1)}")
    found = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m),", text)
    if not found or found.group(1) == "0":
        raise Failure(f"wrk: {text.strip().splitlines()[-1] if text.strip() else 'no output'}")
    return int(found.group(1)), float(found.group(2)) * {"ms": 0.001, "s": 1, "m": 60}[found.group(3)]


class Load:
    """floor/load.c; `urgent` runs go before others on the same processor, so that their clock is right."""

    def __init__(self, program):
        self.program = program
        chrt = ["chrt", "-f", "10"]
        self.before_others = chrt if shutil.which("chrt") and succeeds([*chrt, "true"]) else []

    def run(self, port, connections, paths, *words, urgent=False):
        """What it said; an answer that was wrong is a failure."""
        return self.said(output_of(self.command(port, connections, paths, *words, urgent=urgent)))

    @contextlib.contextmanager
    def beside(self, port, connections, paths, *words):
        """It runs while the context lasts; yields a function that waits for its end and says what it said."""
        with started(self.command(port, connections, paths, *words)) as process:
            yield lambda: self.said(finished(process))

    @contextlib.contextmanager
    def holding(self, port, connections, paths):
        """So many open connections that have had one answer each."""
        with started(self.command(port, connections, paths, "--hold"), stdin=subprocess.PIPE) as process:
            line = process.stdout.readline()
            if not line:
                raise Failure(finished(process))
            self.said(line)
            yield
            process.stdin.close()

    def command(self, port, connections, paths, *words, urgent=False):
        command = [self.program, port, connections, paths, *words]
        return [*(self.before_others if urgent else []), *map(str, command)]

    @staticmethod
    def said(text):
        said = json.loads(text)
        if said["errors"]:
            raise Failure(f"{said['errors']} of {said['requests']} answers were wrong")
        return said


@contextlib.contextmanager
def counting(pids):
    """Counts the system calls of processes and their threads; yields name -> number, filled when the context ends."""
    counts = {}
    targets = [word for pid in pids for word in ("-p", str(pid))]
    with started(["strace", "-f", "-c", "-S", "calls", *targets], stderr=subprocess.PIPE) as process:
        attached = process.stderr.readline()
        if "attached" not in attached:
            raise Failure(attached.strip() or "strace cannot attach")
        # What it says of further threads must not fill the pipe.
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stderr))
        reader.start()
        yield counts
        process.send_signal(signal.SIGINT)
        reader.join()
    counts.update(strace_said("".join(lines)))


def strace_said(text):
    """Name -> number of calls of the table that `strace -c` prints."""
    pattern = r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?([a-z]\w*)$"
    return {name: int(count) for count, name in re.findall(pattern, text, re.MULTILINE) if name != "total"}


def output_of(command):
    with started(command) as process:
        return finished(process)


def finished(process):
    """What a process printed; its end with another status than 0 is a failure."""
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"no end after {TIMEOUT_S} s") from None
    if process.returncode != 0:
        lines = (stderr or "").strip().splitlines()
        raise Failure(lines[-1] if lines else f"exit status {process.returncode}")
    return stdout


@contextlib.contextmanager
def started(command, **streams):
    """A process that does not outlive the context."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    try:
        process = subprocess.Popen(command, text=True, **streams)
    except FileNotFoundError:
        raise Failure(f"no program {command[0]}") from None
    try:
        yield process
    finally:
        with process:  # which closes its streams and waits
            if process.poll() is None:
                process.kill()


def succeeds(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
