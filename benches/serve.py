#!/usr/bin/env python3
"""Measures `fathom serve` and its models against nginx, static-web-server and miniserve.

Writes a run directory. Owns the cases: requests, and requirements. serving/ executes them,
serve_arms.py has the servers, serve_files.py the files, rivals.py the rivals. Requires an otherwise
idle machine with at least two processors.
"""

import argparse
import os
import random
import shlex
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import corpora
import rivals
import serve_arms
import serve_files
from runner import build, machine
from runner.cases import EARLIER_LIMIT
from runner.main import EARLIER_HELP, case_names, log, run_directory, scrubbed
from runner.run import Failure
from serve_arms import NGINX
from serving import report
from serving.cases import Case, at_most, better, faster, near, not_worse
from serving.clients import Load
from serving.measure import COLD_CONNECTIONS, COLD_SETS, HOT_CONNECTIONS, IDLE_S, LISTED, ServeBench, Settings
from serving.process import raise_descriptor_limit

SWS = "static-web-server"
AUTO_IS_NEAR = near(1.05, "fixed", "the best model")
EARLIER_IS_NEAR = near(EARLIER_LIMIT, "earlier", "the earlier program")
SYNC, POOL = map(serve_arms.model, ("sync", "pool"))
MIXED_NEEDS = (at_most(3, "growth"), better(5, SYNC, "--io sync"), AUTO_IS_NEAR)
RANDOM_NEEDS = (better(10, SYNC, "--io sync"), not_worse(POOL, "--io pool"), AUTO_IS_NEAR)
SMALL_NEEDS = (faster(NGINX, "nginx with open_file_cache"), better(1.5, SWS, SWS), AUTO_IS_NEAR)
MEDIUM_NEEDS = (better(1.1, "nginx", "nginx"), better(1.6, SWS, SWS), AUTO_IS_NEAR)
LARGE_NEEDS = (not_worse("nginx", "nginx with sendfile"), better(2, SWS, SWS), AUTO_IS_NEAR)
MEMORY_NEEDS = (at_most(12, "idle_mib"), at_most(12, "connection_kib"))
COLD = "p99 of 4 KiB, hot, while 32 clients read a cold set"
LISTING = "p99 of 4 KiB, hot, while 32 clients list a directory of 100,000 entries"
# Servers without directory listings, or without comparable ones.
OTHERS = (NGINX, "nginx", "threads", SWS, "rival")
FEW = {"without": ("threads",)}
CASES = (
    Case("hot-716", "716 B, hot, 64 connections", "hot", "requests_s", 716, SMALL_NEEDS),
    Case("hot-4k", "4 KiB, hot, 64 connections", "hot", "requests_s", 4096, SMALL_NEEDS),
    Case("hot-64k", "64 KiB, hot, 64 connections", "hot", "requests_s", 65536, MEDIUM_NEEDS),
    Case("hot-1m", "1 MiB, hot, 64 connections", "hot", "requests_s", 1 << 20, LARGE_NEEDS),
    Case("mixed-disk", f"{COLD} from the disk", "mixed", "p99_ms", 4096, MIXED_NEEDS),
    Case("mixed-fuse", f"{COLD} from a 1 ms FUSE", "mixed", "p99_ms", 4096, MIXED_NEEDS, slow=True),
    Case("listing", LISTING, "listing", "p99_ms", 4096, (at_most(3, "growth"),), without=OTHERS),
    Case("random-fuse", "random files, cold, 1 ms FUSE", "random", "requests_s", 4096, RANDOM_NEEDS, slow=True),
    Case("memory", "memory", "memory", "connection_kib", 4096, MEMORY_NEEDS, blocks_factor=0.5, **FEW),
    Case("calls", "system calls, 4 KiB, hot", "calls", "calls", 4096, (at_most(3, "calls"),), blocks_factor=0.3, **FEW),
)
NAMES = tuple(case.name for case in CASES)
QUICK = ("hot-4k", "random-fuse", "memory", "calls")

METHOD = """\
Each server has one processor to itself (taskset), with one worker; the clients, and what serves a slow mount, have
another. Before timing, the hot file and some of the cold ones are fetched from every server; status 200 and the
file's own bytes are needed. A server that disagrees or fails is out, and listed. Then come blocks: in each, every
server is started anew, warmed up, measured and ended, in an order shuffled with seed {seed}. Heads differ in length,
and are sent as each server makes them.

Ratios are medians of within-block ratios; in brackets their 95 % bootstrap interval over blocks. The best of several
servers is the one with the best median, which errs against fathom. "fathom (again)" is a second copy of one command:
how far its ratio is from 1 is what this machine cannot tell apart. "fathom" is `--io auto`. Nobody logs, compresses
or adds headers that can be turned off.

Hot: wrk, one thread, {hot} connections, {seconds:g} s after 1 s that does not count. The processor time is that of
all the server's processes. A server that does not use all of its core was held up by the client: there the processor
time is what to compare.

Mixed: {hot} connections ask for one hot file {rate} times a second, at even times whatever the server does. While all of
them are busy, a latency is counted from the time a request was due: a stall counts for all that it hits, not only for
those that a patient client had sent (coordinated omission). Otherwise it is counted from when the request was sent, and
always until the kernel had the last byte for the client (SO_TIMESTAMPNS): what the client itself waits for, on a
processor that it shares with the cold clients and the slow mount, is not the server's. {seconds:g} s alone, then {seconds:g} s while {cold} others read the
cold set, each as fast as it can, in random order. The measuring client goes before all else on its processor
(SCHED_FIFO) where it may. Before every run the caches of this machine are dropped, or the mount is made anew over
files that are in memory; what lies below a virtual disk may still be cached. A p99 is cheap for a server that keeps
its cold clients waiting: their MiB/s stand beside it. More than 1 of the cold set was read: the rest came from memory.

Listing: as mixed, but the {cold} others list one directory of 100,000 entries, the first page of it, again and again.

Random: {hot} connections, each request for another file, in random order, on a new mount: nothing of it is in any
cache.

Memory: resident, of all processes of a server; idle is half a second after its first answer. Then {idle:,}
connections have one answer each and stay open; {waits:g} s later they count as idle. The kernel's memory for sockets is not in it, and nginx has made room
for connections before.

System calls: `strace -f -c` on the running server while {counted:,} requests are answered. What io_uring does without
a call, and its threads in the kernel, are not in it; those threads may also run on the other processor.
"""


def main():
    options = parse_arguments()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    log(f"seed {seed}")
    descriptors = raise_descriptor_limit(2 * options.idle)
    cold_gib = min(options.cold_gib, serve_files.cold_gib_max(corpora.ROOT))
    serve_files.register(cold_gib)
    found, missing = rivals.find_servers()
    chosen = [with_earlier(case, options.earlier) for case in CASES if case.name in options.cases]
    bench = build_bench(options, found, chosen, random.Random(seed))
    # Child processes inherit the affinity; only the servers are moved to another processor.
    os.sched_setaffinity(0, {options.client_cpu})
    results, skipped = measure(bench, chosen)
    finished_report = report.Report(chosen, results, skipped, random.Random(seed))
    print(finished_report.text())
    about = {
        "command": f"python3 benches/serve.py {shlex.join(scrubbed(sys.argv[1:]))}".rstrip(),
        **machine.facts(corpora.ROOT),
        "processors": f"servers on {options.server_cpu}, all else on {options.client_cpu}",
        "descriptors": f"at most {descriptors:,} a process",
        **programs(options, found, missing),
        **files(results, cold_gib, options.cold_gib),
    }
    directory = options.out or run_directory("-serve")
    report.write(directory, finished_report, about, method(options, seed))
    log(f"wrote {os.path.relpath(directory)}")


def with_earlier(case, earlier):
    """Returns the case; with an earlier fathom, its requirements include not being worse than that
    one.
    """
    return replace(case, requirements=(*case.requirements, EARLIER_IS_NEAR)) if earlier else case


def parse_arguments():
    parser = parser_of()
    options = parser.parse_args()
    options.cases = options.cases or list(QUICK if options.quick else NAMES)
    options.blocks = options.blocks or (1 if options.quick else 10)
    options.seconds = options.seconds or (1 if options.quick else 4)
    if options.out and options.out.exists():
        parser.error(f"cannot write into '{options.out}': it is there already")
    if not options.no_fathom and not options.fathom.exists():
        parser.error(f"no program '{options.fathom}': build it with 'cargo build --release', or say --no-fathom")
    if options.earlier and not options.earlier.exists():
        parser.error(f"no program '{options.earlier}'")
    allowed = os.sched_getaffinity(0)
    if options.server_cpu == options.client_cpu or not {options.server_cpu, options.client_cpu} <= allowed:
        parser.error(f"servers and clients need two different processors of {sorted(allowed)}")
    return options


def parser_of():
    def names(text):
        return case_names(text, NAMES)

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=names, help=f"which, separated by commas, of {', '.join(NAMES)}")
    parser.add_argument("--blocks", type=int, help="how often every server is measured (default: 10)")
    parser.add_argument("--seconds", type=int, help="of one measurement, as wrk has it, whole (default: 4)")
    parser.add_argument("--quick", action="store_true", help=f"1 block of 1 s of {', '.join(QUICK)}")
    parser.add_argument("--arms", help="only servers whose names contain one of these, separated by commas")
    parser.add_argument("--without", help="none of the servers whose names contain one of these, separated by commas")
    parser.add_argument("--fathom", type=Path, default=build.REPOSITORY / "target/release/fathom")
    parser.add_argument("--no-fathom", action="store_true", help="measure the others alone")
    parser.add_argument("--earlier", type=Path, metavar="PROGRAM", help=EARLIER_HELP)
    parser.add_argument("--cold-gib", type=float, default=10, help="size of the cold set (default: 10, or what fits)")
    parser.add_argument("--rate", type=int, default=2000, help="hot requests a second beside cold ones (default: 2000)")
    parser.add_argument("--idle", type=int, default=10_000, help="idle connections (default: 10000)")
    parser.add_argument("--counted", type=int, default=20_000, help="requests whose calls are counted (default: 20000)")
    parser.add_argument("--server-cpu", type=int, default=0, help="processor of the servers (default: 0)")
    parser.add_argument("--client-cpu", type=int, default=1, help="processor of all else (default: 1)")
    parser.add_argument("--seed", type=int, help="of the order and the intervals (default: random, and printed)")
    parser.add_argument("--out", type=Path, help="the run directory (default: benches/runs/DATE-KIND-serve)")
    return parser


def build_bench(options, found, chosen, rng):
    """Builds all required programs and returns the benchmark that executes the cases."""
    fathom = None if options.no_fathom else str(options.fathom.resolve())
    earlier = str(options.earlier.resolve()) if options.earlier else None
    arms = only(serve_arms.all_arms(fathom, found, earlier), options.arms, options.without)
    settings = Settings(**{field.name: getattr(options, field.name) for field in fields(Settings)})
    slowfs = build.build_slowfs() if any(case.slow for case in chosen) else None
    return ServeBench(arms, settings, corpora, Load(build.compile_c("load")), slowfs, rng, log)


def only(arms, wanted, unwanted):
    """Returns the selected servers. Fathom with its default model always stays: it is the
    reference.
    """
    wanted = wanted.split(",") if wanted else [""]
    unwanted = unwanted.split(",") if unwanted else []

    def names(arm, words):
        return any(word in arm.name for word in words)

    return [arm for arm in arms if arm.group in ("fathom", "earlier") or (names(arm, wanted) and not names(arm, unwanted))]


def measure(bench, chosen):
    """Returns (results, case -> reason why it was not run). An interrupt keeps the finished cases.
    """
    results, skipped = [], {}
    try:
        for case in chosen:
            try:
                results.append(bench.run(case))
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                log(f"{case.name}: not run: {failure}")
                skipped[case.name] = str(failure)
    except KeyboardInterrupt:
        log("interrupted: only the finished cases are reported")
    return results, skipped


def programs(options, found, missing):
    """Returns program -> version, or the reason why it is missing."""
    listed = {} if options.no_fathom else {"fathom": build.first_line([options.fathom, "--version"])}
    if options.earlier:
        listed["fathom (earlier)"] = build.first_line([options.earlier, "--version"])
    listed.update({name: f"{tool['version']} ({tool['source']})" for name, tool in found.items()})
    listed.update({name: f"not measured: {why}" for name, why in missing.items()})
    return listed


def files(results, cold_gib, wanted_gib):
    """Describes the requested files."""
    kinds = {result.case.kind for result in results}
    names = ["www", *(tree for kind, tree in COLD_SETS.items() if kind in kinds)] if kinds else []
    listed = {f"files `{name}`": corpora.facts_of(name)["origin"] for name in names}
    if "listing" in kinds:
        listed[f"files `{LISTED}`"] = corpora.facts_of(LISTED)["origin"]
    if "mixed" in kinds and cold_gib < wanted_gib:
        listed["cold set"] = f"{cold_gib:.1f} GiB, for there is no room for {wanted_gib:g}"
    return listed


def method(options, seed):
    """Describes the method, in paragraphs."""
    counts = {"seconds": options.seconds, "rate": options.rate, "idle": options.idle, "counted": options.counted, "waits": IDLE_S}
    return METHOD.format(seed=seed, hot=HOT_CONNECTIONS, cold=COLD_CONNECTIONS, **counts)


if __name__ == "__main__":
    main()
