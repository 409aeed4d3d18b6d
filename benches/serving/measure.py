"""Execution of a case: verification first, then blocks in which every server runs once, in shuffled
order.

A run is a fresh server on its own processor. All other processes run on another one: the clients,
this program, and slowfs. A server that fails, or responds wrongly, is excluded with the reason.
"""

import contextlib
import os
import random
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import serve_files
from runner.run import Failure, describe_load, machine_load, mounted_at

from . import clients
from .process import serving

HOT_CONNECTIONS, COLD_CONNECTIONS = 64, 32
WARM_S, WARM_WRK_S = 0.5, 1
# The cold clients start this long before the measurement, and end this long after it.
LEAD_S = 1
SAMPLES_CHECKED = 3
SETTLE_S = 0.5
# Time without traffic after which the connections count as idle.
IDLE_S = 4
# kind of case -> the tree of its cold files
COLD_SETS = {"mixed": "cold", "random": "many"}
# The tree of one large directory that is listed during the measurement of the hot file.
LISTED = "listed"
# Mount point of the cold files, below the served directory.
SLOW = "slow"


@dataclass(frozen=True)
class Settings:
    """The parameters of a run."""

    seconds: float  # duration of one measurement
    blocks: int
    rate: int  # hot requests per second while cold clients run
    idle: int  # number of idle connections
    counted: int  # requests whose system calls are counted
    server_cpu: int


@dataclass
class Result:
    """The results of a case."""

    case: object
    arms: list
    figures: dict = field(default_factory=dict)  # arm -> block -> figure -> value
    excluded: dict = field(default_factory=dict)  # arm -> reason
    heads: dict = field(default_factory=dict)  # arm -> bytes of the head of its response
    details: dict = field(default_factory=dict)  # arm -> further results of its last run
    blocks: int = 0
    load: str = ""

    def values(self, arm, figure):
        """Returns block -> value."""
        return {block: figures[figure] for block, figures in self.figures.get(arm, {}).items()}

    def median(self, arm, figure):
        """Returns the median over all blocks."""
        return statistics.median(self.values(arm, figure).values())


class ServeBench:
    """Executes cases; `corpora` is the module that builds trees, `slowfs` the program that mounts
    them.
    """

    def __init__(self, arms, settings, corpora, load, slowfs, rng, log):
        self.arms, self.settings, self.corpora = arms, settings, corpora
        self.load, self.slowfs, self.rng, self.log = load, slowfs, rng, log
        self.scratch = None

    def run(self, case):
        """Measures a case."""
        arms = [arm for arm in self.arms if arm.group not in case.without]
        result = Result(case, arms, blocks=max(1, round(self.settings.blocks * case.blocks_factor)))
        self.corpora.corpus("www")
        if case.slow:
            read_all(self.corpora.corpus(COLD_SETS[case.kind]))
        before = machine_load()
        with tempfile.TemporaryDirectory(prefix="fathom-bench-") as scratch:
            self.scratch = Path(scratch)
            for arm in arms:
                self.attempt(result, arm, lambda arm=arm: self.check(result, arm))
            for block in range(result.blocks):
                self.block(result, block)
        result.load = describe_load(before, machine_load())
        return result

    def block(self, result, block):
        """Runs every server that is not excluded once, in random order."""
        order = [arm for arm in result.arms if arm.name not in result.excluded]
        self.rng.shuffle(order)
        self.log(f"{result.case.name}: block {block + 1} of {result.blocks}, {len(order)} servers")
        for arm in order:
            self.attempt(result, arm, lambda arm=arm: self.keep(result, arm, block))

    def attempt(self, result, arm, action):
        """Performs an action. Its failure excludes the server from the case."""
        try:
            action()
        except Failure as failure:
            self.log(f"{result.case.name}: {arm.name} is out: {failure}")
            result.excluded[arm.name] = str(failure)

    def keep(self, result, arm, block):
        figures = MEASURES[result.case.kind](self, result, arm)
        result.figures.setdefault(arm.name, {})[block] = figures

    def check(self, result, arm):
        """Verifies that the server's responses equal the files, byte for byte."""
        case = result.case
        with self.server(case, arm) as server:
            result.heads[arm.name] = self.compare(server, hot_path(case))
            for path in self.sample_cold_paths(case):
                self.compare(server, path)

    def sample_cold_paths(self, case):
        """Returns a few paths, the same for every server."""
        if case.kind not in COLD_SETS:
            return []
        return random.Random(1).sample(self.cold_paths(case), SAMPLES_CHECKED)

    def compare(self, server, path):
        """Raises Failure unless the response equals the file. Returns the bytes of the response
        head.
        """
        answer, content = clients.fetch(server.port, path), (self.corpora.ROOT / path[1:]).read_bytes()
        if (answer.status, answer.body) != (200, content):
            raise Failure(f"{path}: status {answer.status}, {len(answer.body)} bytes, not the file's {len(content)}")
        return answer.head_bytes

    @contextlib.contextmanager
    def server(self, case, arm):
        """Starts a fresh server, with the files of the case in place."""
        with self.place(case), serving(arm, self.corpora.ROOT, self.settings.server_cpu) as server:
            yield server

    @contextlib.contextmanager
    def place(self, case):
        """Provides the cold files of a case uncached: on a new mount, or after dropping caches."""
        if case.kind not in COLD_SETS:
            yield
            return
        source = self.corpora.corpus(COLD_SETS[case.kind])
        if case.slow:
            (self.corpora.ROOT / SLOW).mkdir(exist_ok=True)
            with mounted_at(self.slowfs, source, self.corpora.ROOT / SLOW):
                yield
            return
        if os.geteuid() != 0:
            raise Failure("dropping caches needs root")
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        yield

    def cold_paths(self, case):
        """Returns the paths of the cold files of a case, sorted."""
        tree = COLD_SETS[case.kind]
        self.corpora.corpus(tree)
        return [f"/{SLOW if case.slow else tree}/{path}" for path in serve_files.paths(tree)]

    def listed(self, name, paths):
        """Writes a file with these paths for the client."""
        listed = self.scratch / name
        listed.write_text("\n".join(paths) + "\n")
        return listed

    def write_hot_paths(self, case):
        return self.listed("hot", [hot_path(case)])

    def write_cold_paths(self, case):
        """Writes the cold paths in random order; for a listing, its only path."""
        if case.kind == "listing":
            self.corpora.corpus(LISTED)
            return self.listed("cold", [f"/{LISTED}/"])
        paths = self.cold_paths(case)
        return self.listed("cold", self.rng.sample(paths, len(paths)))

    def hot(self, result, arm):
        """Measures requests per second for one file over all connections, and the server's CPU
        time.
        """
        path = hot_path(result.case)
        with self.server(result.case, arm) as server:
            clients.wrk(server.port, path, HOT_CONNECTIONS, WARM_WRK_S)
            spent = CpuMeter(server)
            requests, seconds = clients.wrk(server.port, path, HOT_CONNECTIONS, self.settings.seconds)
            return {"requests_s": requests / seconds, **spent.figures(requests)}

    def mixed(self, result, arm):
        """Measures one small file at a fixed rate, alone and during a load of cold reads or a large
        listing.
        """
        case, seconds = result.case, self.settings.seconds
        hot, cold = self.write_hot_paths(case), self.write_cold_paths(case)
        with self.server(case, arm) as server:
            self.steady(server, hot, WARM_S)
            quiet = self.steady(server, hot, seconds)
            lasting = ("--seconds", seconds + 2 * LEAD_S)
            with self.load.run_in_background(server.port, COLD_CONNECTIONS, cold, *lasting) as end_of_cold:
                time.sleep(LEAD_S)
                loud = self.steady(server, hot, seconds)
                others = end_of_cold()
        return {
            "quiet_p50_ms": quiet["p50_ms"],
            "quiet_p99_ms": quiet["p99_ms"],
            **{name: loud[name] for name in ("p50_ms", "p99_ms", "max_ms", "unanswered")},
            "growth": loud["p99_ms"] / quiet["p99_ms"],
            "cold_mib_s": others["bytes"] / others["seconds"] / (1 << 20),
            ("listings" if case.kind == "listing" else "cold_rounds"): others["rounds"],
        }

    def steady(self, server, hot, seconds):
        """Requests the hot file at the fixed rate."""
        words = ("--seconds", seconds, "--rate", self.settings.rate)
        return self.load.run(server.port, HOT_CONNECTIONS, hot, *words, urgent=True)

    def random_files(self, result, arm):
        """Measures requests for a different small file each time."""
        cold, hot = self.write_cold_paths(result.case), self.write_hot_paths(result.case)
        with self.server(result.case, arm) as server:
            self.load.run(server.port, HOT_CONNECTIONS, hot, "--seconds", WARM_S)
            spent = CpuMeter(server)
            said = self.load.run(server.port, HOT_CONNECTIONS, cold, "--seconds", self.settings.seconds)
            costs = spent.figures(said["requests"])
        figures = {name: said[name] for name in ("p50_ms", "p99_ms", "rounds")}
        return {"requests_s": said["requests"] / said["seconds"], **costs, **figures}

    def memory(self, result, arm):
        """Measures resident memory after one request, and the memory of each additional idle
        connection.
        """
        connections, hot = self.settings.idle, self.write_hot_paths(result.case)
        with self.server(result.case, arm) as server:
            clients.fetch(server.port, hot_path(result.case))
            time.sleep(SETTLE_S)
            idle = server.resident_kib()
            with self.load.hold_connections(server.port, connections, hot):
                time.sleep(IDLE_S)
                full = server.resident_kib()
        return {"idle_mib": idle / 1024, "full_mib": full / 1024, "connection_kib": (full - idle) / connections}

    def calls(self, result, arm):
        """Counts the system calls of a hot request, averaged over many."""
        hot, requests = self.write_hot_paths(result.case), self.settings.counted
        with self.server(result.case, arm) as server:
            self.load.run(server.port, HOT_CONNECTIONS, hot, "--seconds", WARM_S)
            with clients.count_syscalls(server.processes()) as counts:
                self.load.run(server.port, HOT_CONNECTIONS, hot, "--count", requests)
        if not counts:
            raise Failure("strace counted nothing")
        each = {name: count / requests for name, count in counts.items()}
        often = [f"{name} {count:.2f}" for name, count in each.items() if count >= 0.005]
        result.details[arm.name] = ", ".join(often)
        return {"calls": sum(each.values())}


MEASURES = {
    "hot": ServeBench.hot,
    "mixed": ServeBench.mixed,
    "listing": ServeBench.mixed,
    "random": ServeBench.random_files,
    "memory": ServeBench.memory,
    "calls": ServeBench.calls,
}


class CpuMeter:
    """The CPU time of a server since the construction of this object."""

    def __init__(self, server):
        self.server, self.cpu_s, self.began_s = server, server.cpu_s(), time.monotonic()

    def figures(self, requests):
        cpu_s, seconds = self.server.cpu_s() - self.cpu_s, time.monotonic() - self.began_s
        return {"cpu_us": cpu_s / requests * 1e6, "busy_percent": 100 * cpu_s / seconds}


def read_all(tree):
    """Reads the files below a slow mount into the page cache, so that the delay is the only wait.
    """
    for path in tree.rglob("*.html"):
        path.read_bytes()


def hot_path(case):
    return f"/www/{serve_files.hot_name(case.size)}"
