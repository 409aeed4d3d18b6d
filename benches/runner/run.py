"""Execution of a case: verification first, then blocks in which every arm runs once, in shuffled
order.

A run is one process under `timed` (floor/timed.c). An arm that fails, or prints a wrong output, is
excluded with the reason. An arm that takes SLOW_FACTOR times the baseline's time, and more than
SLOW_S, only runs in the first SLOW_BLOCKS blocks.
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
# No environment variables that change a program's output, and no user configuration.
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent"}


class Failure(Exception):
    """The reason why an arm is excluded from a case."""


@dataclass(frozen=True)
class Sample:
    """The cost of one run."""

    case: str
    arm: str
    block: int
    seconds: float
    user_s: float
    system_s: float
    maxrss_kib: int


@dataclass
class Result:
    """The results of a case."""

    case: object
    entries: int = 0  # entries of the tree
    samples: dict = field(default_factory=dict)  # arm -> block -> Sample
    excluded: dict = field(default_factory=dict)  # arm -> reason
    blocks: int = 0
    load: str = ""
    answer: str = ""  # summary of the baseline's output
    printed: dict = field(default_factory=dict)  # arm -> bytes of its verified output
    made: dict = field(default_factory=dict)  # arm -> bytes of the files it created during verification, if any

    def add(self, sample):
        """Adds a run."""
        self.samples.setdefault(sample.arm, {})[sample.block] = sample

    def slow(self, arm):
        """Returns whether an arm's first run took so long that a few runs suffice."""
        baseline = next((other for other in self.case.arms if other.group == "baseline"), None)
        own, theirs = (self.samples.get(a.name, {}).get(0) if a else None for a in (arm, baseline))
        return bool(own and theirs and own.seconds > max(SLOW_S, SLOW_FACTOR * theirs.seconds))


class Runner:
    """Executes cases with a set of programs; `corpora` is the module that builds the trees."""

    def __init__(self, tools, corpora, random, log):
        self.tools, self.corpora, self.random, self.log = tools, corpora, random, log
        self.logged_s = -PROGRESS_S
        self.out, self.prepared = NOWHERE, {}

    def run(self, case, blocks):
        """Measures a case."""
        blocks = max(1, round(blocks * case.blocks_factor))
        if case.cold and os.geteuid() != 0:
            raise Failure("dropping caches needs root")
        with self.tree(case) as place, self.scratch(case, place):
            result = Result(case, self.corpora.facts_of(case.corpus)["entries"], blocks=blocks)
            if case.reload and os.geteuid() == 0:
                self.drop_caches([word for arm in case.arms for word in arm.argv(self.names(place[1]))])
            before = machine_load()
            present = self.verified_arms(result, place)
            for block in range(blocks):
                self.block(result, present, block, place)
            result.load = describe_load(before, machine_load())
        return result

    @contextlib.contextmanager
    def tree(self, case):
        """Yields the working directory, and the name of the tree in it."""
        path = self.corpora.corpus(case.corpus)
        if not case.slow:
            yield path.parent, path.name
            return
        with mounted(self.tools.slowfs, path) as mount:
            yield mount.parent, mount.name

    @contextlib.contextmanager
    def scratch(self, case, place):
        """Provides a temporary directory on the trees' filesystem for outputs and prepared data."""
        with tempfile.TemporaryDirectory(prefix="fathom-bench-", dir=self.corpora.ROOT) as scratch:
            self.out = Path(scratch) / "out"
            self.prepared = {word: Path(scratch) / f"made-{at}" for at, word in enumerate(case.prepare)}
            for word, command in case.prepare.items():
                self.log(f"{case.name}: preparing {word}")
                self.prepare(command, place)
            yield

    def prepare(self, command, place):
        names = self.names(place[1])
        _, stderr, status = self.communicate([names.get(word, word) for word in command], place[0])
        if status != 0:
            raise Failure(f"preparing it failed: {stderr.decode(errors='replace').strip()}")

    def names(self, tree):
        """Returns the values of the placeholders in commands."""
        return {
            "TREE": tree,
            "EMPTY": str(self.corpora.corpus("empty")),
            "OUT": str(self.out),
            **{word: str(path) for word, path in self.prepared.items()},
        }

    def clear(self):
        """Removes the output of a run and returns its size in bytes."""
        if not self.out.exists():
            return 0
        files = [path for path in (self.out, *self.out.rglob("*")) if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        shutil.rmtree(self.out) if self.out.is_dir() else self.out.unlink()
        return size

    def verified_arms(self, result, place):
        """Returns the arms whose output is right. The reasons of the others are recorded in
        `result`.
        """
        case, present = result.case, []
        # Computed from the tree itself, even if the measurement uses a mount of it.
        expected = case.expected(self.corpora.corpus(case.corpus)) if case.expected else None
        for arm in sorted(case.arms, key=lambda arm: arm.group != "baseline"):
            try:
                output = self.answer(arm, place)
                result.made[arm.name] = self.clear()
                if expected is None:
                    expected = self.baseline_output(result, arm, output)
                mismatch = arm.answer.mismatch(output, place[1], expected)
            except Failure as failure:
                mismatch = str(failure)
            if mismatch:
                self.exclude(result, arm, mismatch)
            else:
                result.printed[arm.name] = len(output)
                present.append(arm)
        return present

    def baseline_output(self, result, arm, output):
        """Records the baseline's output, the reference for the other arms."""
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
        """Runs every arm that is not excluded once, in random order."""
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
        """Empties the page cache except for the programs and their libraries: the measurement is of
        the tree.
        """
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        for word in (self.tools.timed, *command):
            if os.path.isabs(word) and os.path.isfile(word):
                for path in (word, *libraries(word)):
                    Path(path).read_bytes()

    def communicate(self, command, directory):
        """Returns (stdout, stderr, status). The process group of its own lets a hanging arm be
        killed whole.
        """
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
        if time.monotonic() - self.logged_s > PROGRESS_S:
            self.logged_s = time.monotonic()
            self.log(text)

    def exclude(self, result, arm, reason):
        self.log(f"{result.case.name}: {arm.name} is out: {reason}")
        result.excluded[arm.name] = reason


@contextlib.contextmanager
def mounted(slowfs, source):
    """Mounts `source` through slowfs with a delay of 1 ms for the duration of the context."""
    with tempfile.TemporaryDirectory(prefix="fathom-bench-") as scratch:
        mount = Path(scratch) / source.name
        mount.mkdir()
        with mounted_at(slowfs, source, mount):
            yield mount


@contextlib.contextmanager
def mounted_at(slowfs, source, mount, *options):
    """Mounts `source` at an existing directory, likewise."""
    command = [slowfs, str(source), str(mount), "--delay-us", "1000", "--die-with-parent", *options]
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
    """Returns the shared libraries of a program; none for a static program or a script."""
    try:
        listed = subprocess.run(["ldd", program], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    except OSError:
        return ()
    return tuple(re.findall(r"(/\S+) \(0x", listed))


def machine_load():
    """Returns (steal ticks, total ticks of all CPUs, load average)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return ticks[7], sum(ticks[:8]), os.getloadavg()[0]


def describe_load(before, after):
    """Describes the load of the rest of the machine."""
    total = max(after[1] - before[1], 1)
    steal = 100 * (after[0] - before[0]) / total
    return f"load {before[2]:.1f} before and {after[2]:.1f} after, {steal:.1f} % of CPU time stolen"
