"""How one case is measured: agreement first, then blocks in which every arm runs once, in shuffled order.

A run is one process under `timed` (floor/timed.c). An arm that fails, or answers wrongly, leaves the case with the
reason; one that takes SLOW_FACTOR times the baseline's time, and more than SLOW_S, runs in the first SLOW_BLOCKS only.
"""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT_S = 900
SLOW_FACTOR = 4
SLOW_S = 1
SLOW_BLOCKS = 3
PROGRESS_S = 5
NOWHERE = Path(os.devnull, "none")
# No variables that would change what a program prints, and a home without anybody's configuration.
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent"}


class Failure(Exception):
    """Why an arm is out of a case."""


@dataclass(frozen=True)
class Sample:
    """What one run cost."""

    case: str
    arm: str
    block: int
    seconds: float
    user_s: float
    system_s: float
    maxrss_kib: int


@dataclass
class Result:
    """Everything learnt about one case."""

    case: object
    entries: int = 0  # in the tree
    samples: dict = field(default_factory=dict)  # arm -> block -> Sample
    excluded: dict = field(default_factory=dict)  # arm -> reason
    blocks: int = 0
    load: str = ""
    answer: str = ""  # what the baseline printed, summed up
    printed: dict = field(default_factory=dict)  # arm -> bytes of its output when it was checked
    made: dict = field(default_factory=dict)  # arm -> bytes of what it made when it was checked, if it makes something

    def add(self, sample):
        """Keeps one run."""
        self.samples.setdefault(sample.arm, {})[sample.block] = sample

    def slow(self, arm):
        """Whether an arm's first run was so long that a few show enough."""
        baseline = next((other for other in self.case.arms if other.group == "baseline"), None)
        own, theirs = (self.samples.get(a.name, {}).get(0) if a else None for a in (arm, baseline))
        return bool(own and theirs and own.seconds > max(SLOW_S, SLOW_FACTOR * theirs.seconds))


class Runner:
    """Carries out cases with one set of programs; `corpora` is the module that builds the trees."""

    def __init__(self, tools, corpora, random, say):
        self.tools, self.corpora, self.random, self.say = tools, corpora, random, say
        self.said_s = -PROGRESS_S
        self.out, self.prepared = NOWHERE, {}

    def run(self, case, blocks):
        """Measures one case."""
        blocks = max(1, round(blocks * case.blocks_factor))
        if case.cold and os.geteuid() != 0:
            raise Failure("dropping caches needs root")
        with self.tree(case) as place, self.scratch(case, place):
            result = Result(case, self.corpora.facts_of(case.corpus)["entries"], blocks=blocks)
            if case.reload and os.geteuid() == 0:
                self.drop_caches([word for arm in case.arms for word in arm.argv(self.names(place[1]))])
            before = noise()
            present = self.admitted(result, place)
            for block in range(blocks):
                self.block(result, present, block, place)
            result.load = noise_between(before, noise())
        return result

    @contextlib.contextmanager
    def tree(self, case):
        """The directory to run in, and the name of the tree in it."""
        path = self.corpora.corpus(case.corpus)
        if not case.slow:
            yield path.parent, path.name
            return
        with mounted(self.tools.slowfs, path) as mount:
            yield mount.parent, mount.name

    @contextlib.contextmanager
    def scratch(self, case, place):
        """Room for what arms make, on the filesystem of the trees, and for what the case prepares."""
        with tempfile.TemporaryDirectory(prefix="fathom-bench-", dir=self.corpora.ROOT) as scratch:
            self.out = Path(scratch) / "out"
            self.prepared = {word: Path(scratch) / f"made-{at}" for at, word in enumerate(case.prepare)}
            for word, command in case.prepare.items():
                self.say(f"{case.name}: preparing {word}")
                self.prepare(command, place)
            yield

    def prepare(self, command, place):
        names = self.names(place[1])
        _, stderr, status = self.communicate([names.get(word, word) for word in command], place[0])
        if status != 0:
            raise Failure(f"preparing it failed: {stderr.decode(errors='replace').strip()}")

    def names(self, tree):
        """What words in commands stand for."""
        return {
            "TREE": tree,
            "EMPTY": str(self.corpora.corpus("empty")),
            "OUT": str(self.out),
            **{word: str(path) for word, path in self.prepared.items()},
        }

    def clear(self):
        """Removes what a run made; how many bytes that was."""
        if not self.out.exists():
            return 0
        files = [path for path in (self.out, *self.out.rglob("*")) if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        shutil.rmtree(self.out) if self.out.is_dir() else self.out.unlink()
        return size

    def admitted(self, result, place):
        """The arms that work here and give the right answer; of the others, `result` keeps the reason."""
        case, present = result.case, []
        # Of the tree itself, also where it is measured through a mount.
        expected = case.expected(self.corpora.corpus(case.corpus)) if case.expected else None
        for arm in sorted(case.arms, key=lambda arm: arm.group != "baseline"):
            try:
                output = self.answer(arm, place)
                result.made[arm.name] = self.clear()
                if expected is None:
                    expected = self.first_answer(result, arm, output)
                complaint = arm.answer.complaint(output, place[1], expected)
            except Failure as failure:
                complaint = str(failure)
            if complaint:
                self.exclude(result, arm, complaint)
            else:
                result.printed[arm.name] = len(output)
                present.append(arm)
        return present

    def first_answer(self, result, arm, output):
        """The baseline's, which all others are compared with."""
        if arm.group != "baseline":
            raise Failure("the baseline has no answer to compare with")
        result.answer = arm.answer.summary(output)
        return output

    def answer(self, arm, place):
        directory, tree = place
        command = arm.argv(self.names(tree), checking=True)
        stdout, stderr, status = self.communicate(command, directory)
        if status != 0:
            lines = stderr.decode(errors="replace").strip().splitlines()
            raise Failure(f"exit status {status}: {lines[-1] if lines else 'no message'}")
        return stdout

    def block(self, result, present, block, place):
        """Every arm that is still in, once, in a new order."""
        order = [arm for arm in present if arm.name not in result.excluded]
        if block >= SLOW_BLOCKS:
            order = [arm for arm in order if not result.slow(arm)]
        self.random.shuffle(order)
        self.progress(f"{result.case.name}: block {block + 1} of {result.blocks}, {len(order)} arms")
        for arm in order:
            try:
                result.add(self.sample(result, arm, block, place))
            except Failure as failure:
                self.exclude(result, arm, f"block {block + 1}: {failure}")

    def sample(self, result, arm, block, place):
        case, (directory, tree) = result.case, place
        command = arm.argv(self.names(tree))
        if case.cold:
            self.drop_caches(command)
        timer = [self.tools.timed, *(["--drain"] if case.drain else []), *command]
        stdout, stderr, status = self.communicate(timer, directory)
        self.clear()
        if status != 0:
            raise Failure(stderr.decode(errors="replace").strip())
        seconds, user, system, maxrss, code, count = stdout.split()
        if int(code) != 0:
            raise Failure(f"exit status {int(code)}")
        if case.drain and int(count) != result.printed[arm.name]:
            raise Failure(f"{int(count)} bytes came through the pipe, not {result.printed[arm.name]}")
        return Sample(case.name, arm.name, block, float(seconds), float(user), float(system), int(maxrss))

    def drop_caches(self, command):
        """An empty cache but for the programs and their libraries: what is measured is the tree."""
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        for word in (self.tools.timed, *command):
            if os.path.isabs(word) and os.path.isfile(word):
                for path in (word, *libraries(word)):
                    Path(path).read_bytes()

    def communicate(self, command, directory):
        """(stdout, stderr, status), in a process group of its own so that a hanging arm can be ended whole."""
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failure(f"no end after {TIMEOUT_S} s") from None
            raise
        return stdout, stderr, process.returncode

    def progress(self, text):
        if time.monotonic() - self.said_s > PROGRESS_S:
            self.said_s = time.monotonic()
            self.say(text)

    def exclude(self, result, arm, reason):
        self.say(f"{result.case.name}: {arm.name} is out: {reason}")
        result.excluded[arm.name] = reason


@contextlib.contextmanager
def mounted(slowfs, source):
    """`source` through slowfs with its 1 ms, for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="fathom-bench-") as scratch:
        mount = Path(scratch) / source.name
        mount.mkdir()
        with mounted_at(slowfs, source, mount):
            yield mount


@contextlib.contextmanager
def mounted_at(slowfs, source, mount):
    """The same, at a directory that is there."""
    command = [slowfs, str(source), str(mount), "--delay-us", "1000", "--die-with-parent"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            if not server.stdout.readline().startswith("mounted"):
                raise Failure(server.stderr.read().strip())
            yield
        finally:
            server.terminate()
            server.wait()


@functools.cache
def libraries(program):
    """The shared libraries that a program loads; none of a static program or a script."""
    try:
        listed = subprocess.run(["ldd", program], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    except OSError:
        return ()
    return tuple(re.findall(r"(/\S+) \(0x", listed))


def noise():
    """(steal and total ticks of all CPUs, load average)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return ticks[7], sum(ticks[:8]), os.getloadavg()[0]


def noise_between(before, after):
    """In words, how much else the machine did."""
    total = max(after[1] - before[1], 1)
    steal = 100 * (after[0] - before[0]) / total
    return f"load {before[2]:.1f} before and {after[2]:.1f} after, {steal:.1f} % of CPU time stolen"
