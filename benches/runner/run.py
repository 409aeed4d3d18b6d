"""Preparation of cases: the tree, the data, and the verification of outputs. `fathom bench run` measures them.

An arm that fails, or prints a wrong output, is excluded with the reason.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from . import cases

TIMEOUT_S = 900
# No environment variables that change a program's output, and no user configuration.
ENVIRONMENT = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": "/nonexistent"}


class Failure(Exception):
    """The reason why an arm is excluded from a case."""


@dataclass
class Prepared:
    """A case whose tree, data and arms are ready."""

    case: object  # with the arms whose output is right
    directory: Path  # in which the commands run
    names: dict  # placeholder -> value
    rebuild: tuple = ()  # the command that builds the tree anew before each run
    entries: int = 0  # of the tree
    excluded: dict = field(default_factory=dict)  # arm -> reason
    unmet: tuple = ()  # requirements on arms that are excluded
    answer: str = ""  # summary of the baseline's output
    made: dict = field(default_factory=dict)  # arm -> bytes of the files it created during verification, if any

    def text(self, blocks):
        """Returns the case for a file of `fathom bench run --cases`."""
        case, prepare = self.case, f"rm -rf {shlex.quote(self.names['OUT'])}"
        if self.rebuild:
            prepare += f" && {shlex.join(self.rebuild)}"
        lines = [
            "[[case]]",
            f"name = {quoted(case.name)}",
            f"directory = {quoted(str(self.directory))}",
            f"blocks = {max(1, round(blocks * case.blocks_factor))}",
            f"cold = {quoted(case.cold)}",
            f"output = {quoted('pipe' if case.drain else 'null')}",
            f"timeout-seconds = {TIMEOUT_S}",
            # Verified before; not all programs can print the same.
            'same-output = "any"',
        ]
        for arm in sorted(case.arms, key=lambda arm: arm.group != "baseline"):
            lines += [
                "[[case.command]]",
                f"name = {quoted(arm.name)}",
                f"group = {quoted(arm.group)}",
                f"run = {quoted([str(word) for word in arm.argv(self.names)])}",
                f"prepare = {quoted(prepare)}",
                f"optional = {quoted(arm.group != 'baseline')}",
            ]
        for one in case.requirements:
            lines += ["[[case.require]]", f"command = {quoted(one.ours)}", f"{one.kind} = {quoted(one.limit)}"]
            lines += [f"than = {quoted(one.than)}"] if one.than else []
        return "\n".join(lines) + "\n"


def quoted(value):
    """Returns a value of TOML: its strings, numbers, booleans and lists are those of JSON."""
    return json.dumps(value, ensure_ascii=False)


class Preparer:
    """Prepares cases with a set of programs; `corpora` is the module that builds the trees."""

    def __init__(self, tools, corpora, log):
        self.tools, self.corpora, self.log = tools, corpora, log

    def prepare(self, case, stack):
        """Returns the prepared case. Its mount and its data last as long as `stack`."""
        if case.cold and os.geteuid() != 0:
            raise Failure("dropping caches needs root")
        directory, tree = self.tree(case, stack)
        scratch = Path(stack.enter_context(scratch_in(self.corpora.ROOT)))
        names = {"TREE": tree, "EMPTY": str(self.corpora.corpus("empty")), "OUT": str(scratch / "out")}
        names |= {word: str(scratch / f"made-{at}") for at, word in enumerate(case.prepare)}
        prepared = Prepared(case, directory, names, entries=self.corpora.facts_of(case.corpus)["entries"])
        for word, command in case.prepare.items():
            self.log(f"{case.name}: preparing {word}")
            self.make(prepared, [names.get(part, part) for part in command])
        self.verify(prepared)
        return prepared

    def tree(self, case, stack):
        """Returns the working directory, and the name of the tree in it."""
        path = self.corpora.corpus(case.corpus)
        mount = stack.enter_context(mounted(self.tools.slowfs, path)) if case.slow else path
        return mount.parent, mount.name

    def make(self, prepared, command):
        _, stderr, status = communicate(command, prepared.directory)
        if status != 0:
            raise Failure(f"preparing it failed: {stderr.decode(errors='replace').strip()}")

    def verify(self, prepared):
        """Leaves the arms whose output is right. The reasons of the others are recorded."""
        case, present = prepared.case, []
        # Computed from the tree itself, even if the measurement uses a mount of it.
        expected = case.expected(self.corpora.corpus(case.corpus)) if case.expected else None
        for arm in sorted(case.arms, key=lambda arm: arm.group != "baseline"):
            try:
                output = self.answer(prepared, arm)
                prepared.made[arm.name] = size_of(Path(prepared.names["OUT"]))
                if expected is None:
                    expected = baseline_output(prepared, arm, output)
                mismatch = arm.answer.mismatch(output, prepared.names["TREE"], expected)
            except Failure as failure:
                mismatch = str(failure)
            if mismatch:
                self.log(f"{case.name}: {arm.name} is out: {mismatch}")
                prepared.excluded[arm.name] = mismatch
            else:
                present.append(arm)
        if not any(arm.group == "baseline" for arm in present):
            raise Failure(f"the baseline is out: {next(iter(prepared.excluded.values()), 'there is none')}")
        prepared.case = cases.among(case, present)
        left = {word for arm in present for word in (arm.name, arm.group)}
        prepared.unmet = tuple(one for one in case.requirements if one.ours not in left)

    def answer(self, prepared, arm):
        self.make(prepared, ["rm", "-rf", prepared.names["OUT"]])
        if prepared.rebuild:
            self.make(prepared, prepared.rebuild)
        stdout, stderr, status = communicate(arm.argv(prepared.names, checking=True), prepared.directory)
        if status != 0:
            lines = stderr.decode(errors="replace").strip().splitlines()
            raise Failure(f"exit status {status}: {lines[-1] if lines else 'no message'}")
        return stdout


def baseline_output(prepared, arm, output):
    """Records the baseline's output, the reference for the other arms."""
    if arm.group != "baseline":
        raise Failure("the baseline has no answer to compare with")
    prepared.answer = arm.answer.summary(output)
    return output


def size_of(path):
    """Returns the bytes of the files at `path` and below it."""
    return sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())


def scratch_in(directory):
    return tempfile.TemporaryDirectory(prefix="fathom-bench-", dir=directory)


def reload(programs):
    """Reads programs from the disk: a file just written is cached in small folios, and starts slower."""
    if os.geteuid() == 0:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        for program in programs:
            if os.path.isabs(program) and os.path.isfile(program):
                Path(program).read_bytes()


def communicate(command, directory):
    """Returns (stdout, stderr, status). The process group of its own lets a hanging arm be killed whole."""
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


def machine_load():
    """Returns (steal ticks, total ticks of all CPUs, load average)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return ticks[7], sum(ticks[:8]), os.getloadavg()[0]


def describe_load(before, after):
    """Describes the load of the rest of the machine."""
    total = max(after[1] - before[1], 1)
    steal = 100 * (after[0] - before[0]) / total
    return f"load {before[2]:.1f} before and {after[2]:.1f} after, {steal:.1f} % of CPU time stolen"
