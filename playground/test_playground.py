"""Tests of every program of the playground against README.md: file contents, rows, errors.

    python3 playground/test_playground.py [LANGUAGE...] [unittest's options]

A named language that cannot be built fails. Without names, languages without a toolchain are
skipped, each with the reason. The pattern is implemented here independently, from README.md alone.
"""

import collections
import contextlib
import ctypes
import dataclasses
import functools
import itertools
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILDS = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent / "target").resolve() / "playground"
# The Bun and Deno of the tests' environment (tools/test-node.sh), if it exists.
os.environ["PATH"] = f"{BUILDS.parent / 'node-env/bin'}:{os.environ['PATH']}"
# The words of an error number are in the language of the user.
os.environ["LC_ALL"] = "C.UTF-8"
PAGE = 4096
MASK = 2**64 - 1


# Languages


@dataclass(frozen=True)
class Language:
    """A language, available if each of `needs` succeeds.

    `{out}` is the build directory, `{python}` a Python with the Zig package.
    """

    source: str
    methods: tuple
    needs: tuple
    build: tuple
    run: tuple
    # Sizes with O_DIRECT are multiples of this.
    direct_bytes: int = 512
    # Methods with internal, unaligned buffers.
    buffered: tuple = ()
    # Whether the language has posix_fadvise(2), and which trees it walks.
    has_advice: bool = True
    trees: tuple = ("walk", "stat")
    # A runtime that shares its program with another one runs each `every`-th of the cases.
    every: int = 1


LANGUAGES = {
    "bun": Language(
        "node/playground.mjs",
        ("blocking", "promises", "workers", "null"),
        (("bun", "--version"),),
        (),
        ("bun", str(HERE / "node/playground.mjs")),
        has_advice=False,
        trees=("stat",),
        every=7,
    ),
    "c": Language(
        "c/playground.c",
        ("blocking", "threads", "uring", "null"),
        (("cc", "-xc", "-include", "liburing.h", "-fsyntax-only", "/dev/null"),),
        ("cc", "-std=c17", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", "{out}/playground-c", "c/playground.c",
         "-luring"),
        ("{out}/playground-c",),
    ),
    "cpp": Language(
        "cpp/playground.cpp",
        ("blocking", "threads", "stream", "null"),
        (("g++", "--version"),),
        ("g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", "{out}/playground-cpp",
         "cpp/playground.cpp"),
        ("{out}/playground-cpp",),
        buffered=("stream",),
    ),
    "deno": Language(
        "node/playground.mjs",
        ("blocking", "promises", "workers", "null"),
        (("deno", "--version"),),
        (),
        ("deno", "run", "--allow-all", "--quiet", "--no-config", str(HERE / "node/playground.mjs")),
        has_advice=False,
        trees=(),
        every=7,
    ),
    "go": Language(
        "go/main.go",
        ("blocking", "threads", "uring", "goroutines", "file", "null"),
        (("go", "version"), ("go", "-C", "go", "mod", "download")),
        ("go", "build", "-C", "go", "-trimpath", "-buildvcs=false", "-o", "{out}/playground-go", "."),
        ("{out}/playground-go",),
    ),
    "java": Language(
        "java/Playground.java",
        ("blocking", "threads", "virtual", "async", "null"),
        (("javac", "-version"), ("java", "-version")),
        ("javac", "-d", "{out}", "java/Playground.java"),
        ("java", "-cp", "{out}", "Playground"),
        direct_bytes=4096,
        has_advice=False,
        trees=("stat",),
    ),
    "node": Language(
        "node/playground.mjs",
        ("blocking", "promises", "workers", "null"),
        (("node", "--version"),),
        (),
        ("node", str(HERE / "node/playground.mjs")),
        has_advice=False,
    ),
    "python": Language(
        "python/playground.py",
        ("blocking", "threads", "uring", "stream", "executor", "to_thread", "null"),
        (("{python}", "--version"),),
        (),
        ("{python}", str(HERE / "python/playground.py")),
        buffered=("stream",),
    ),
    "rust-crates": Language(
        "rust/main.rs",
        ("blocking", "threads", "uring", "tokio", "null"),
        (("../tools/cargo.sh", "--version"), ("../tools/cargo.sh", "fetch", "--locked", "--manifest-path", "rust/Cargo.toml")),
        ("../tools/cargo.sh", "build", "--release", "--locked", "--manifest-path", "rust/Cargo.toml", "--target-dir", "{out}"),
        ("{out}/release/playground",),
        buffered=("tokio",),
    ),
    "zig": Language(
        "zig/playground.zig",
        ("blocking", "threads", "uring", "null"),
        (("{python}", "-c", "import importlib.metadata as m; assert m.version('ziglang') == '0.15.2', m.version('ziglang')"),),
        ("{python}", "-m", "ziglang", "build-exe", "-O", "ReleaseFast", "-lc", "--cache-dir", "{out}/cache",
         "--global-cache-dir", "{out}/cache", "-femit-bin={out}/playground-zig", "zig/playground.zig"),
        ("{out}/playground-zig",),
    ),
}  # fmt: skip
REQUESTED = set(LANGUAGES) & set(sys.argv[1:]) if __name__ == "__main__" else set()


class Unavailable(Exception):
    """The reason why a language cannot be tested on this machine."""


def run(command, **options):
    return subprocess.run(command, cwd=HERE, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, **options)


@functools.cache
def python_with_packages():
    """Returns the Python of the tests' environment (tools/test-python.sh), if it exists."""
    own = BUILDS.parent / "python-env/bin/python3"
    return str(own) if own.exists() else sys.executable


def expand(command, out):
    return [word.format(out=out, python=python_with_packages()) for word in command]


@functools.cache
def built(name):
    """Builds a language's program and returns the command that runs it."""
    language, out = LANGUAGES[name], BUILDS / name
    if not (HERE / language.source).exists():
        raise Unavailable(f"{name}: there is no playground/{language.source}")
    for need in language.needs:
        try:
            answer = run(expand(need, out))
        except FileNotFoundError:
            raise Unavailable(f"{name}: no {need[0]}") from None
        if answer.returncode != 0:
            raise Unavailable(f"{name}: {' '.join(need)}: {(answer.stderr or answer.stdout).strip()[-300:]}")
    out.mkdir(parents=True, exist_ok=True)
    if language.build:
        answer = run(expand(language.build, out))
        assert answer.returncode == 0, f"{name} does not build:\n{answer.stderr}"
    return expand(language.run, out)


# The pattern


@functools.lru_cache(maxsize=4)
def numbers(seed, generation):
    x = (seed ^ generation * 0x9E3779B97F4A7C15) & MASK or 1
    made = []
    for _ in range(510):
        x ^= x >> 12
        x ^= x << 25 & MASK
        x ^= x >> 27
        made.append(x * 0x2545F4914F6CDD1D & MASK)
    return struct.pack("<510Q", *made)


def pattern(size, seed=1, generation=1):
    page = numbers(seed, generation)
    stamped = (struct.pack("<QQ", offset, generation) + page for offset in range(0, size, PAGE))
    return b"".join(stamped)[:size]


def places(seed, count):
    """Returns the order of `count` blocks in a random read."""
    state, rounds = seed, []

    def number():
        nonlocal state
        state = state + 0x9E3779B97F4A7C15 & MASK
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
        return mixed ^ mixed >> 31

    for _ in range(4):
        addend = number()
        rounds.append((addend, number() | 1))
    bits = (max(count, 2) - 1).bit_length()

    def image(place):
        for addend, factor in rounds:
            place = (place + addend) * factor & (1 << bits) - 1
            place ^= place >> max(bits // 3, 1)
        return place

    found = []
    for place in map(image, range(count)):
        while place >= count:
            place = image(place)
        found.append(place)
    return found


# Rows

ONE_THREAD = ("blocking", "stream", "promises", "async", "executor", "to_thread", "tokio", "null")
DEEP = ("uring", "promises", "async", "executor", "to_thread", "tokio")
OF_TREES = ("blocking", "threads", "goroutines", "virtual", "promises", "tokio")
WRITES, READS, TREES = ("write", "append-sync"), ("read", "random-read"), ("walk", "stat")
DIGITS = {"seconds": 9, "sync_s": 9, "close_s": 9, "cpu_user_s": 6, "cpu_sys_s": 6}
DIGITS |= {"p50_us": 3, "p95_us": 3, "p99_us": 3, "max_us": 3}
KEYS = ["seconds", "sync_s", "close_s", "ops", "bytes", "pages_ok", "in_flight_max", "cpu_user_s", "cpu_sys_s"]
KEYS += ["switches", "switches_forced", "p50_us", "p95_us", "p99_us", "max_us"]


def form(key):
    if key in DIGITS:
        return rf"\d+\.\d{{{DIGITS[key]}}}"
    return r"\d+|-1" if key.startswith("switches") else r"\d+"


@dataclass(frozen=True)
class Case:
    """The options of a run."""

    method: str
    size: int
    block: int = 4096
    threads: int = 1
    depth: int = 1
    batch: int = 1
    wait: str = "wait"
    direct: str = "no"
    advice: str = "normal"
    seed: int = 1
    generation: int = 1

    def words(self, op, path):
        given = [f"--{name}={value}" for name, value in vars(self).items()]
        return [part for word in [f"--op={op}", f"--path={path}", *given] for part in word.split("=", 1)]

    @property
    def blocks(self):
        return -(-self.size // self.block)

    @property
    def workers(self):
        return 1 if self.method in ONE_THREAD else self.threads

    @property
    def in_flight_bound(self):
        return self.workers * (self.depth if self.method in DEEP else 1)


THREADS, DEPTHS = (1, 3, 10), (1, 7, 128)
BATCHES = ((1, "wait"), (16, "wait"), (1, "spin"), (16, "spin"))


def sizes(block, step):
    """Returns the sizes of many blocks, with and without a partial block, of fewer blocks than
    threads, and of one block. Partial blocks are multiples of `step`.
    """
    many, part = (200 if block <= PAGE else 24), max(step, block // 2 // step * step)
    return sorted({many * block, many * block + part, 2 * block + part, block})


def cases(method, direct):
    """Yields every combination of a method's options, sizes and blocks. The values of --batch and
    --wait alternate, so that they meet every depth and number of threads.
    """
    blocks, step = ((512, 4096, 65536), 512) if direct else ((512, 4096, 65536, 1000), 1)
    # Workers of Node take longest to start: their numbers alternate.
    threads = (1,) if method in (*ONE_THREAD, "workers") else THREADS
    workers = itertools.cycle(THREADS if method == "workers" else (1,))
    depths = DEPTHS if method in ("uring", "promises") else (1,)
    # Pools of threads differ from each other less than rings do: their depths alternate too.
    pool_depths = itertools.cycle(DEPTHS if method in DEEP and depths == (1,) else (1,))
    turns = itertools.cycle(BATCHES if method == "uring" else BATCHES[:1])
    shapes = ((size, block) for block in blocks for size in sizes(block, step))
    for count, ((size, block), depth, thread) in enumerate(itertools.product(shapes, depths, threads), 1):
        batch, wait = next(turns)
        direct_words = "yes" if direct else "no"
        depth, thread = max(depth, next(pool_depths)), max(thread, next(workers))
        yield Case(method, size, block, thread, depth, batch, wait, direct_words, seed=count % 3, generation=count)


def without_io_uring():
    """Installs, in a child, a filter that makes io_uring_setup (425 on every machine) fail with
    EPERM, as the seccomp filters of containers do.
    """
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
    program = struct.pack("HP", len(code), ctypes.addressof(filters))
    libc = ctypes.CDLL(None)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        os._exit(99)


@functools.cache
def can_trace():
    strace = shutil.which("strace")
    return bool(strace) and run([strace, "-f", "-o", "/dev/null", "true"]).returncode == 0


# Tests


class ProgramTest(unittest.TestCase):
    """The common part of all tests. `name` is the language."""

    def setUp(self):
        try:
            self.command = built(self.name)
        except Unavailable as why:
            self.fail(str(why)) if self.name in REQUESTED else self.skipTest(str(why))
        self.scratch = Path(self.enterContext(tempfile.TemporaryDirectory(dir=BUILDS)))
        self.path, self.trace = self.scratch / "file", self.scratch / "trace"

    def call(self, *words, before=(), **options):
        return run([*before, *self.command, *map(str, words)], **options)

    def row(self, op, case, path=None, **options):
        """Returns the row of a successful run, after the checks that apply to every run."""
        answer = self.call(*case.words(op, path or self.path), **options)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""), case)
        lines = answer.stdout.split("\n")
        self.assertEqual((len(lines), lines[-1]), (2, ""), answer.stdout)
        row = dict(field.split("=") for field in lines[0].split("\t"))
        self.assertEqual(list(row), KEYS)
        for key, value in row.items():
            self.assertRegex(value, rf"^({form(key)})$", key)
        self.check(op, case, row)
        return row

    def strace_output(self, calls, op, case, only=()):
        """Returns the strace output of a successful run, of the calls on the paths `only` alone if
        there are any.
        """
        if not can_trace():
            self.skipTest("no strace that may trace")
        of_path = [word for path in only for word in ("-P", str(path))]
        self.row(op, case, before=["strace", "-f", "-e", f"trace={calls}", *of_path, "-o", str(self.trace)])
        return self.trace.read_text()

    def check(self, op, case, row):
        if op not in TREES:
            self.assertEqual(int(row["bytes"]), case.size)
            self.assertLessEqual(int(row["in_flight_max"]), case.in_flight_bound)
        self.assertEqual(int(row["pages_ok"]), -(-case.size // PAGE) if op in READS else 0)
        self.assertGreaterEqual(int(row["in_flight_max"]), 1)
        for smaller, larger in itertools.pairwise(["seconds", "sync_s", "close_s"]):
            self.assertLessEqual(float(row[smaller]), float(row[larger]))
        for smaller, larger in itertools.pairwise(["p50_us", "p95_us", "p99_us", "max_us"]):
            self.assertLessEqual(float(row[smaller]), float(row[larger]))
        if op not in WRITES:
            self.assertEqual(row["sync_s"], row["seconds"])

    def refused(self, status, cause, answer):
        self.assertEqual((answer.returncode, answer.stdout), (status, ""), answer.stderr)
        self.assertRegex(answer.stderr, rf"^[^\n]+: [^\n]*{cause}[^\n]*\n$")


class Method(ProgramTest):
    """Tests of a method: the bytes that it writes and reads, and its errors. `method` is its name.
    """

    def setUp(self):
        super().setUp()
        verdicts = dict(line.split("\t") for line in self.call("--list").stdout.splitlines())
        if verdicts.get(self.method) != "ok":
            self.skipTest(f"{self.name}: {self.method}: {verdicts.get(self.method, 'not listed')}")

    def write_and_read(self, case):
        row = self.row("write", case)
        self.assertTrue(self.path.read_bytes() == pattern(case.size, case.seed, case.generation), case)
        again = self.row("read", case)
        if self.method != "stream" and case.generation % 3 == 0:
            self.assertEqual(int(self.row("random-read", case)["ops"]), case.blocks, case)
        # A buffered file object merges or splits blocks.
        if case.method != "stream":
            self.assertEqual((int(row["ops"]), int(again["ops"])), (case.blocks, case.blocks), case)
        if case.method == "uring":
            at_once = min(case.batch, case.depth, -(-case.blocks // case.threads))
            self.assertGreaterEqual(int(row["in_flight_max"]), at_once, case)

    def cases(self, direct):
        return itertools.islice(cases(self.method, direct), 0, None, LANGUAGES[self.name].every)

    def test_files_have_the_pattern_and_are_read_back(self):
        # Remains of a larger file would show.
        self.path.write_bytes(b"\xff" * (2 << 20))
        for case in self.cases(direct=False):
            self.write_and_read(case)

    def need_direct(self):
        if self.method in LANGUAGES[self.name].buffered:
            case = Case(self.method, 4096, direct="yes")
            self.refused(3, "O_DIRECT", self.call(*case.words("write", self.path)))
            self.skipTest(f"{self.name}'s {self.method} has no O_DIRECT, and says so")
        try:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT))
        except OSError as refusal:
            self.skipTest(f"the filesystem of {BUILDS} has no O_DIRECT: {refusal.strerror}")

    def test_files_have_the_pattern_past_the_page_cache(self):
        self.need_direct()
        whole = LANGUAGES[self.name].direct_bytes
        for case in self.cases(direct=True):
            if case.size % whole == case.block % whole == 0:
                self.write_and_read(case)
            else:
                self.refused(3, "O_DIRECT", self.call(*case.words("write", self.path)))

    def test_the_page_cache_is_passed_by_only_when_asked(self):
        self.need_direct()
        for direct in ("no", "yes"):
            for op in ("write", "read"):
                opened = self.strace_output("open,openat", op, Case(self.method, 65536, direct=direct))
                flags = re.findall(rf'"{self.path}", ([A-Z_|]+)', opened)
                self.assertEqual(["O_DIRECT" in given for given in flags], [direct == "yes"], (op, direct))

    def test_the_least_file_and_the_largest_numbers(self):
        self.write_and_read(Case(self.method, 1))
        self.write_and_read(Case(self.method, 5000, 7, threads=10, depth=128, batch=16))
        self.write_and_read(Case(self.method, 5000, 1 << 20, seed=MASK, generation=MASK))
        # These two seeds yield the initial state 0, which xorshift64* must avoid.
        self.write_and_read(Case(self.method, 5000, seed=0x9E3779B97F4A7C15, generation=1))

    def test_a_wrong_byte_of_a_stamp_is_noticed(self):
        # With blocks of 1,000 bytes, two blocks share the stamp of page 52: 8 bytes each.
        shared = 52 * PAGE
        for block, offset in [(4096, 0), (4096, 7 * PAGE + 15), (65536, 59 * PAGE + 8), (1000, shared + 7), (1000, shared + 8)]:
            case = Case(self.method, 60 * PAGE, block, threads=3, depth=7)
            wrong = bytearray(pattern(case.size))
            wrong[offset] ^= 1
            self.path.write_bytes(wrong)
            answer = self.call(*case.words("read", self.path))
            page = offset // PAGE * PAGE
            self.refused(1, f"cannot verify '{self.path}': page at {page} is not what was written", answer)

    def test_another_generation_is_noticed(self):
        self.path.write_bytes(pattern(1 << 20, generation=2))
        answer = self.call(*Case(self.method, 1 << 20).words("read", self.path))
        self.refused(1, f"cannot verify '{self.path}': page at ", answer)

    def test_a_file_that_ends_early_is_an_error(self):
        self.path.write_bytes(pattern(100_000))
        answer = self.call(*Case(self.method, 120_000, depth=7).words("read", self.path))
        self.refused(1, f"cannot read '{self.path}': unexpected end of file", answer)

    def test_a_full_disk_has_the_errno_s_words(self):
        answer = self.call(*Case(self.method, 1 << 20, threads=10, depth=7).words("write", "/dev/full"))
        self.refused(1, "cannot (write|sync|close) '/dev/full': No space left on device", answer)

    def test_a_disk_that_is_full_inside_the_last_block_is_an_error(self):
        # The last write is short. Only a program that continues with its rest encounters the error.
        if run(["unshare", "-rm", "true"]).returncode != 0:
            self.skipTest("no namespaces for a mount of our own")
        mount = f"mount -t tmpfs -o size={16 * 65536 + 5 * PAGE} none {self.scratch} && exec \"$@\""
        case = Case(self.method, 17 * 65536, 65536, depth=7)
        answer = self.call(*case.words("write", self.path), before=["unshare", "-rm", "sh", "-c", mount, "sh"])
        self.refused(1, f"cannot (write|sync|close) '{self.path}': No space left on device", answer)

    def test_no_such_directory_has_the_errno_s_words(self):
        path = self.scratch / "none/file"
        for op in ("read", "write"):
            answer = self.call(*Case(self.method, 4096).words(op, path))
            self.refused(1, f"cannot open '{path}': No such file or directory", answer)

    def test_interrupted_calls_are_made_again(self):
        if not can_trace():
            self.skipTest("no strace that may trace")
        calls, errors = ["write", "pwrite64", "writev", "read", "pread64", "preadv", "preadv2"], ["EINTR"]
        if self.method == "uring":
            calls, errors = ["io_uring_enter"], ["EINTR", "EAGAIN", "EBUSY"]
        only = [] if self.method == "uring" else ["-P", self.path]
        case = Case(self.method, 300_000, 4096, threads=3, depth=7, batch=3)
        for error in errors:
            inject = f"inject={','.join(calls)}:error={error}:when=2+3"
            before = ["strace", "-f", "-o", "/dev/null", *map(str, only), "-e", f"trace={','.join(calls)}", "-e", inject]
            self.row("write", case, before=before)
            self.assertTrue(self.path.read_bytes() == pattern(case.size), error)
            self.row("read", case, before=before)


    def offsets(self, case, advice="normal"):
        """Returns the offsets of a random read, by thread, and the advice that was given."""
        text = self.strace_output("pread64,preadv,preadv2,fadvise64", "random-read", dataclasses.replace(case, advice=advice), [self.path])
        advised = re.findall(r"fadvise64\(\d+, 0, 0, (\w+)", text)
        calls = re.findall(rf"^(\d+) +(?:<\.\.\. )?pread(?:64|v2?)(?:\(| resumed>).*(?:[^1], {case.block}|\], 1), (\d+)(?:, 0)?\)? += {case.block}$", text, re.MULTILINE)
        return {thread: [int(at) for other, at in calls if other == thread] for thread, _ in calls}, advised

    def positions(self, case):
        """Returns the offsets of a random read that seeks before it reads."""
        text, position, found = self.strace_output("lseek,read", "random-read", case, [self.path]), 0, []
        done = rf"lseek\(\d+, (\d+), SEEK_SET|(?:\bread\(|read resumed>).* = {case.block}$"
        for call in re.finditer(done, text, re.MULTILINE):
            if call[1]:
                position = int(call[1])
            else:
                found.append(position)
                position += case.block
        return found

    def test_a_random_read_has_the_order_of_its_seed(self):
        if self.method == "stream":
            answer = self.call(*Case(self.method, 4096).words("random-read", self.path))
            return self.refused(3, "stream", answer)
        case = Case(self.method, 100 * 4096, threads=1 if self.method in ONE_THREAD else 3, seed=7)
        self.row("write", case)
        if self.method == "uring":
            self.row("random-read", case)
            return self.skipTest("strace does not show the operations of a ring")
        if self.method == "tokio":
            return self.assertEqual(self.positions(case), [4096 * place for place in places(7, 100)])
        bounds = [i * 100 // case.threads for i in range(case.threads + 1)]
        expected = [[4096 * (first + place) for place in places(7, end - first)] for first, end in itertools.pairwise(bounds)]
        found, advised = self.offsets(case)
        # The thread of a pool or runtime that makes a call is not the one that asked for it.
        if self.method in ("blocking", "threads", "workers"):
            self.assertCountEqual(found.values(), expected)
        else:
            self.assertCountEqual(sum(found.values(), []), sum(expected, []))
        self.assertEqual(advised, [])

    def test_a_hint_against_read_ahead_is_given_or_refused(self):
        if self.method == "stream":
            return
        case = Case(self.method, 4096, advice="random")
        self.path.write_bytes(pattern(4096))
        if not LANGUAGES[self.name].has_advice:
            answer = self.call(*case.words("random-read", self.path))
            return self.refused(3, "posix_fadvise", answer)
        text = self.strace_output("fadvise64", "random-read", case)
        # In two lines if another thread, or a signal of Go's runtime, comes in between.
        advised = re.findall(r"fadvise64\(\d+, 0, 0, (\w+)(?: <unfinished \.\.\.>|\) += 0)$", text, re.MULTILINE)
        self.assertEqual((advised, re.findall(r"resumed>.*= [^0].*", text)), (["POSIX_FADV_RANDOM"], []), text)

    def test_appends_are_synced_one_by_one(self):
        case = Case(self.method, 19 * 4096 + 100)
        if self.method == "uring":
            row = self.row("append-sync", case)
        else:
            calls = "write,pwrite64,writev,pwritev,fdatasync"
            text = self.strace_output(calls, "append-sync", case)
            # Calls of a runtime on its own descriptors are no writes of blocks.
            done = re.findall(r"(write|fdatasync)\w*(?:\(| resumed>).*\)? += (\d+)$", text, re.MULTILINE)
            blocks = [size for call, size in done if call == "write" and size in ("4096", "100")]
            self.assertEqual((len(blocks), sum(call == "fdatasync" for call, _ in done)), (20, 21))
            order = [call for call, size in done if call == "fdatasync" or size in ("4096", "100")]
            self.assertEqual(order, ["write", "fdatasync"] * 20 + ["fdatasync"])
            row = self.row("append-sync", case)
        self.assertTrue(self.path.read_bytes() == pattern(case.size))
        self.assertEqual(int(row["ops"]), 40)
        more = dict(depth=2) if self.method in DEEP else dict(threads=2)
        if self.method not in ("blocking", "stream"):
            self.refused(2, "append-sync", self.call(*Case(self.method, 4096, **more).words("append-sync", self.path)))

    def make_tree(self):
        """Makes a tree. Returns its root, the number of its entries and the bytes of its files."""
        root = self.scratch / "tree"
        for number in range(40):
            part = root / f"dir {number % 7}" / f"deep{number % 3}"
            part.mkdir(parents=True, exist_ok=True)
            os.truncate(os.open(os.fsencode(part) + b"/\xff\n%d" % number, os.O_CREAT | os.O_WRONLY), number)
        (root / "empty").mkdir()
        (root / "to a directory").symlink_to(root / "dir 1")
        (root / "to nothing").symlink_to("nothing")
        os.mkfifo(root / "pipe")
        below = [os.path.join(where, name) for where, dirs, files in os.walk(os.fsencode(root)) for name in dirs + files]
        return root, len(below), sum(range(40))

    def test_trees_are_walked_with_no_more_calls_than_they_take(self):
        root, entries, sizes = self.make_tree()
        for op in TREES:
            case = Case(self.method, 1, threads=1 if self.method in ONE_THREAD else 3, depth=3 if self.method in DEEP else 1)
            runs = self.method in OF_TREES and op in LANGUAGES[self.name].trees
            if not runs:
                self.refused(3, "", self.call(*case.words(op, root)))
                continue
            row = self.row(op, case, path=root)
            self.assertEqual((int(row["ops"]), int(row["bytes"])), (entries, sizes if op == "stat" else 0), op)
            self.assertEqual((row["p50_us"], row["max_us"]), ("0.000", "0.000"))
            if not can_trace():
                self.skipTest("no strace that may trace")
            calls = "stat,lstat,newfstatat,statx"
            # Each directory may be looked at once more when it is opened.
            words = ["strace", "-f", "-e", f"trace={calls}", "-o", str(self.trace)]
            self.assertEqual(self.call(*case.words(op, root), before=words).returncode, 0)
            # By descriptor (an empty path) it is no call for an entry.
            made = [line for line in self.trace.read_text().splitlines() if re.search(r'"(?:[^"]*/tree/)?(?:\\377|dir |deep|empty|to )', line)]
            least, most = (entries - 1, entries - 1) if op == "stat" else (0, 0)
            self.assertTrue(least <= len(made) <= most, (op, len(made), entries))

    def test_a_tree_that_is_not_there_or_cannot_be_read_is_an_error(self):
        trees = LANGUAGES[self.name].trees
        if self.method in OF_TREES and trees:
            op = trees[0]
            answer = self.call(*Case(self.method, 1, threads=3, depth=3).words(op, self.scratch / "none"))
            self.refused(1, f"cannot {op} '{self.scratch}/none': No such file or directory", answer)
            answer = self.call(*Case(self.method, 1).words(op, "/dev/null"))
            self.refused(1, f"cannot {op} '/dev/null': Not a directory", answer)

    def test_what_is_listed_for_an_operation_can_run(self):
        root, _, _ = self.make_tree()
        for op in (*WRITES, *READS, *TREES):
            verdict = dict(line.split("\t") for line in self.call("--list", op).stdout.splitlines())[self.method]
            path = root if op in TREES else self.path
            answer = self.call(*Case(self.method, 4096).words(op, path))
            self.assertEqual(answer.returncode, 0 if verdict == "ok" else 3, (op, verdict, answer.stderr))
            if verdict != "ok":
                self.assertIn(verdict, answer.stderr)


class Null(ProgramTest):
    """The loop without its calls."""

    def test_it_touches_no_file_and_counts_every_block(self):
        for op in ("write", "read", "random-read"):
            for block in (512, 1000, 4096, 65536):
                row = self.row(op, Case("null", 300_000, block))
                self.assertEqual(int(row["ops"]), -(-300_000 // block), (op, block))
        self.assertFalse(self.path.exists())

    def test_it_is_for_blocks_alone(self):
        for op in ("append-sync", "walk", "stat"):
            self.refused(3, "", self.call(*Case("null", 4096).words(op, self.scratch)))


class Pipes:
    """Pipes transfer less than requested. Rings and single-threaded calls can use pipes, without
    offsets.
    """

    CASE = dict(size=400_000, block=65536)

    def test_short_reads_go_on_with_the_rest(self):
        os.mkfifo(self.path)
        case = Case(self.method, **self.CASE)
        with self.feed_pipe(pattern(case.size)):
            row = self.row("read", case)
        self.assertGreater(int(row["ops"]), case.blocks)

    @contextlib.contextmanager
    def feed_pipe(self, data, once=lambda: True, each=lambda: None):
        """Writes to the pipe in small pieces once `once` returns true, and calls `each` after every
        piece.
        """

        def feed():
            with open(self.path, "wb", buffering=0) as pipe:
                while not once():
                    time.sleep(0.001)
                for at in range(0, len(data), 1000):
                    pipe.write(data[at : at + 1000])
                    each()

        # A daemon thread: the writer blocks forever if the program fails before it opens the pipe.
        writer = threading.Thread(target=feed, daemon=True)
        writer.start()
        yield
        writer.join()


class RingPipes(Pipes):
    """A ring's write to a full pipe is short, and a signal interrupts its wait."""

    def test_short_writes_go_on_with_the_rest(self):
        os.mkfifo(self.path)
        case, got = Case(self.method, **self.CASE), []
        reader = threading.Thread(target=lambda: got.append(self.path.read_bytes()), daemon=True)
        reader.start()
        answer = self.call(*case.words("write", self.path))
        # A pipe cannot be synced: the error follows after all data is written.
        self.refused(1, f"cannot sync '{self.path}': Invalid argument", answer)
        reader.join()
        self.assertTrue(got[0] == pattern(case.size))

    def test_a_sleep_that_a_signal_ends_goes_on(self):
        os.mkfifo(self.path)
        case = Case(self.method, **self.CASE)
        streams = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child = subprocess.Popen([*self.command, *case.words("read", self.path)], **streams)
        with self.feed_pipe(pattern(case.size), each=lambda: [child.send_signal(n) for n in (signal.SIGSTOP, signal.SIGCONT)]):
            out, problems = child.communicate(timeout=60)
        self.assertEqual((child.returncode, problems), (0, ""))
        self.assertIn(f"\tbytes={case.size}\tpages_ok={-(-case.size // PAGE)}\t", out)


class Ring:
    """The system calls of a ring: waiting or spinning, batches, and a forbidden io_uring."""

    def enter_calls(self, case, op="write"):
        """Returns the arguments of each io_uring_enter: operations to submit, completions to wait
        for.
        """
        asked = re.findall(r"io_uring_enter\(\d+, (\d+), (\d+), ", self.strace_output("io_uring_enter", op, case))
        return [tuple(map(int, pair)) for pair in asked]

    def test_submissions_are_batches_and_the_rest(self):
        for batch, depth, most in [(1, 7, 1), (3, 7, 3), (16, 7, 7)]:
            calls = self.enter_calls(Case(self.method, 100 * 4096, depth=depth, batch=batch))
            submitted = [count for count, _ in calls if count > 0]
            self.assertEqual(submitted, [most] * (100 // most) + [100 % most] * (100 % most > 0))

    def test_each_call_that_submits_nothing_sleeps(self):
        for threads in (1, 3):
            for submitted, awaited in self.enter_calls(Case(self.method, 300 * 4096, threads=threads, depth=7)):
                self.assertGreater(submitted + awaited, 0)

    def test_one_that_spins_makes_no_call_but_to_submit(self):
        # The pipe is empty until the operation is in flight, so that the program polls in vain for
        # a while.
        os.mkfifo(self.path)
        with self.feed_pipe(pattern(100_000), once=lambda: "io_uring_enter" in self.trace.read_text()):
            calls = self.enter_calls(Case(self.method, 100_000, 100_000, wait="spin"), op="read")
        self.assertEqual(set(calls), {(1, 0)})

    def test_without_rings_it_cannot_run_and_leaves_the_file(self):
        self.path.write_bytes(b"kept")
        answer = self.call(*Case(self.method, 4096).words("write", self.path), preexec_fn=without_io_uring)
        self.refused(3, "Operation not permitted", answer)
        self.assertEqual(self.path.read_bytes(), b"kept")
        listed = self.call("--list", preexec_fn=without_io_uring).stdout
        self.assertRegex(listed, r"(?m)^uring\t.*Operation not permitted")


class Program(ProgramTest):
    """The list of methods, and errors of the command line."""

    def test_the_list_has_every_method(self):
        answer = self.call("--list")
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        names = [line.split("\t")[0] for line in answer.stdout.splitlines()]
        self.assertEqual(names, list(LANGUAGES[self.name].methods))
        self.assertTrue(answer.stdout.startswith("blocking\tok\n"))

    def test_defaults_are_one_thread_one_operation_and_seed_and_generation_1(self):
        answer = self.call("--op", "write", "--method", "blocking", "--path", self.path, "--size", 9999, "--block", 512)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        self.assertTrue(self.path.read_bytes() == pattern(9999))

    def test_wrong_options_are_misuse(self):
        good = Case("blocking", 4096).words("write", self.path)
        wrong = {"--op": ["", "append"], "--method": ["", "mmap"], "--advice": ["", "sequential"], "--wait": ["sleep"], "--direct": ["maybe"]}
        for name in ("--size", "--block", "--threads", "--depth", "--batch"):
            wrong[name] = ["", "0", "-1", "+1", "1e3", "0x10", "4k", " 1", "1_000", "99999999999999999999"]
        for name in ("--seed", "--generation"):
            wrong[name] = ["", "-1", "18446744073709551616"]
        for name, value in ((name, value) for name, values in wrong.items() for value in values):
            words = list(good)
            words[words.index(name) + 1] = value
            with self.subTest(name=name, value=value):
                self.refused(2, "", self.call(*words))
        for words in [[], ["--list", "now"], ["--list", "walk", "stat"], [*good, "--sync", "yes"], [*good, "more"], good[:-1], *self.without_one(good)]:
            with self.subTest(words=words):
                self.refused(2, "", self.call(*words))
        self.assertFalse(self.path.exists())

    @staticmethod
    def without_one(good):
        for name in ("--op", "--method", "--path", "--size", "--block"):
            at = good.index(name)
            yield good[:at] + good[at + 2 :]

    def test_direct_needs_whole_sectors(self):
        for size, block in [(1000, 512), (4096, 1000)]:
            self.refused(2, "512", self.call(*Case("blocking", size, block, direct="yes").words("write", self.path)))
        self.assertFalse(self.path.exists())


def load_tests(loader, _tests, _pattern):
    """Creates a test class for each language and for each of its methods."""
    suite = unittest.TestSuite()
    for name in sorted(REQUESTED or LANGUAGES):
        kinds = [(Program,)] + [(kind, method) for method in LANGUAGES[name].methods for kind in [kind_of(method)]]
        for kind, *method in kinds:
            members = dict(name=name, method=method[0] if method else None, __doc__=kind.__doc__)
            suite.addTests(loader.loadTestsFromTestCase(type("_".join([name, *method]), (kind,), members)))
    return suite


def kind_of(method):
    if method == "null":
        return Null
    mixins = {"uring": (Ring, RingPipes), "blocking": (Pipes,)}.get(method, ())
    return type(method, (*mixins, Method), {"__doc__": Method.__doc__})


if __name__ == "__main__":
    result = unittest.main(argv=[sys.argv[0], *(word for word in sys.argv[1:] if word not in LANGUAGES)], exit=False).result
    for reason, count in collections.Counter(reason for _, reason in result.skipped).items():
        print(f"skipped: {reason} ({count} tests)")
    sys.exit(not result.wasSuccessful())
