"""How one case is measured: agreement first, then blocks in which every arm runs once, in shuffled order.

A run is one process under `timed` (floor/timed.c). An arm that fails, or answers wrongly, leaves the case with the
reason; one that takes SLOW_FACTOR times GNU du's time, and more than SLOW_S, runs in the first SLOW_BLOCKS only.
"""

import contextlib
import hashlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import arms

TIMEOUT_S = 900
SLOW_FACTOR = 4
SLOW_S = 1
SLOW_BLOCKS = 3
PROGRESS_S = 5
# Variables that would change what a du prints, and a home without anybody's configuration.
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
    facts: object
    samples: dict = field(default_factory=dict)  # arm -> block -> Sample
    excluded: dict = field(default_factory=dict)  # arm -> reason
    blocks: int = 0
    load: str = ""
    listing: tuple = ()  # bytes and digest of GNU du's output, where outputs are compared whole

    def add(self, sample):
        """Keeps one run."""
        self.samples.setdefault(sample.arm, {})[sample.block] = sample

    def slow(self, arm):
        """Whether an arm's first run was so long that a few show enough."""
        gnu = next((other for other in self.case.arms if other.group == "gnu"), None)
        own, theirs = (self.samples.get(a.name, {}).get(0) if a else None for a in (arm, gnu))
        return bool(own and theirs and own.seconds > max(SLOW_S, SLOW_FACTOR * theirs.seconds))


class Runner:
    """Carries out cases with one set of programs."""

    def __init__(self, tools, corpora, random, say):
        self.tools, self.corpora, self.random, self.say = tools, corpora, random, say
        self.facts = {}  # corpus -> Facts
        self.said_s = -PROGRESS_S

    def run(self, case, blocks):
        """Measures one case."""
        blocks = max(1, round(blocks * case.blocks_factor))
        if case.cold and os.geteuid() != 0:
            raise Failure("dropping caches needs root")
        with self.tree(case) as (directory, tree):
            result = Result(case, self.facts_of(case.corpus), blocks=blocks)
            place = (directory, tree)
            before = noise()
            present = [arm for arm in case.arms if self.admitted(result, arm, place)]
            for block in range(blocks):
                self.block(result, present, block, place)
            result.load = noise_between(before, noise())
        return result

    @contextlib.contextmanager
    def tree(self, case):
        """The directory to run in, and the name of the tree in it."""
        path = self.corpora(case.corpus)
        if not case.slow:
            yield path.parent, path.name
            return
        with mounted(self.tools.slowfs, path) as mount:
            yield mount.parent, mount.name

    def facts_of(self, corpus):
        """Of the tree itself, also where it is measured through a mount."""
        if corpus not in self.facts:
            self.facts[corpus] = facts_of(self.corpora(corpus))
        return self.facts[corpus]

    def empty(self):
        return str(self.corpora("empty"))

    def admitted(self, result, arm, place):
        """Whether an arm works here and gives the right answer; if not, says why in `result`."""
        try:
            output = self.answer(arm, place)
            if result.case.drain:
                self.check_listing(result, arm, output)
            else:
                self.check_total(result, arm, output, place[1])
        except Failure as failure:
            self.exclude(result, arm, str(failure))
            return False
        return True

    def answer(self, arm, place):
        directory, tree = place
        command = arm.argv(tree, self.empty())
        stdout, stderr, status = self.communicate(command, directory)
        if status != 0:
            lines = stderr.decode(errors="replace").strip().splitlines()
            raise Failure(f"exit status {status}: {lines[-1] if lines else 'no message'}")
        return stdout

    def check_total(self, result, arm, output, tree):
        total = arm.total(output.decode(errors="replace"), tree)
        if total is None:
            raise Failure(f"no total in its output: {output[:80]!r}")
        if not arm.agrees(total, result.facts):
            expected = -(-arm.expected(result.facts) // arm.unit)
            raise Failure(f"its total is {total}, expected {expected} (units of {arm.unit} bytes)")

    def check_listing(self, result, arm, output):
        digest = (len(output), hashlib.sha256(output).hexdigest())
        if arm.group == "gnu":
            result.listing = digest
        elif digest != result.listing:
            raise Failure(f"its {digest[0]} bytes are not GNU du's {result.listing[0]}")

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
        command = arm.argv(tree, self.empty())
        if case.cold:
            self.drop_caches(command)
        timer = [self.tools.timed, *(["--drain"] if case.drain else []), *command]
        stdout, stderr, status = self.communicate(timer, directory)
        if status != 0:
            raise Failure(stderr.decode(errors="replace").strip())
        seconds, user, system, maxrss, code, count = stdout.split()
        if int(code) != 0:
            raise Failure(f"exit status {int(code)}")
        if case.drain and int(count) != result.listing[0]:
            raise Failure(f"{int(count)} bytes came through the pipe, not {result.listing[0]}")
        return Sample(case.name, arm.name, block, float(seconds), float(user), float(system), int(maxrss))

    def drop_caches(self, command):
        """An empty cache but for the programs themselves: what is measured is the tree."""
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        for word in (self.tools.timed, *command):
            if os.path.isabs(word) and os.path.isfile(word):
                Path(word).read_bytes()

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
        command = [slowfs, str(source), str(mount), "--delay-us", "1000", "--die-with-parent"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            try:
                if not server.stdout.readline().startswith("mounted"):
                    raise Failure(server.stderr.read().strip())
                yield mount
            finally:
                server.terminate()
                server.wait()


def facts_of(tree):
    """Walks the tree with plain lstat: the reference that no measured program had a part in."""
    seen, allocated = set(), 0
    directories, directory_bytes = 0, 0
    pending = [os.fspath(tree)]
    while pending:
        path = pending.pop()
        directories += 1
        directory_bytes += os.lstat(path).st_blocks * 512
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                stat = entry.stat(follow_symlinks=False)
                inode = (stat.st_dev, stat.st_ino)
                if stat.st_nlink == 1 or inode not in seen:
                    allocated += stat.st_blocks * 512
                    seen.update([inode] if stat.st_nlink > 1 else [])
    return arms.Facts(allocated + directory_bytes, directories, directory_bytes)


def noise():
    """(steal and total ticks of all CPUs, load average)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return ticks[7], sum(ticks[:8]), os.getloadavg()[0]


def noise_between(before, after):
    """In words, how much else the machine did."""
    total = max(after[1] - before[1], 1)
    steal = 100 * (after[0] - before[0]) / total
    return f"load {before[2]:.1f} before and {after[2]:.1f} after, {steal:.1f} % of CPU time stolen"
