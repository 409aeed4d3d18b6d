"""Clients: wrk for hot files, floor/load.c for other loads, Python for single requests; and strace.
"""

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
    """The response to one request."""

    status: int
    head_bytes: int
    body: bytes


def fetch(port, path):
    """Sends one request with Python's HTTP client."""
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
    """Runs a closed loop on one thread. Returns (requests, seconds)."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", f"http://127.0.0.1:{port}{path}"]
    return parse_wrk(output_of(command))


def parse_wrk(text):
    """Parses the output of wrk into (requests, seconds). Raises Failure on wrong or missing
    responses.
    """
    wrong = re.search(r"^ *(Socket errors:.*|Non-2xx.*)$", text, re.MULTILINE)
    if wrong:
        raise Failure(f"wrk: {wrong.group(1)}")
    found = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m),", text)
    if not found or found.group(1) == "0":
        raise Failure(f"wrk: {text.strip().splitlines()[-1] if text.strip() else 'no output'}")
    return int(found.group(1)), float(found.group(2)) * {"ms": 0.001, "s": 1, "m": 60}[found.group(3)]


class Load:
    """Runs floor/load.c. With `urgent` it has a higher priority on its processor, so that its clock
    is exact.
    """

    def __init__(self, program):
        self.program = program
        chrt = ["chrt", "-f", "10"]
        self.before_others = chrt if shutil.which("chrt") and succeeds([*chrt, "true"]) else []

    def run(self, port, connections, paths, *words, urgent=False):
        """Runs it to its end and returns its results. Raises Failure on a wrong response."""
        return self.said(output_of(self.command(port, connections, paths, *words, urgent=urgent)))

    @contextlib.contextmanager
    def run_in_background(self, port, connections, paths, *words):
        """Runs it during the context. Yields a function that waits for its end and returns its
        results.
        """
        with start_process(self.command(port, connections, paths, *words)) as process:
            yield lambda: self.said(wait_output(process))

    @contextlib.contextmanager
    def hold_connections(self, port, connections, paths):
        """Holds open connections that have had one response each."""
        with start_process(self.command(port, connections, paths, "--hold"), stdin=subprocess.PIPE) as process:
            line = process.stdout.readline()
            if not line:
                raise Failure(wait_output(process))
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
def count_syscalls(pids):
    """Counts system calls of processes and their threads. The yielded name -> number is filled at
    the end.
    """
    counts = {}
    targets = [word for pid in pids for word in ("-p", str(pid))]
    with start_process(["strace", "-f", "-c", "-S", "calls", *targets], stderr=subprocess.PIPE) as process:
        attached = process.stderr.readline()
        if "attached" not in attached:
            raise Failure(attached.strip() or "strace cannot attach")
        # Drain standard error: strace's messages about new threads must not fill the pipe.
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stderr))
        reader.start()
        yield counts
        process.send_signal(signal.SIGINT)
        reader.join()
    counts.update(parse_strace("".join(lines)))


def parse_strace(text):
    """Parses the table of `strace -c` into name -> number of calls."""
    pattern = r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?([a-z]\w*)$"
    return {name: int(count) for count, name in re.findall(pattern, text, re.MULTILINE) if name != "total"}


def output_of(command):
    with start_process(command) as process:
        return wait_output(process)


def wait_output(process):
    """Returns the output of a process. Raises Failure on a nonzero exit status."""
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"no end after {TIMEOUT_S} s") from None
    if process.returncode != 0:
        lines = (stderr or "").strip().splitlines()
        raise Failure(lines[-1] if lines else f"exit status {process.returncode}")
    return stdout


@contextlib.contextmanager
def start_process(command, **streams):
    """Starts a process that ends with the context at the latest."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    try:
        process = subprocess.Popen(command, text=True, **streams)
    except FileNotFoundError:
        raise Failure(f"no program {command[0]}") from None
    try:
        yield process
    finally:
        with process:  # closes its streams and waits
            if process.poll() is None:
                process.kill()


def succeeds(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
