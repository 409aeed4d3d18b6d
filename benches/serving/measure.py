"""How one case is measured: bodies first, then blocks in which every server runs once, in shuffled order.

A run is one fresh server on its own processor. All else, this program included, runs on another one: the clients, and
what serves a slow mount. A server that fails, or answers wrongly, leaves the case with the reason.
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
from runner.run import Failure, mounted_at, noise, noise_between

from . import clients
from .process import serving

HOT_CONNECTIONS, COLD_CONNECTIONS = 64, 32
WARM_S, WARM_WRK_S = 0.5, 1
# The cold clients begin before what is measured with them, and end after it.
LEAD_S = 1
SAMPLES_CHECKED = 3
SETTLE_S = 0.5
# Connections are idle when nothing has come for so long.
IDLE_S = 4
# kind of case -> the tree its cold files are from
COLD_SETS = {"mixed": "cold", "random": "many"}
# The tree of one large directory that is listed beside the hot file.
LISTED = "listed"
# Where they are mounted, below the directory that is served.
SLOW = "slow"


@dataclass(frozen=True)
class Settings:
    """What a run was told."""

    seconds: float  # of one measurement
    blocks: int
    rate: int  # hot requests a second beside cold clients
    idle: int  # idle connections
    counted: int  # requests whose system calls are counted
    server_cpu: int


@dataclass
class Result:
    """Everything learnt about one case."""

    case: object
    arms: list
    figures: dict = field(default_factory=dict)  # arm -> block -> figure -> value
    excluded: dict = field(default_factory=dict)  # arm -> reason
    heads: dict = field(default_factory=dict)  # arm -> bytes of the head of its answer
    details: dict = field(default_factory=dict)  # arm -> what else its last run showed
    blocks: int = 0
    load: str = ""

    def values(self, arm, figure):
        """block -> value."""
        return {block: figures[figure] for block, figures in self.figures.get(arm, {}).items()}

    def median(self, arm, figure):
        """Over all its blocks."""
        return statistics.median(self.values(arm, figure).values())


class Bench:
    """Carries out cases; `corpora` is the module that builds trees, `slowfs` the program that mounts them."""

    def __init__(self, arms, settings, corpora, load, slowfs, chance, say):
        self.arms, self.settings, self.corpora = arms, settings, corpora
        self.load, self.slowfs, self.chance, self.say = load, slowfs, chance, say
        self.scratch = None

    def run(self, case):
        """Measures one case."""
        arms = [arm for arm in self.arms if arm.group not in case.without]
        result = Result(case, arms, blocks=max(1, round(self.settings.blocks * case.blocks_factor)))
        self.corpora.corpus("www")
        if case.slow:
            read_all(self.corpora.corpus(COLD_SETS[case.kind]))
        before = noise()
        with tempfile.TemporaryDirectory(prefix="fathom-bench-") as scratch:
            self.scratch = Path(scratch)
            for arm in arms:
                self.attempt(result, arm, lambda arm=arm: self.check(result, arm))
            for block in range(result.blocks):
                self.block(result, block)
        result.load = noise_between(before, noise())
        return result

    def block(self, result, block):
        """Every server that is still in, once, in a new order."""
        order = [arm for arm in result.arms if arm.name not in result.excluded]
        self.chance.shuffle(order)
        self.say(f"{result.case.name}: block {block + 1} of {result.blocks}, {len(order)} servers")
        for arm in order:
            self.attempt(result, arm, lambda arm=arm: self.keep(result, arm, block))

    def attempt(self, result, arm, action):
        """An action whose failure takes the server out of the case."""
        try:
            action()
        except Failure as failure:
            self.say(f"{result.case.name}: {arm.name} is out: {failure}")
            result.excluded[arm.name] = str(failure)

    def keep(self, result, arm, block):
        figures = MEASURES[result.case.kind](self, result, arm)
        result.figures.setdefault(arm.name, {})[block] = figures

    def check(self, result, arm):
        """Its answers must be the files', byte for byte."""
        case = result.case
        with self.server(case, arm) as server:
            result.heads[arm.name] = self.compare(server, hot_path(case))
            for path in self.some_cold(case):
                self.compare(server, path)

    def some_cold(self, case):
        """A few paths, the same for every server."""
        if case.kind not in COLD_SETS:
            return []
        return random.Random(1).sample(self.cold_paths(case), SAMPLES_CHECKED)

    def compare(self, server, path):
        """Fails unless the answer is the file; the bytes of its head."""
        answer, content = clients.fetch(server.port, path), (self.corpora.ROOT / path[1:]).read_bytes()
        if (answer.status, answer.body) != (200, content):
            raise Failure(f"{path}: status {answer.status}, {len(answer.body)} bytes, not the file's {len(content)}")
        return answer.head_bytes

    @contextlib.contextmanager
    def server(self, case, arm):
        """A fresh server, with the files of a case."""
        with self.place(case), serving(arm, self.corpora.ROOT, self.settings.server_cpu) as server:
            yield server

    @contextlib.contextmanager
    def place(self, case):
        """The cold files of a case, cold: on a new mount, or with empty caches."""
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
        """Where the cold files of a case are found, in order."""
        tree = COLD_SETS[case.kind]
        self.corpora.corpus(tree)
        return [f"/{SLOW if case.slow else tree}/{path}" for path in serve_files.paths(tree)]

    def listed(self, name, paths):
        """A file with these paths, for the client."""
        listed = self.scratch / name
        listed.write_text("\n".join(paths) + "\n")
        return listed

    def listed_hot(self, case):
        return self.listed("hot", [hot_path(case)])

    def listed_cold(self, case):
        """In another order each time; of a listing, the one address."""
        if case.kind == "listing":
            self.corpora.corpus(LISTED)
            return self.listed("cold", [f"/{LISTED}/"])
        paths = self.cold_paths(case)
        return self.listed("cold", self.chance.sample(paths, len(paths)))

    def hot(self, result, arm):
        """One file by all connections: requests a second, and what they cost the server."""
        path = hot_path(result.case)
        with self.server(result.case, arm) as server:
            clients.wrk(server.port, path, HOT_CONNECTIONS, WARM_WRK_S)
            spent = Spent(server)
            requests, seconds = clients.wrk(server.port, path, HOT_CONNECTIONS, self.settings.seconds)
            return {"requests_s": requests / seconds, **spent.figures(requests)}

    def mixed(self, result, arm):
        """One small file at a fixed rate: alone, and then while others read cold files, or list a large directory."""
        case, seconds = result.case, self.settings.seconds
        hot, cold = self.listed_hot(case), self.listed_cold(case)
        with self.server(case, arm) as server:
            self.steady(server, hot, WARM_S)
            quiet = self.steady(server, hot, seconds)
            lasting = ("--seconds", seconds + 2 * LEAD_S)
            with self.load.beside(server.port, COLD_CONNECTIONS, cold, *lasting) as end_of_cold:
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
        """The hot file at the fixed rate."""
        words = ("--seconds", seconds, "--rate", self.settings.rate)
        return self.load.run(server.port, HOT_CONNECTIONS, hot, *words, urgent=True)

    def scattered(self, result, arm):
        """Another small file with every request."""
        cold, hot = self.listed_cold(result.case), self.listed_hot(result.case)
        with self.server(result.case, arm) as server:
            self.load.run(server.port, HOT_CONNECTIONS, hot, "--seconds", WARM_S)
            spent = Spent(server)
            said = self.load.run(server.port, HOT_CONNECTIONS, cold, "--seconds", self.settings.seconds)
            costs = spent.figures(said["requests"])
        figures = {name: said[name] for name in ("p50_ms", "p99_ms", "rounds")}
        return {"requests_s": said["requests"] / said["seconds"], **costs, **figures}

    def memory(self, result, arm):
        """Resident memory after one request, and what each connection adds that had one and stays."""
        connections, hot = self.settings.idle, self.listed_hot(result.case)
        with self.server(result.case, arm) as server:
            clients.fetch(server.port, hot_path(result.case))
            time.sleep(SETTLE_S)
            idle = server.resident_kib()
            with self.load.holding(server.port, connections, hot):
                time.sleep(IDLE_S)
                full = server.resident_kib()
        return {"idle_mib": idle / 1024, "full_mib": full / 1024, "connection_kib": (full - idle) / connections}

    def calls(self, result, arm):
        """System calls of one hot request among many."""
        hot, requests = self.listed_hot(result.case), self.settings.counted
        with self.server(result.case, arm) as server:
            self.load.run(server.port, HOT_CONNECTIONS, hot, "--seconds", WARM_S)
            with clients.counting(server.processes()) as counts:
                self.load.run(server.port, HOT_CONNECTIONS, hot, "--count", requests)
        if not counts:
            raise Failure("strace counted nothing")
        each = {name: count / requests for name, count in counts.items()}
        often = [f"{name} {count:.2f}" for name, count in each.items() if count >= 0.005]
        result.details[arm.name] = ", ".join(often)
        return {"calls": sum(each.values())}


MEASURES = {
    "hot": Bench.hot,
    "mixed": Bench.mixed,
    "listing": Bench.mixed,
    "random": Bench.scattered,
    "memory": Bench.memory,
    "calls": Bench.calls,
}


class Spent:
    """What a server has cost since this was made."""

    def __init__(self, server):
        self.server, self.cpu_s, self.began_s = server, server.cpu_s(), time.monotonic()

    def figures(self, requests):
        cpu_s, seconds = self.server.cpu_s() - self.cpu_s, time.monotonic() - self.began_s
        return {"cpu_us": cpu_s / requests * 1e6, "busy_percent": 100 * cpu_s / seconds}


def read_all(tree):
    """What lies below a slow mount is then in memory, as far as that goes: its delay is all that one waits for."""
    for path in tree.rglob("*.html"):
        path.read_bytes()


def hot_path(case):
    return f"/www/{serve_files.hot_name(case.size)}"
