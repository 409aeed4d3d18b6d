#!/usr/bin/env python3
"""Measures `fathom rm -rf` against rm and find, and writes a run directory.

Owns the cases, the arms, and a preparation that builds the tree anew before every run. runner/ does
the rest, corpora.py has the trees. Requires an otherwise idle machine. A filesystem that is mounted
with `discard` measures the disk's speed at that: FATHOM_CORPORA=DIR selects another one.
"""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import corpora
from runner import run
from runner.cases import Arm, Case, faster, within
from runner.main import Comparison, main

DEFAULT = ("small", "fuse")
NAMES = (*DEFAULT, "few", "wide")
THREADS = (1, 2, 8, 64)
RM = "rm -rf"


@dataclass(frozen=True)
class Gone:
    """No output. The preparer looks whether something of the tree is left."""

    def mismatch(self, output, tree, expected):
        return f"it prints {output[:80]!r}" if output else None

    def summary(self, output):
        return "the whole tree is gone after every run"


def all_cases(tools):
    """Returns every case of NAMES; `tools` are the available programs."""
    arms = arms_of(tools)
    rm, find = within(1, "baseline"), within(1, "rival")
    return [
        Case("small", "1.01 M files in 10,000 directories", "small", arms, (rm, find), blocks_factor=0.5),
        Case("fuse", "2,000 files in 100 directories, 1 ms FUSE", "few", arms, (faster(10, "baseline"),), slow=True),
        Case("few", "2,000 files in 100 directories", "few", arms, (rm,)),
        Case("wide", "1 M files in one directory", "wide", arms, (rm,), blocks_factor=0.5),
    ]


def arms_of(tools):
    """Returns the arms: rm, find, and fathom with adapting and with fixed numbers of threads."""
    found = [Arm(RM, "baseline", (*tools.baseline, "-rf", "TREE"), Gone())]
    found.append(Arm("find -delete", "rival", ("find", "TREE", "-delete"), Gone()))
    if not tools.fathom:
        return found
    ours = (tools.fathom, "rm", "-rf")
    for name, group, options in [
        ("fathom rm -rf", "fathom", ()),
        ("fathom rm -rf --log", "fixed", ("--log", "OUT")),
        *((f"fathom rm -rf --threads={number}", "fixed", (f"--threads={number}",)) for number in THREADS),
    ]:
        found.append(Arm(name, group, (*ours, *options, "TREE"), Gone()))
    return found


class FreshPreparer(run.Preparer):
    """Has the tree built anew before each command, which fails if something of the one before is left."""

    def tree(self, case, stack):
        """Returns a directory of its own on the trees' filesystem, and the name of the tree in it."""
        # The tree that stays tells the number of entries.
        self.corpora.corpus(case.corpus)
        scratch = Path(stack.enter_context(run.scratch_in(self.corpora.ROOT)))
        source, mount = scratch / "source", scratch / "mount"
        source.mkdir()
        self.builder = (sys.executable, str(Path(__file__).resolve()), BUILD, case.corpus, str(source / "tree"))
        if not case.slow:
            return source, "tree"
        mount.mkdir()
        stack.enter_context(run.mounted_at(self.tools.slowfs, source, mount, "--removable"))
        return mount, "tree"

    def verify(self, prepared):
        prepared.rebuild = self.builder
        super().verify(prepared)

    def answer(self, prepared, arm):
        tree = Path(self.builder[-1])
        try:
            return super().answer(prepared, arm)
        finally:
            if tree.exists():
                shutil.rmtree(tree)
                raise run.Failure("it has left something of the tree")


# The first argument of this script when it builds a tree, by its name, at a path where nothing may be.
BUILD = "--build"


def build_tree(name, path):
    tree = Path(path)
    tree.mkdir()
    _, build = corpora.BUILDERS[name]
    build(tree)
    os.sync()


COMPARISON = Comparison(
    script="rm.py",
    title="fathom rm against rm and find",
    summary="Measures `fathom rm -rf` against rm and find -delete, and writes a run directory.",
    method="""\
Each run removes a tree that was built for it from the same recipe and written to the disk, and an arm is excluded if
anything of the tree is left or anything is printed. Building is not timed.""",
    remark="""\
All unlink calls in one directory take its lock, so the case with one directory shows what threads cannot do.""",
    baseline="rm",
    option="--rm",
    command="rm",
    floor="names",
    cases=all_cases,
    names=NAMES,
    default=DEFAULT,
    quick=("few", "fuse"),
    rivals=lambda options: ({}, {}),
    suffix="-rm",
    preparer=FreshPreparer,
)

if __name__ == "__main__":
    if sys.argv[1:2] == [BUILD]:
        build_tree(*sys.argv[2:])
    else:
        main(COMPARISON)
