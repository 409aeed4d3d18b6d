#!/usr/bin/env python3
"""Writes or reads one file once, with one I/O method, and prints one row. The contract is
../README.md.

A worker is a thread with its own partition of the file. A slot holds one operation and its buffer.
System calls need one slot; a ring has --depth slots, and a block starts only when a slot is free.
"""

import argparse
import errno
import mmap
import os
import resource
import select
import signal
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
METHODS = ("blocking", "pwrite", "uring", "stream")

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

    def __init__(self):
        self.lock = threading.Lock()
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


class Slot:
    """An operation. `view` starts with the page that contains the start of the block."""

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
    """A partition of the file, with the thread that writes or reads it."""

    def __init__(self, options, file, in_flight, first, end):
        self.options, self.file, self.in_flight = options, file, in_flight
        self.first, self.next, self.end = first, first, end
        self.writes = options.op == "write"
        self.action = f"cannot {options.op}"
        self.ops = self.bytes = self.pages_ok = 0
        self.latencies_ns = []

    def prepare(self):
        block, count = self.options.block, min(slots_of(self.options), self.end - self.first)
        # A block that starts inside a page needs space for the start of that page, and may end
        # inside another.
        span = (block // PAGE + 2) * PAGE if block % PAGE else block
        memory = filled(self.options, count * span)
        self.slots = [Slot(i, memory[i * span : (i + 1) * span]) for i in range(count)]
        self.free = list(self.slots)
        self.run = {"uring": self.run_ring, "stream": self.run_stream}.get(self.options.method, self.run_calls)
        if self.options.method == "uring":
            try:
                self.ring = make_ring(self.options.depth)
            except OSError as error:
                stop(UNAVAILABLE, "cannot make a ring", "", error.strerror)

    def begin(self):
        slot = self.free.pop()
        slot.offset = self.next * self.options.block
        slot.length = min(self.options.block, self.options.size - slot.offset)
        slot.moved = 0
        if self.writes:
            slot.stamp(self.options.generation)
        slot.start_ns = 0 if (self.next - self.first) % TIMED_EVERY else time.monotonic_ns()
        self.next += 1
        return slot

    def advance(self, slot, moved):
        """Processes the number of bytes of an operation. Returns whether the block is complete."""
        if moved == 0:
            stop(FAILED, self.action, self.options.path, "unexpected end of file")
        self.ops += 1
        self.bytes += moved
        slot.moved += moved
        if slot.moved < slot.length:
            return False
        if slot.start_ns:
            self.latencies_ns.append(time.monotonic_ns() - slot.start_ns)
        if not self.writes:
            self.pages_ok += slot.verify(self.options)
        self.free.append(slot)
        return True

    # Methods: blocking, pwrite, stream

    def run_calls(self):
        file = self.file
        call = {
            ("blocking", True): lambda view, _: os.write(file, view),
            ("blocking", False): lambda view, _: os.readv(file, (view,)),
            ("pwrite", True): lambda view, offset: os.pwrite(file, view, offset),
            ("pwrite", False): lambda view, offset: os.preadv(file, (view,), offset),
        }[self.options.method, self.writes]
        self.run_blocks(call)

    def run_blocks(self, call):
        while self.next < self.end:
            slot = self.begin()
            self.in_flight.begin()
            while not self.advance(slot, call(slot.rest(), slot.offset + slot.moved)):
                pass
            self.in_flight.end()

    def run_stream(self):
        with open(self.file, "wb" if self.writes else "rb", closefd=False) as stream:
            if self.writes:
                self.run_blocks(lambda view, _: stream.write(view))
                stream.flush()  # the last blocks may still be in the buffer
            else:
                self.run_blocks(lambda view, _: stream.readinto(view))

    # Method: uring

    def queue(self, slot):
        sqe = liburing.io_uring_get_sqe(self.ring)  # never NULL: no slot is queued twice
        prepare = liburing.io_uring_prep_writev if self.writes else liburing.io_uring_prep_readv
        slot.iovec = liburing.Iovec([slot.rest()])  # keeps the object alive: the kernel reads it at submission
        prepare(sqe, self.file, slot.iovec, offset=slot.offset + slot.moved)
        sqe.user_data = slot.index

    def startable(self):
        """Returns the number of blocks to start now: a batch, or the rest if that is less.

        Returns 0 while too few slots are free.
        """
        batch = min(self.options.batch, len(self.slots), self.end - self.next)
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
        while self.next < self.end or len(self.free) < len(self.slots):
            if batch := self.startable():
                self.in_flight.begin(batch)
                for _ in range(batch):
                    self.queue(self.begin())
            wait = self.options.wait == "wait" and not self.startable()
            if wait or liburing.io_uring_sq_ready(self.ring):
                self.submit(wait)
            self.reap()


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


def unavailable(method, direct=False):
    """Returns the reason why the method cannot run on this machine; None if it can."""
    if method == "stream" and direct:
        return "the buffer of a file object is not aligned as O_DIRECT needs it"
    if method != "uring":
        return None
    if liburing is None:
        return f"the module liburing is missing: pip install {LIBURING}"
    if death := death_of_ring():
        return f"the module liburing does not run here: {death}"
    try:
        liburing.io_uring_queue_exit(make_ring(1))
    except OSError as error:
        return f"cannot make a ring: {error.strerror}"
    return None


def slots_of(options):
    return options.depth if options.method == "uring" else 1


# The command line


def number(least, most):
    def parse(text):
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} to {most}")
        return int(text)

    return parse


class Parser(argparse.ArgumentParser):
    def error(self, message):
        stop(MISUSED, "cannot use the command line", "", message)


def parse(words):
    parser = Parser(description="Writes or reads one file once, in one way. See ../README.md.", allow_abbrev=False)
    parser.add_argument("--list", action="store_true", help="say what can run here (alone)")
    parser.add_argument("--op", choices=("write", "read"), required=True)
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--size", type=number(1, 2**47), required=True)
    parser.add_argument("--block", type=number(1, 2**30), required=True)
    for option in ("--threads", "--depth", "--batch"):
        parser.add_argument(option, type=number(1, RING_MAX), default=1)
    parser.add_argument("--wait", choices=("wait", "spin"), default="wait")
    parser.add_argument("--direct", choices=("yes", "no"), default="no")
    for option in ("--seed", "--generation"):
        parser.add_argument(option, type=number(0, UINT64_MAX), default=1)
    options = parser.parse_args(words)
    if options.direct == "yes" and (options.size % 512 or options.block % 512):
        parser.error("with --direct yes, --size and --block are multiples of 512")
    if options.method not in ("pwrite", "uring"):
        options.threads = 1
    return options


def list_methods():
    for method in METHODS:
        print(f"{method}\t{unavailable(method) or 'ok'}")


# One run


def attempt(options, action, function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        stop(FAILED, action, options.path, error.strerror or error)
    except MemoryError:
        stop(FAILED, "cannot allocate buffers", "", os.strerror(errno.ENOMEM))


def open_file(options):
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC if options.op == "write" else os.O_RDONLY
    return os.open(options.path, flags | (os.O_DIRECT if options.direct == "yes" else 0), 0o666)


def start(options, file, in_flight, barrier):
    def work(worker):
        attempt(options, "cannot prepare for", worker.prepare)
        barrier.wait()  # all workers are ready
        barrier.wait()  # the clock has started
        attempt(options, worker.action, worker.run)
        barrier.wait()  # the last operation has ended

    blocks, count = -(-options.size // options.block), options.threads
    bounds = [i * blocks // count for i in range(count + 1)]
    workers = [Worker(options, file, in_flight, *bounds[i : i + 2]) for i in range(count)]
    for worker in workers:
        try:
            threading.Thread(target=work, args=(worker,), daemon=True).start()
        except RuntimeError as error:
            stop(FAILED, "cannot start a thread", "", error)
    return workers


def run(options):
    file = attempt(options, "cannot open", open_file, options)
    in_flight, barrier = InFlight(), threading.Barrier(options.threads + 1)
    workers = start(options, file, in_flight, barrier)
    barrier.wait()
    before, start_ns = resource.getrusage(resource.RUSAGE_SELF), time.monotonic_ns()
    barrier.wait()
    barrier.wait()
    clocks_ns = [time.monotonic_ns() - start_ns] * 2
    after = resource.getrusage(resource.RUSAGE_SELF)
    if options.op == "write":
        attempt(options, "cannot sync", os.fdatasync, file)
        clocks_ns[1] = time.monotonic_ns() - start_ns
    attempt(options, "cannot close", os.close, file)
    clocks_ns.append(time.monotonic_ns() - start_ns)
    return row(clocks_ns, before, after, workers, in_flight)


def row(clocks_ns, before, after, workers, in_flight):
    latencies_ns = sorted(latency for worker in workers for latency in worker.latencies_ns)
    ranks = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {
        **{name: f"{clock / 1e9:.9f}" for name, clock in zip(("seconds", "sync_s", "close_s"), clocks_ns)},
        **{name: sum(getattr(worker, name) for worker in workers) for name in ("ops", "bytes", "pages_ok")},
        "in_flight_max": in_flight.max,
        "cpu_user_s": f"{after.ru_utime - before.ru_utime:.6f}",
        "cpu_sys_s": f"{after.ru_stime - before.ru_stime:.6f}",
        "switches": after.ru_nvcsw - before.ru_nvcsw,
        "switches_forced": after.ru_nivcsw - before.ru_nivcsw,
        **{f"{name}_us": f"{latencies_ns[-(-len(latencies_ns) * p // 100) - 1] / 1e3:.3f}" for name, p in ranks.items()},
    }


def stop_on_exception(raised):
    """Exits the process: the other threads would wait forever for a thread that died."""
    stop(FAILED, "stopped by a defect", "", repr(raised.exc_value))


def main():
    threading.excepthook = stop_on_exception
    if sys.argv[1:] == ["--list"]:
        return list_methods()
    options = parse(sys.argv[1:])
    # Check before the file is truncated: an unavailable method must not change it.
    if reason := unavailable(options.method, options.direct == "yes"):
        stop(UNAVAILABLE, "cannot run", options.method, reason)
    print("\t".join(f"{key}={value}" for key, value in run(options).items()))


if __name__ == "__main__":
    main()
