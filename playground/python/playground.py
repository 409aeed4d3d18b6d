#!/usr/bin/env python3
"""Does one operation on one file or tree, with one I/O method, and prints one row. The contract is
../README.md.

A worker is a thread with its own partition of the file. A slot holds one block and its buffer.
System calls need one slot; rings and pools have --depth slots, and a block starts only when a slot
is free. The workers that walk a tree share a queue of directories.

Modules of pools and of event loops are imported by the methods that use them, before the clock starts: importing them
takes longer than the interpreter and the other modules do.
"""

import argparse
import array
import contextlib
import errno
import mmap
import os
import queue
import resource
import select
import signal
import stat
import struct
import sys
import threading
import time

LIBURING = "liburing==2026.3.30"
try:
    import liburing
except ImportError:
    liburing = None

PAGE = 4096
STAMP = struct.Struct("<QQ")
TIMED_EVERY = 64
RING_MAX = 32768
UINT64_MAX = 2**64 - 1
FAILED, MISUSED, UNAVAILABLE = 1, 2, 3
METHODS = ("blocking", "threads", "uring", "stream", "executor", "to_thread", "null")
DEEP = ("uring", "executor", "to_thread")
OPS = ("write", "read", "random-read", "append-sync", "walk", "stat")
WRITES, READS, TREES = ("write", "append-sync"), ("read", "random-read"), ("walk", "stat")

quitting = threading.Lock()


def stop(status, action, thing, cause):
    """Exits the process from any thread; SystemExit would only end the thread."""
    quitting.acquire()  # never released: if several threads fail, only the first prints its error
    named = f" '{thing}'" if thing else ""
    print(f"{os.path.basename(sys.argv[0])}: {action}{named}: {cause}", file=sys.stderr, flush=True)
    os._exit(status)


class InFlight:
    """Operations in flight. Each is counted before its submission and until its completion is
    known.
    """

    def __init__(self, threads):
        # One thread needs no lock, which would be a part of its loop.
        self.lock = threading.Lock() if threads > 1 else contextlib.nullcontext()
        self.now = self.max = 0

    def begin(self, operations=1):
        with self.lock:
            self.now += operations
            self.max = max(self.max, self.now)

    def end(self, operations=1):
        with self.lock:
            self.now -= operations


# The pattern


def page_words(seed, generation):
    x = (seed ^ generation * 0x9E3779B97F4A7C15) & UINT64_MAX or 1
    for _ in range((PAGE - STAMP.size) // 8):
        x ^= x >> 12
        x ^= x << 25 & UINT64_MAX
        x ^= x >> 27
        yield x * 0x2545F4914F6CDD1D & UINT64_MAX


def filled(options, size):
    """Returns page-aligned memory (required by O_DIRECT), filled with the pattern except for the
    stamps.
    """
    memory = mmap.mmap(-1, max(size, PAGE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    words = tuple(page_words(options.seed, options.generation))
    page = bytes(STAMP.size) + struct.pack(f"<{len(words)}Q", *words)
    for at in range(0, size, PAGE):
        memory[at : at + PAGE] = page
    return memoryview(memory)


# The order of a random read


def split_mix(state):
    while True:
        state = state + 0x9E3779B97F4A7C15 & UINT64_MAX
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & UINT64_MAX
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & UINT64_MAX
        yield mixed ^ mixed >> 31


def places(seed, count):
    """Yields a permutation of the numbers below `count`."""
    bits = (max(count, 2) - 1).bit_length()
    mask, shift = 2**bits - 1, max(bits // 3, 1)
    numbers = split_mix(seed)
    rounds = [(next(numbers), next(numbers) | 1) for _ in range(4)]

    def image(x):
        for addend, factor in rounds:
            x = (x + addend) * factor & mask
            x ^= x >> shift
        return x

    for place in map(image, range(count)):
        while place >= count:
            place = image(place)
        yield place


# A worker


class Slot:
    """A block in progress. `view` starts with the page that contains the start of the block."""

    __slots__ = ("index", "view", "offset", "length", "moved", "start_ns", "iovec")

    def __init__(self, index, view):
        self.index, self.view = index, view

    def rest(self):
        begin = self.offset % PAGE
        return self.view[begin + self.moved : begin + self.length]

    def pages(self):
        return enumerate(range(self.offset // PAGE * PAGE, self.offset + self.length, PAGE))

    def stamp(self, generation):
        for i, page in self.pages():
            STAMP.pack_into(self.view, i * PAGE, page, generation)

    def verify(self, options):
        """Verifies the stamps and returns the number of pages that start in the block.

        If two blocks share a stamp, each verifies its part.
        """
        begun = 0
        for i, page in self.pages():
            begin, end = max(self.offset - page, 0), min(STAMP.size, self.offset + self.length - page)
            found = self.view[i * PAGE + begin : i * PAGE + end]
            if begin < end and found != STAMP.pack(page, options.generation)[begin:end]:
                stop(FAILED, "cannot verify", options.path, f"page at {page} is not what was written")
            begun += begin == 0
        return begun


class Worker:
    """A thread, with its partition of the file or the queue of directories that all threads share.
    """

    def __init__(self, options, file, in_flight, directories, first, end):
        self.options, self.file, self.in_flight, self.directories = options, file, in_flight, directories
        self.first, self.end, self.next = first, end, 0
        self.writes = options.op in WRITES
        verb = options.op if options.op in TREES else "write" if self.writes else "read"
        self.action = f"cannot {verb}"
        self.timed_every = 1 if options.op == "append-sync" else TIMED_EVERY
        self.ops = self.bytes = self.pages_ok = 0
        self.latencies_ns = []

    def prepare(self):
        if self.options.op in TREES:
            self.in_flight.begin()
            self.run = self.run_tree if self.options.method == "blocking" else self.run_shared_tree
        else:
            self.prepare_blocks()

    def prepare_blocks(self):
        method, block = self.options.method, self.options.block
        self.order = range(self.first, self.end)
        if self.options.op == "random-read":
            self.order = array.array("Q", (self.first + place for place in places(self.options.seed, len(self.order))))
        count = min(self.options.depth if method in DEEP else 1, len(self.order))
        # A block that starts inside a page needs space for the start of that page, and may end
        # inside another.
        span = (block // PAGE + 2) * PAGE if block % PAGE else block
        memory = filled(self.options, count * span)
        self.slots = [Slot(i, memory[i * span : (i + 1) * span]) for i in range(count)]
        self.free = list(self.slots)
        self.stream = open(self.file, "wb" if self.writes else "rb", closefd=False) if method == "stream" else None
        self.call = self.make_call()
        runs = {"uring": self.run_ring, "executor": self.run_executor, "to_thread": self.run_to_thread}
        self.run = runs.get(method, self.run_calls)
        if method == "uring":
            try:
                self.ring = make_ring(self.options.depth)
            except OSError as error:
                stop(UNAVAILABLE, "cannot run", method, f"cannot make a ring: {error.strerror}")
        elif method in ("executor", "to_thread"):
            self.pool = start_pool(count)
            if method == "to_thread":
                import asyncio

                self.loop = asyncio.new_event_loop()
                self.loop.set_default_executor(self.pool)

    def begin(self):
        slot = self.free.pop()
        slot.offset = self.order[self.next] * self.options.block
        slot.length = min(self.options.block, self.options.size - slot.offset)
        slot.moved = 0
        if self.writes:
            slot.stamp(self.options.generation)
        slot.start_ns = 0 if self.next % self.timed_every else time.monotonic_ns()
        self.next += 1
        return slot

    def advance(self, slot, moved):
        """Processes the result of a call. Returns whether the slot needs no more of them."""
        self.ops += 1
        if slot.moved < slot.length:  # or else it was an fdatasync
            if moved == 0:
                stop(FAILED, self.action, self.options.path, "unexpected end of file")
            self.bytes += moved
            slot.moved += moved
            if slot.moved < slot.length or self.options.op == "append-sync":
                return False
        if slot.start_ns:
            self.latencies_ns.append(time.monotonic_ns() - slot.start_ns)
        if not self.writes:
            self.pages_ok += slot.verify(self.options)
        self.free.append(slot)
        return True

    # Methods: blocking, threads, stream, null

    def make_call(self):
        """Returns the function that makes the next call for a slot."""
        file, stream = self.file, self.stream
        kind = self.options.method if self.options.method in ("blocking", "stream", "null") else "threads"
        if kind == "blocking" and self.options.op == "random-read":
            kind = "threads"
        transfer = {
            ("blocking", True): lambda slot: os.write(file, slot.rest()),
            ("blocking", False): lambda slot: os.readv(file, (slot.rest(),)),
            ("threads", True): lambda slot: os.pwrite(file, slot.rest(), slot.offset + slot.moved),
            ("threads", False): lambda slot: os.preadv(file, (slot.rest(),), slot.offset + slot.moved),
            ("stream", True): lambda slot: stream.write(slot.rest()),
            ("stream", False): lambda slot: stream.readinto(slot.rest()),
            ("null", True): lambda slot: len(slot.rest()),
            ("null", False): self.pretend_read,
        }[kind, self.writes]
        if self.options.op == "append-sync":
            return lambda slot: transfer(slot) if slot.moved < slot.length else self.sync()
        return transfer

    def pretend_read(self, slot):
        slot.stamp(self.options.generation)
        return slot.length

    def sync(self):
        if self.stream:
            self.stream.flush()
        attempt(self.options, "cannot sync", os.fdatasync, self.file)

    def run_calls(self):
        while self.next < len(self.order):
            slot = self.begin()
            self.in_flight.begin()
            while not self.advance(slot, self.call(slot)):
                pass
            self.in_flight.end()
        if self.stream:
            self.stream.flush()  # the last blocks may still be in the buffer

    # Methods: executor, to_thread

    def run_executor(self):
        slots, done = {}, queue.SimpleQueue()

        def submit(slot):
            future = self.pool.submit(self.call, slot)
            slots[future] = slot
            future.add_done_callback(done.put)

        while self.next < len(self.order) or slots:
            while self.next < len(self.order) and self.free:
                self.in_flight.begin()
                submit(self.begin())
            future = done.get()
            slot = slots.pop(future)
            if self.advance(slot, future.result()):
                self.in_flight.end()
            else:
                submit(slot)

    def run_to_thread(self):
        import asyncio

        async def run_slot():
            while self.next < len(self.order):
                slot = self.begin()
                self.in_flight.begin()
                while not self.advance(slot, await asyncio.to_thread(self.call, slot)):
                    pass
                self.in_flight.end()

        async def run_slots():
            await asyncio.gather(*(run_slot() for _ in self.slots))

        self.loop.run_until_complete(run_slots())

    # Method: uring

    def queue(self, slot):
        sqe = liburing.io_uring_get_sqe(self.ring)  # never NULL: no slot is queued twice
        if slot.moved < slot.length:
            prepare = liburing.io_uring_prep_writev if self.writes else liburing.io_uring_prep_readv
            slot.iovec = liburing.Iovec([slot.rest()])  # keeps the object alive: the kernel reads it at submission
            prepare(sqe, self.file, slot.iovec, offset=slot.offset + slot.moved)
        else:
            liburing.io_uring_prep_fsync(sqe, self.file, fsync_flags=liburing.IORING_FSYNC_DATASYNC)
        sqe.user_data = slot.index

    def startable(self):
        """Returns the number of blocks to start now: a batch, or the rest if that is less.

        Returns 0 while too few slots are free.
        """
        batch = min(self.options.batch, len(self.slots), len(self.order) - self.next)
        return batch if batch <= len(self.free) else 0

    def submit(self, wait):
        try:
            # The library holds the GIL while it waits. poll(2), which releases it, replaces that
            # wait if other threads have rings.
            if wait and self.options.threads == 1:
                liburing.io_uring_submit_and_wait(self.ring, 1)
            elif wait:
                liburing.io_uring_submit(self.ring)
                self.poller.poll()
            else:
                liburing.io_uring_submit(self.ring)
        except InterruptedError:
            pass
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EBUSY):
                raise
            time.sleep(0.001)  # the kernel is out of memory for requests; unconsumed entries stay queued

    def reap(self):
        ended = seen = 0
        for _ in liburing.CqeIter(self.ring, self.cqe):
            slot = self.slots[self.cqe[0].user_data]
            seen += 1
            try:
                done = self.advance(slot, self.cqe[0].res)  # raises OSError for a negative result
            except (InterruptedError, BlockingIOError):
                done = False
            except OSError as error:
                action = self.action if slot.moved < slot.length else "cannot sync"
                stop(FAILED, action, self.options.path, error.strerror)
            if done:
                ended += 1
            else:
                self.queue(slot)
        liburing.io_uring_cq_advance(self.ring, seen)
        self.in_flight.end(ended)

    def run_ring(self):
        self.cqe = liburing.Cqe()
        self.poller = select.poll()
        self.poller.register(self.ring.ring_fd, select.POLLIN)
        while self.next < len(self.order) or len(self.free) < len(self.slots):
            if batch := self.startable():
                self.in_flight.begin(batch)
                for _ in range(batch):
                    self.queue(self.begin())
            wait = self.options.wait == "wait" and not self.startable()
            if wait or liburing.io_uring_sq_ready(self.ring):
                self.submit(wait)
            self.reap()

    # Trees

    def run_tree(self):
        waiting = [self.directories.get()]
        while waiting:
            waiting += self.list_directory(waiting.pop())

    def run_shared_tree(self):
        while (directory := self.directories.get()) is not None:  # None: all have been listed
            for found in self.list_directory(directory):
                self.directories.put(found)
            self.directories.task_done()

    def list_directory(self, directory):
        """Counts the entries of a directory. Returns its subdirectories."""
        found = []
        with os.scandir(directory) as entries:
            for entry in entries:
                self.ops += 1
                if self.options.op == "stat":
                    metadata = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(metadata.st_mode):
                        self.bytes += metadata.st_size
                if entry.is_dir(follow_symlinks=False):
                    found.append(entry.path)
        return found


def start_pool(count):
    """Returns a pool whose threads have started. By itself, it starts them as operations come."""
    from concurrent.futures import ThreadPoolExecutor

    pool, ready = ThreadPoolExecutor(count), threading.Barrier(count)
    try:
        list(pool.map(lambda _: ready.wait(), range(count)))
    except RuntimeError as error:
        stop(UNAVAILABLE, "cannot start a thread", "", error)
    return pool


def make_ring(depth):
    """Returns a ring with `depth` entries. The completion queue, twice as long, cannot overflow."""
    ring = liburing.Ring()
    liburing.io_uring_queue_init(depth, ring)
    return ring


def death_of_ring():
    """Returns the signal that kills a process which creates a ring, or None.

    A module built for another processor is killed by a signal instead of raising an error.
    """
    child = os.fork()
    if child == 0:
        try:
            make_ring(1)
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    return signal.strsignal(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None


def unavailable(method, op, direct=False, depth=1):
    """Returns the reason why the method cannot run the operation here; None if it can."""
    if method == "null" and op not in ("write", "read", "random-read"):
        return "it makes no calls, so that nothing is synced or walked"
    if op in TREES and method == "uring":
        return "no operation of a ring reads a directory"
    if op in TREES and method not in ("blocking", "threads"):
        return "it has operations on the blocks of a file, and none on directories"
    if op == "random-read" and method == "stream":
        return "a stream seeks for each block, and drops its buffer"
    if method == "stream" and direct:
        return "the buffer of a file object is not aligned as O_DIRECT needs it"
    if method != "uring":
        return None
    if liburing is None:
        return f"the module liburing is missing: pip install {LIBURING}"
    if death := death_of_ring():
        return f"the module liburing does not run here: {death}"
    try:
        liburing.io_uring_queue_exit(make_ring(depth))
    except OSError as error:
        return f"cannot make a ring: {error.strerror}"
    return None


# The command line


def number(least, most):
    def parse(text):
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return int(text)

    return parse


DESCRIPTION = "Does one operation in one way. `--list [OP]`, alone, says what can run OP here. See ../README.md."


class Parser(argparse.ArgumentParser):
    def error(self, message):
        stop(MISUSED, "cannot use the command line", "", message)


def parse(words):
    parser = Parser(description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--op", choices=OPS, required=True)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--size", type=number(1, 2**47), required=True)
    parser.add_argument("--block", type=number(1, 2**30), required=True)
    for option in ("--threads", "--depth", "--batch"):
        parser.add_argument(option, type=number(1, RING_MAX), default=1)
    parser.add_argument("--wait", choices=("wait", "spin"), default="wait")
    parser.add_argument("--direct", choices=("yes", "no"), default="no")
    parser.add_argument("--advice", choices=("normal", "random"), default="normal")
    for option in ("--seed", "--generation"):
        parser.add_argument(option, type=number(0, UINT64_MAX), default=1)
    options = parser.parse_args(words)
    if options.direct == "yes" and (options.size % 512 or options.block % 512):
        parser.error("with --direct yes, --size and --block are multiples of 512")
    if options.op == "append-sync" and (options.threads > 1 or options.depth > 1):
        parser.error("append-sync has one operation in flight: --threads 1 --depth 1")
    if options.method not in ("threads", "uring"):
        options.threads = 1
    return options


def list_methods(words):
    parser = Parser()
    parser.add_argument("op", nargs="?", choices=OPS, default="write")
    op = parser.parse_args(words).op
    for method in METHODS:
        print(f"{method}\t{unavailable(method, op) or 'ok'}")


# One run


def attempt(options, action, function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        path = os.fsdecode(error.filename) if options.op in TREES else options.path
        stop(FAILED, action, path, error.strerror or error)
    except MemoryError:
        stop(FAILED, "cannot allocate buffers", "", os.strerror(errno.ENOMEM))


def open_file(options):
    """Returns the descriptor; None if the method or operation opens no file."""
    if options.method == "null" or options.op in TREES:
        return None
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if options.op in WRITES else os.O_RDONLY
    flags |= os.O_DIRECT if options.direct == "yes" else 0
    file = attempt(options, "cannot open", os.open, options.path, flags, 0o666)
    if options.advice == "random" and options.op in READS:
        attempt(options, "cannot advise", os.posix_fadvise, file, 0, 0, os.POSIX_FADV_RANDOM)
    return file


def start(options, file, in_flight, directories, barrier):
    def work(worker):
        attempt(options, "cannot prepare for", worker.prepare)
        barrier.wait()  # all workers are ready
        barrier.wait()  # the clock has started
        attempt(options, worker.action, worker.run)
        barrier.wait()  # the last operation has ended

    blocks, count = -(-options.size // options.block), options.threads
    bounds = [i * blocks // count for i in range(count + 1)]
    workers = [Worker(options, file, in_flight, directories, *bounds[i : i + 2]) for i in range(count)]
    for worker in workers:
        try:
            threading.Thread(target=work, args=(worker,), daemon=True).start()
        except RuntimeError as error:
            stop(UNAVAILABLE, "cannot start a thread", "", error)
    return workers


def run(options):
    file, directories = open_file(options), queue.Queue()
    in_flight, barrier = InFlight(options.threads), threading.Barrier(options.threads + 1)
    directories.put(os.fsencode(options.path))
    workers = start(options, file, in_flight, directories, barrier)
    barrier.wait()
    before, start_ns = resource.getrusage(resource.RUSAGE_SELF), time.monotonic_ns()
    barrier.wait()
    if options.op in TREES and options.method == "threads":
        directories.join()
        for _ in workers:
            directories.put(None)
    barrier.wait()
    clocks_ns = [time.monotonic_ns() - start_ns] * 2
    after = resource.getrusage(resource.RUSAGE_SELF)
    if file is not None and options.op in WRITES:
        attempt(options, "cannot sync", os.fdatasync, file)
        clocks_ns[1] = time.monotonic_ns() - start_ns
    if file is not None:
        attempt(options, "cannot close", os.close, file)
    clocks_ns.append(time.monotonic_ns() - start_ns)
    return row(clocks_ns, before, after, workers, in_flight)


def row(clocks_ns, before, after, workers, in_flight):
    latencies_ns = sorted(latency for worker in workers for latency in worker.latencies_ns)
    ranks = {"p50_us": 50, "p95_us": 95, "p99_us": 99, "max_us": 100}

    def rank(percent):  # a tree has no latencies
        return latencies_ns[-(-len(latencies_ns) * percent // 100) - 1] / 1e3 if latencies_ns else 0

    return {
        **{name: f"{clock / 1e9:.9f}" for name, clock in zip(("seconds", "sync_s", "close_s"), clocks_ns)},
        **{name: sum(getattr(worker, name) for worker in workers) for name in ("ops", "bytes", "pages_ok")},
        "in_flight_max": in_flight.max,
        "cpu_user_s": f"{after.ru_utime - before.ru_utime:.6f}",
        "cpu_sys_s": f"{after.ru_stime - before.ru_stime:.6f}",
        "switches": after.ru_nvcsw - before.ru_nvcsw,
        "switches_forced": after.ru_nivcsw - before.ru_nivcsw,
        **{name: f"{rank(percent):.3f}" for name, percent in ranks.items()},
    }


def stop_on_exception(raised):
    """Exits the process: the other threads would wait forever for a thread that died."""
    stop(FAILED, "stopped by a defect", "", repr(raised.exc_value))


def main():
    threading.excepthook = stop_on_exception
    if sys.argv[1:2] == ["--list"]:
        return list_methods(sys.argv[2:])
    options = parse(sys.argv[1:])
    # Check before the file is truncated: an unavailable method must not change it.
    if reason := unavailable(options.method, options.op, options.direct == "yes", options.depth):
        stop(UNAVAILABLE, "cannot run", options.method, reason)
    print("\t".join(f"{key}={value}" for key, value in run(options).items()))


if __name__ == "__main__":
    main()
