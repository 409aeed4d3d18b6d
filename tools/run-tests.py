#!/usr/bin/env python3
"""Runs the workspace's test programs, as many at once as there are CPUs, and prints the output of each whole.

    tools/run-tests.py [OPTION OF CARGO TEST...]

cargo runs one test program after the other, and most of them wait for a browser, a server or a disk towards their
end. The longest ones of the last run begin first; in a fresh clone, those of LONGEST. Prints what
`cargo test -- --show-output` prints, and writes the seconds of every test to test-logs/tests.tsv in the target
directory, and the seconds of processor time and of wall time of every program to programs.tsv beside it. Exit status:
0, or 101 if a test failed.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter

TOP = pathlib.Path(__file__).resolve().parent.parent
CARGO = TOP / "tools/cargo.sh"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or TOP / "target")
LAST_RUN = TARGET / "test-seconds.json"
TIMES = TARGET / "test-logs/tests.tsv"
COSTS = TARGET / "test-logs/programs.tsv"
# A test program that has not ended by then is killed. libtest has named the tests that run for over a minute.
PROGRAM_S = int(os.environ.get("PROGRAM_SECONDS", "1500"))
# The longest programs, longest first, for the first run.
LONGEST = [
    "cli/tests/cli/du_gnu",
    "walk/tests/walk/main.rs",
    "cli/tests/cli/examples",
    "cli/tests/cli/bench",
    "serve/tests/http/main.rs",
    "cli/tests/cli/du_real",
    "cli/tests/cli/du_property",
    "examples in documentation",
]
# The program whose modules run as programs of their own, as the tests of a command are long.
SPLIT = "cli/tests/cli/main.rs"
# The environment of a test, which may compile programs to measure them.
LINTS = ("RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS")
WITHOUT_LINTS = {name: value for name, value in os.environ.items() if name not in LINTS}
# libtest's `--report-time` adds this to the line of a test.
TIMED = re.compile(r"^(test (\S+) \.\.\. .*?) <([0-9.]+)s>$", re.MULTILINE)
# The last lines that are shown of a program that failed without a failed test.
LAST_LINES = 30


class Program:
    """A test program, or the examples in the documentation of all crates."""

    def __init__(self, name, command, directory=TOP, environment=None):
        self.name, self.command, self.directory = name, command, directory
        self.environment = WITHOUT_LINTS if environment is None else environment
        self.seconds, self.cpu_seconds, self.status, self.output = 0.0, 0.0, None, ""

    def run(self):
        start = time.monotonic()
        with tempfile.TemporaryFile() as output:
            started = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            limit = threading.Timer(PROGRAM_S, started.kill)
            limit.start()
            _, status, usage = os.wait4(started.pid, 0)
            limit.cancel()
            started.returncode = self.status = os.waitstatus_to_exitcode(status)
            output.seek(0)
            self.output = output.read().decode(errors="replace")
        self.seconds, self.cpu_seconds = time.monotonic() - start, usage.ru_utime + usage.ru_stime
        if self.status and "\ntest result: FAILED" not in self.output:
            self.output += self.unexplained_end()
        return self

    def tests(self):
        """Seconds of each test."""
        return [(float(seconds), test) for _, test, seconds in TIMED.findall(self.output)]

    def unexplained_end(self):
        """The failure of a program that was aborted or killed, in the form of a failed test: how it ended, the tests
        that were running, and what was printed last. With its sum, unless it has printed one."""
        how = signal.Signals(-self.status).name if self.status < 0 else f"status {self.status}"
        ends = dict(re.findall(r"^test (.+?) \.\.\. (ok|FAILED|ignored)", self.output, re.MULTILINE))
        # libtest begins the tests in the order in which it lists them, as many at once as there are CPUs.
        running = [test for test in self.listed(check=False) if test not in ends][: os.cpu_count()]
        ended = Counter() if "\ntest result: ok" in self.output else Counter(ends.values())
        passed, failed, ignored = ended["ok"], ended["FAILED"] + 1, ended["ignored"]
        # Indented, so that no line counts again.
        last = [f"  {line}" for line in self.output.splitlines()[-LAST_LINES:]]
        told = [f"ended with {how} after {self.seconds:.0f} s in: {' '.join(running)}", *last]
        told = [f"test {self.name} ... FAILED", "failures:", f"---- {self.name} ----", *told, "failures:"]
        told.append(f"test result: FAILED. {passed} passed; {failed} failed; {ignored} ignored")
        return "\n" + "\n".join(told) + "\n"

    def listed(self, check=True):
        """The names of its tests."""
        command, out = [*self.command, "--list", "--format=terse"], subprocess.PIPE
        listing = subprocess.run(
            command, cwd=self.directory, env=self.environment, stdout=out, text=True, check=check
        )
        return re.findall(r"^(.+): test$", listing.stdout, re.MULTILINE)

    def modules(self):
        """A program for the tests of each module."""
        tests = {}
        for test in self.listed():
            tests.setdefault(test.partition("::")[0], []).append(test)
        for module, names in tests.items():
            name = self.name.removesuffix("main.rs") + module
            yield Program(name, [*self.command, "--exact", *names], self.directory, self.environment)


def built(options):
    """The test programs that cargo builds with these options."""
    command = [CARGO, "test", "--no-run", "--message-format=json-render-diagnostics", *options]
    build = subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if build.returncode:
        sys.exit(build.returncode)
    programs = []
    for line in build.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            directory = pathlib.Path(message["manifest_path"]).parent
            source = pathlib.Path(message["target"]["src_path"]).relative_to(directory)
            command = [message["executable"], "--show-output", "-Zunstable-options", "--report-time"]
            # libtest takes `--report-time` where unstable options are allowed.
            more = {"CARGO": str(CARGO), "CARGO_MANIFEST_DIR": str(directory), "RUSTC_BOOTSTRAP": "1"}
            programs.append(Program(f"{directory.name}/{source}", command, directory, {**WITHOUT_LINTS, **more}))
    return programs


def main(options):
    documented = [CARGO, "test", "--doc", "--no-fail-fast", *options, "--", "--show-output"]
    linting = {**os.environ, "RUSTDOC": str(TOP / "tools/rustdoc.sh")}
    programs = [*built(options), Program("examples in documentation", documented, environment=linting)]
    programs = [part for program in programs for part in (program.modules() if program.name == SPLIT else [program])]
    last = json.loads(LAST_RUN.read_text()) if LAST_RUN.exists() else {}
    first = {name: len(LONGEST) - place for place, name in enumerate(LONGEST)}
    programs.sort(key=lambda program: last.get(program.name, first.get(program.name, 0)), reverse=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in concurrent.futures.as_completed([pool.submit(program.run) for program in programs]):
            program = done.result()
            print(f"     Running {program.name}", TIMED.sub(r"\1", program.output), sep="\n", flush=True)
    tests = sorted((seconds, test, program.name) for program in programs for seconds, test in program.tests())
    TIMES.parent.mkdir(parents=True, exist_ok=True)
    TIMES.write_text("".join(f"{seconds:.3f}\t{program}\t{test}\n" for seconds, test, program in reversed(tests)))
    costs = sorted((-program.cpu_seconds, program.seconds, program.name) for program in programs)
    COSTS.write_text("".join(f"{-cpu:.1f}\t{wall:.1f}\t{name}\n" for cpu, wall, name in costs))
    LAST_RUN.write_text(json.dumps({program.name: program.seconds for program in programs}))
    failed = [program.name for program in programs if program.status]
    if failed:
        print(f"failed: {', '.join(failed)}")
        sys.exit(101)


if __name__ == "__main__":
    main(sys.argv[1:])
