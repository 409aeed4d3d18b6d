#!/usr/bin/env python3
"""Runs the workspace's test programs, as many at once as there are CPUs, and prints the output of each whole.

    tools/run-tests.py together|alone [PREFIX] [OPTION OF CARGO TEST...]

`together` runs all tests but those that tools/tests.txt has run alone, each program in a process of its own; the
longest ones of the last run begin first. `alone` runs the others, one at a time, and a failed one of them once more: if
it passes then, it is printed as flaky. In `make test` (the variable FATHOM_TESTS is not `all`), tests that
tools/tests.txt leaves to `make test-all` are not run. SHARD=K/N runs the share of tools/shards.py. PREFIX runs the
programs whose name begins so, such as serve/tests, all in one shard.

Prints what `cargo test -- --show-output` prints, and adds the seconds of every test to tests.tsv in the directory
FATHOM_TEST_LOGS, and the seconds of processor time and of wall time of every program to programs.tsv beside it.
Exit status: 0, or 101 if a test failed.
"""

import concurrent.futures
import fnmatch
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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import shards

TOP = pathlib.Path(__file__).resolve().parent.parent
CARGO = TOP / "tools/cargo.sh"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or TOP / "target")
LOGS = pathlib.Path(os.environ.get("FATHOM_TEST_LOGS") or TARGET / "test-logs")
LAST_RUN = TARGET / "test-seconds.json"
RULES = TOP / "tools/tests.txt"
# A test program that has not ended by then is killed. libtest has named the tests that run for over a minute.
PROGRAM_S = int(os.environ.get("PROGRAM_SECONDS", "3000"))
# The program whose modules run as programs of their own, as the tests of a command are long.
SPLIT = "cli/tests/cli/main.rs"
DOCUMENTED = "examples in documentation"
# The environment of a test, which may compile programs to measure them.
LINTS = ("RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS")
WITHOUT_LINTS = {name: value for name, value in os.environ.items() if name not in LINTS}
# libtest's `--report-time` adds this to the line of a test.
TIMED = re.compile(r"^(test (\S+) \.\.\. .*?) <([0-9.]+)s>$", re.MULTILINE)
# The last lines that are shown of a program that failed without a failed test.
LAST_LINES = 30


class Program:
    """A test program with the tests to run, or the examples in the documentation of all crates."""

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

    def only(self, tests, name=None):
        """The same program for these tests alone."""
        return Program(name or self.name, [*self.command, "--exact", *tests], self.directory, self.environment)


class Rules:
    """The lines of tools/tests.txt: a word, a pattern of `PROGRAM TEST`, and the reason."""

    def __init__(self, text):
        lines = [line.split(None, 3) for line in text.splitlines() if line.strip() and line[0] != "#"]
        self.rules = [(word, f"{program} {test}") for word, program, test, _reason in lines]
        self.used = set()

    def has(self, word, program, test):
        """Whether a rule with this word is for the test."""
        found = [rule for rule in self.rules if rule[0] == word and fnmatch.fnmatchcase(f"{program} {test}", rule[1])]
        self.used.update(found)
        return bool(found)

    def unused(self):
        return [pattern for _, pattern in self.rules if not any(pattern == used for _, used in self.used)]


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
            manifest = pathlib.Path(message["manifest_path"])
            source = pathlib.Path(message["target"]["src_path"]).relative_to(manifest.parent)
            command = [message["executable"], "--show-output", "-Zunstable-options", "--report-time"]
            package = re.search(r'^name = "(.+)"', manifest.read_text(), re.MULTILINE)[1]
            # libtest takes `--report-time` where unstable options are allowed.
            more = {"CARGO": str(CARGO), "CARGO_MANIFEST_DIR": str(manifest.parent), "RUSTC_BOOTSTRAP": "1"}
            more["CARGO_PKG_NAME"] = package
            name = f"{manifest.parent.name}/{source}"
            programs.append(Program(name, command, manifest.parent, {**WITHOUT_LINTS, **more}))
    return programs


def select(programs, is_alone, is_all, rules):
    """The programs to run, each with its tests, and the number of tests that are left to `make test-all`."""
    chosen, left = [], 0
    for program in programs:
        groups = {}
        for test in program.listed():
            module = program.name.removesuffix("main.rs") + test.partition("::")[0]
            name = module if program.name == SPLIT else program.name
            alone, heavy = rules.has("alone", program.name, test), rules.has("all", program.name, test)
            if heavy and not is_all:
                left += 1
            elif alone == is_alone:
                key = f"{name} {test}" if alone else name
                groups.setdefault(key, []).append(test)
        chosen += [program.only(tests, name) for name, tests in groups.items()]
    return chosen, left


def shown(program):
    return f"     Running {program.name}\n" + TIMED.sub(r"\1", program.output)


def run_together(programs):
    last = json.loads(LAST_RUN.read_text()) if LAST_RUN.exists() else {}
    programs.sort(key=lambda program: last.get(program.name, shards.weight(program.name)), reverse=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in concurrent.futures.as_completed([pool.submit(program.run) for program in programs]):
            print(shown(done.result()), flush=True)
    LAST_RUN.write_text(json.dumps({program.name: program.seconds for program in programs}))


def run_alone(programs):
    """Runs one program at a time. One that fails has another try, alone too."""
    for number, program in enumerate(programs):
        if program.run().status:
            again = program.only([]).run()
            if not again.status:
                # Indented, so that no line of the failure counts.
                failure = "".join(f"  {line}\n" for line in program.output.splitlines())
                print(f"{failure}flaky: {program.name}: failed, and passed when it was run again", flush=True)
                programs[number] = program = again
        print(shown(program), flush=True)


def record(programs):
    """Adds the times to the files of earlier calls."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with open(LOGS / "tests.tsv", "a", encoding="utf-8") as times, open(LOGS / "programs.tsv", "a", encoding="utf-8") as costs:
        for program in programs:
            times.writelines(f"{seconds:.3f}\t{program.name}\t{test}\n" for seconds, test in program.tests())
            costs.write(f"{program.cpu_seconds:.1f}\t{program.seconds:.1f}\t{program.name}\n")


def main(group, prefix, options):
    is_alone, is_all = group == "alone", os.environ.get("FATHOM_TESTS") == "all"
    rules = Rules(RULES.read_text())
    programs = [program for program in built(options) if program.name.startswith(prefix)]
    programs, left = select(programs, is_alone, is_all, rules)
    if not prefix:
        if rules.unused():
            sys.exit(f"{RULES}: no test is {', '.join(rules.unused())}")
        programs = [program for program in programs if shards.is_mine(program.name)]
    if not is_alone and not prefix and shards.is_mine(DOCUMENTED):
        # Without --show-output, with which rustdoc compiles each example by itself: three times the time.
        documented = [CARGO, "test", "--doc", "--no-fail-fast", *options]
        linting = {**os.environ, "RUSTDOC": str(TOP / "tools/rustdoc.sh")}
        programs.append(Program(DOCUMENTED, documented, environment=linting))
    (run_alone if is_alone else run_together)(programs)
    record(programs)
    if left and not is_alone:
        print(f"left to make test-all: {left}")
    failed = [program.name for program in programs if program.status]
    if failed:
        print(f"failed: {', '.join(failed)}")
        sys.exit(101)


if __name__ == "__main__":
    words = sys.argv[1:]
    if not words or words[0] not in ("together", "alone"):
        sys.exit(__doc__)
    has_prefix = len(words) > 1 and not words[1].startswith("-")
    main(words[0], words[1] if has_prefix else "", words[2 if has_prefix else 1 :])
