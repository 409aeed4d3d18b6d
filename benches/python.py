#!/usr/bin/env python3
"""Measures the Python package against fsspec, the standard library and the command, and writes a run
directory.

Owns the cases, their requirements, and the measurement: arms in Python are processes that stay, so
that the start of an interpreter is not measured. python_arms.py has the arms, corpora.py the trees.
Requires an otherwise idle machine.
"""

import argparse
import contextlib
import csv
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import corpora
from runner import build, machine, report, stats
from runner.main import run_directory, scrubbed
from runner.run import mounted

HERE = Path(__file__).resolve().parent
COMMANDS = {
    "fathom du -s": (["FATHOM", "du", "-s", "-B1", "TREE"], lambda out: int(out.split()[0])),
    "fathom list --order any": (["FATHOM", "list", "--order", "any", "TREE"], lambda out: out.count(b"\n") - 1),
    "fathom scan": (["FATHOM", "scan", "-o", "OUT", "TREE"], lambda out: None),
    "floor, 1 thread": (["FLOOR", "TREE", "1"], lambda out: 1024 * int(out.split()[0])),
}


@dataclass(frozen=True)
class Requirement:
    """An upper bound of what `ours` takes, as a share of `reference`, or itself without one."""

    text: str
    ours: str
    measure: str  # cpu_s, seconds, driver_mib or worker_mib
    limit: float
    reference: str | None = None


@dataclass(frozen=True)
class Case:
    """A tree, the arms that run on it in turn, and those of them whose answers must be equal."""

    name: str
    title: str
    corpus: str
    arms: tuple
    same: tuple  # groups of arms with equal answers
    requirements: tuple
    slow: bool = False  # mounted through slowfs
    blocks_max: int = sys.maxsize


CASES = (
    Case(
        "du",
        "the usage of 204 k entries",
        "fifth",
        ("fsspec du", "our du", "ff.du"),
        # fsspec counts a file once for each of its names.
        (("fsspec du", "our du"),),
        (Requirement("ff.du: an eighth of the CPU of fsspec's du", "ff.du", "cpu_s", 1 / 8, "fsspec du"),),
    ),
    Case(
        "list",
        "path, size and time of 204 k entries",
        "fifth",
        (
            "scandir + stat to Polars",
            "scandir + stat",
            "ff.list to Polars",
            "ff.list to Polars, 1 thread",
            "ff.list, first batch",
            "fathom du -s",
            "floor, 1 thread",
        ),
        (
            ("scandir + stat to Polars", "scandir + stat", "ff.list to Polars", "ff.list to Polars, 1 thread"),
            ("fathom du -s", "floor, 1 thread"),
        ),
        (
            # The floor keeps nothing: where it misses, the limit is out of reach.
            *(
                Requirement(f"{ours}: a third of the CPU of {other}", ours, "cpu_s", 1 / 3, other)
                # The hyperthreads of a core take more CPU time for the same work than one of them.
                for ours in ("floor, 1 thread", "ff.list to Polars", "ff.list to Polars, 1 thread")
                for other in ("scandir + stat to Polars", "scandir + stat")
            ),
            Requirement("ff.list: the first batch within 20 ms", "ff.list, first batch", "seconds", 0.02),
        ),
    ),
    Case(
        "find",
        "find(detail=True) of 204 k entries",
        "fifth",
        ("fsspec find", "our find"),
        (("fsspec find", "our find"),),
        (Requirement("our find: a third of the CPU of fsspec's", "our find", "cpu_s", 1 / 3, "fsspec find"),),
    ),
    Case(
        "cluster",
        "the scan of 1.02 M entries by two processes of a Dask cluster here",
        "small",
        ("ff.scan, 2 threads", "distributed.scan, 2 processes"),
        (("ff.scan, 2 threads", "distributed.scan, 2 processes"),),
        (
            Requirement(
                "two processes: 0.8 of the rate of two threads",
                "distributed.scan, 2 processes",
                "seconds",
                1 / 0.8,
                "ff.scan, 2 threads",
            ),
        ),
    ),
    Case(
        "cluster-slow",
        "the scan of 1.02 M entries where an operation takes 1 ms, by one worker and by four, of 2 threads each",
        "small",
        ("distributed.scan, 1 worker", "distributed.scan, 4 workers"),
        (("distributed.scan, 1 worker", "distributed.scan, 4 workers"),),
        (
            Requirement(
                "four workers: 0.9 of 4 times the rate of one",
                "distributed.scan, 4 workers",
                "seconds",
                1 / (0.9 * 4),
                "distributed.scan, 1 worker",
            ),
        ),
        slow=True,
        # A block takes about ten minutes. With more threads, two CPUs are busy with the filesystem.
        blocks_max=3,
    ),
    Case(
        "cluster-memory",
        "the scan of 5.1 M entries by two processes",
        "five",
        ("distributed.scan, 2 processes of the package",),
        (),
        (
            Requirement("the driver: 200 MiB", "distributed.scan, 2 processes of the package", "driver_mib", 200),
            Requirement("a worker: 150 MiB", "distributed.scan, 2 processes of the package", "worker_mib", 150),
        ),
        blocks_max=3,
    ),
    *(
        Case(
            f"{name}-overhead",
            f"{ours} and {command} of 1.02 M entries",
            "small",
            (command, ours),
            ((command, ours),) if name != "scan" else (),
            (
                Requirement(f"{ours}: within 1.1 of the time of {command}", ours, "seconds", 1.1, command),
                Requirement(f"{ours}: within 1.1 of the CPU of {command}", ours, "cpu_s", 1.1, command),
            ),
        )
        for name, ours, command in (
            ("du", "ff.du, bytes", "fathom du -s"),
            ("list", "ff.list", "fathom list --order any"),
            ("scan", "ff.scan", "fathom scan"),
        )
    ),
)


class Failure(Exception):
    """The reason why a case is not measured."""


class PythonArm:
    """A process that runs an arm of python_arms.py when it is asked."""

    def __init__(self, options, name, tree):
        command = [str(options.python), "-B", str(HERE / "python_arms.py"), name, str(tree)]
        environment = {**os.environ, "PYTHONPATH": str(options.package)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.name, self.process = name, subprocess.Popen(command, env=environment, **pipes)

    def run(self, out, answer):
        self.process.stdin.write(json.dumps({"out": str(out), "answer": answer}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise Failure(f"{self.name} ended with status {self.process.wait()}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class CommandArm:
    """A program, which starts anew each time and whose output is read."""

    def __init__(self, options, name, tree):
        self.command, self.answer = COMMANDS[name]
        self.name, self.timed = name, build.compile_c("timed")
        self.words = {"FATHOM": str(options.fathom), "FLOOR": build.compile_c("floor"), "TREE": str(tree)}

    def run(self, out, answer):
        command = [{**self.words, "OUT": str(out)}.get(word, word) for word in self.command]
        if answer:
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            return {"answer": self.answer(done.stdout)}
        done = subprocess.run([self.timed, "--drain", *command], check=True, stdout=subprocess.PIPE)
        seconds, user, system, _, code, _ = done.stdout.split()
        if int(code) != 0:
            raise Failure(f"{self.name} ended with status {int(code)}")
        return {"seconds": float(seconds), "cpu_s": float(user) + float(system)}

    def close(self):
        pass


def measure(case, options, rng):
    """Returns arm -> block -> what it took."""
    tree = corpora.corpus(case.corpus)
    if case.slow:
        with mounted(build.build_slowfs(), tree) as mount:
            return measure_on(mount, case, options, rng)
    return measure_on(tree, case, options, rng)


def measure_on(tree, case, options, rng):
    samples = {name: {} for name in case.arms}
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fathom-bench-", dir=corpora.ROOT)))
        arms = [(CommandArm if name in COMMANDS else PythonArm)(options, name, tree) for name in case.arms]
        for arm in arms:
            stack.callback(arm.close)

        def run(arm, answer):
            try:
                return arm.run(scratch / "out", answer)
            finally:
                shutil.rmtree(scratch / "out", ignore_errors=True)

        answers = {arm.name: run(arm, True)["answer"] for arm in arms}
        for names in case.same:
            if len({json.dumps(answers[name]) for name in names}) > 1:
                raise Failure(f"the answers differ: {', '.join(f'{name} {answers[name]}' for name in names)}")
        blocks = min(options.blocks, case.blocks_max)
        for block in range(blocks):
            rng.shuffle(arms)
            log(f"{case.name}: block {block + 1} of {blocks}")
            for arm in arms:
                samples[arm.name][block] = run(arm, False)
    return samples


def median(samples, measure):
    return statistics.median(took[measure] for took in samples.values())


def verdict(requirement, samples, rng):
    """Returns the row of a requirement: what is needed, what was measured, the outcome."""
    ours = {block: took[requirement.measure] for block, took in samples[requirement.ours].items()}
    if requirement.reference is None:
        factor, unit = (1000, "ms") if requirement.measure in ("seconds", "cpu_s") else (1, "MiB")
        middle, low, high = (factor * value for value in stats.interval(list(ours.values()), rng))
        limit, text = factor * requirement.limit, f"{middle:.1f} {unit} [{low:.1f}, {high:.1f}]"
    else:
        theirs = {block: took[requirement.measure] for block, took in samples[requirement.reference].items()}
        ratio = stats.ratio_of(ours, theirs, rng)
        middle, low, high, limit = ratio.value, ratio.low, ratio.high, requirement.limit
        text = f"{middle:.3f} [{low:.3f}, {high:.3f}]"
    crosses = " (interval crosses)" if low <= limit <= high else ""
    return [requirement.text, text, ("PASS" if middle <= limit else "FAIL") + crosses]


def tables(measured, rng):
    """Returns the report as Markdown."""
    needed = [verdict(one, samples, rng) for case, samples in measured for one in case.requirements]
    parts = [report.markdown(["needed", "measured", "outcome"], needed, numbers=False)]
    for case, samples in measured:
        rows = []
        for name in case.arms:
            seconds, cpu = (median(samples[name], measure) for measure in ("seconds", "cpu_s"))
            rows.append([name, str(len(samples[name])), f"{1000 * seconds:.1f}", f"{1000 * cpu:.1f}"])
        table = report.markdown(["arm", "runs", "median ms", "median CPU ms"], rows)
        parts.append(f"### {case.title}\n\n{table}")
    return "\n".join(parts)


def write(directory, measured, text, seed, options):
    """Writes README.md and raw.csv."""
    directory.mkdir(parents=True)
    with open(directory / "raw.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        measures = ("seconds", "cpu_s", "driver_mib", "worker_mib")
        rows.writerow(["case", "arm", "block", *measures])
        for case, samples in measured:
            for name, blocks in samples.items():
                rows.writerows(
                    [case.name, name, at, *(took.get(measure, "") for measure in measures)] for at, took in blocks.items()
                )
    trees = {case.corpus: corpora.facts_of(case.corpus) for case, _ in measured}
    listed = {
        **machine.facts(corpora.ROOT),
        "load at the end": f"{os.getloadavg()[0]:.1f}",
        "Python": build.first_line([str(options.python), "--version"]),
        **{module: version(options, module) for module in ("fsspec", "polars")},
        "fathom": build.first_line([str(options.fathom), "--version"]),
        **{f"tree `{name}`": f"{facts['entries']:,} entries; {facts['origin']}" for name, facts in trees.items()},
    }
    command = f"python3 benches/python.py {shlex.join(scrubbed(sys.argv[1:]))}".rstrip()
    sections = [
        "# The Python package against fsspec, the standard library and the command\n",
        f"    {command}\n",
        report.markdown(["what", "which"], [[label, value] for label, value in listed.items()], numbers=False),
        METHOD.format(seed=seed),
        "## Needed and measured\n",
        text,
    ]
    (directory / "README.md").write_text("\n".join(sections))


METHOD = """\
Caches are warm. Each arm in Python is a process that has imported its modules and run once, whose result was compared:
paths, sizes and times, or all fields, must be equal to the last bit; totals must be equal where both count every name.
A command starts anew for each run, and its output is read from a pipe. Then come blocks: in each, every arm of a case
runs once, in an order shuffled with seed {seed}. CPU time is that of the whole process during the call. Ratios are
medians of those within blocks, in brackets with their 95 % bootstrap interval. Memory is the peak resident set of the
driver's process, which has imported the package, and of the largest of its workers.
"""


def version(options, module):
    return build.first_line([str(options.python), "-c", f"import {module}; print({module}.__version__)"])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [case.name for case in CASES]
    parser.add_argument("--cases", help=f"which, separated by commas, of {', '.join(known)}")
    parser.add_argument("--blocks", type=int, default=10, help="how often every arm runs (default: 10)")
    parser.add_argument("--fathom", type=Path, default=build.REPOSITORY / "target/release/fathom")
    parser.add_argument("--module", type=Path, default=build.REPOSITORY / "target/python/release/lib_fathomfs.so")
    parser.add_argument("--python", type=Path, default=build.REPOSITORY / "target/python-env/bin/python3")
    parser.add_argument("--seed", type=int, help="of the order and the intervals (default: random, and printed)")
    parser.add_argument("--out", type=Path, help="the run directory (default: benches/runs/DATE-KIND-python)")
    options = parser.parse_args()
    unknown = sorted(set((options.cases or known[0]).split(",")) - set(known))
    if unknown:
        parser.error(f"no case '{unknown[0]}': choose from {', '.join(known)}")
    for path in (options.fathom, options.module, options.python):
        if not path.exists():
            parser.error(f"no '{path}': build it with 'make bench-python'")
    return options


def main():
    options = parse_arguments()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    rng = random.Random(seed)
    log(f"seed {seed}")
    wanted = options.cases.split(",") if options.cases else [case.name for case in CASES]
    measured = []
    with tempfile.TemporaryDirectory(prefix="fathom-bench-") as package:
        # The package with the optimised module, whatever the environment has installed.
        shutil.copytree(build.REPOSITORY / "python/fathomfs", Path(package, "fathomfs"), ignore=shutil.ignore_patterns("*.so"))
        shutil.copy(options.module, Path(package, "fathomfs", "_fathomfs.abi3.so"))
        options.package = package
        for case in (case for case in CASES if case.name in wanted):
            try:
                measured.append((case, measure(case, options, rng)))
            except (Failure, OSError, subprocess.SubprocessError) as failure:
                log(f"{case.name}: not measured: {failure}")
    text = tables(measured, rng)
    print(text)
    directory = options.out or run_directory("-python")
    write(directory, measured, text, seed, options)
    log(f"wrote {os.path.relpath(directory)}")


def log(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
