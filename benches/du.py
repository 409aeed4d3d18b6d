#!/usr/bin/env python3
"""Measures `fathom du` against GNU du, its rivals and the lower bound, and writes a run directory.

Owns the cases: trees, cache states, arms, and requirements. runner/ prepares them, du_arms.py has
the arms, corpora.py the trees, rivals.py the rivals. Requires an otherwise idle machine.
"""

from dataclasses import replace

import du_arms as arms
import rivals
from runner.answers import SameBytes
from runner.cases import Case, faster, memory, memory_below, within
from runner.main import Comparison, main

DEFAULT = ("real-warm", "small-warm", "wide-warm", "real-cold", "small-cold", "fuse", "fuse-all", "pipe", "startup")
NAMES = (*DEFAULT, "wide-cold")
LEANEST = memory_below("rival")


def all_cases(tools):
    """Returns every case of NAMES; `tools` are the available programs."""
    warm = requirements(gnu=1.9, rival=1.25, floor=1.12, regret=1.05)
    cold = requirements(gnu=2.5, rival=1.15, floor=1.1, regret=1.1)
    fuse = requirements(gnu=12, rival=3.5, floor=1.2, regret=1.15)
    pipe = requirements(gnu=1.6)
    small_memory = (memory(16), LEANEST)
    wide_needs = (*requirements(regret=1.05), memory(48), LEANEST)
    warm_arms, cold_arms = total_arms(tools, [256]), total_arms(tools, [64], cold=True)
    cases = [
        Case("real-warm", "`du -s`, real source tree, warm", "real", warm_arms, warm),
        Case("small-warm", "`du -s`, 1.01 M small files, warm", "small", warm_arms, warm + small_memory),
        Case("wide-warm", "`du -s`, 1 M files in one directory, warm", "wide", warm_arms, wide_needs),
        Case("real-cold", "`du -s`, real source tree, cold", "real", cold_arms, cold, cold=True),
        Case("small-cold", "`du -s`, 1.01 M small files, cold", "small", cold_arms, cold, cold=True),
        Case("wide-cold", "`du -s`, 1 M files in one directory, cold", "wide", cold_arms, cold=True),
        Case("fuse", "`du -s`, part of the source tree, 1 ms FUSE", "fuse", fuse_arms(tools), fuse, slow=True),
        Case(
            "fuse-all",
            "`du -s`, the whole source tree, 1 ms FUSE",
            "real",
            many_thread_arms(tools),
            # The rivals' defaults take minutes.
            tuple(requirement for requirement in fuse if requirement.than != "rival"),
            slow=True,
            blocks_factor=0.3,
        ),
        Case("pipe", "`du -a` to a pipe, 1.01 M files, warm", "small", listing_arms(tools), pipe, drain=True),
        Case(
            "startup",
            "`du -s`, an empty directory",
            "empty",
            total_arms(tools, [], fixed=False),
            (within(1.5, "baseline"),),
            blocks_factor=20,
            reload=True,
        ),
    ]
    return [case if case.drain else replace(case, expected=arms.facts_of) for case in cases]


def requirements(gnu=None, rival=None, floor=None, regret=None):
    """Returns the usual requirements whose limits are given."""
    made = (
        gnu and faster(gnu, "baseline"),
        rival and faster(rival, "rival"),
        floor and within(floor, "floor"),
        regret and within(regret, "fixed"),
    )
    return tuple(requirement for requirement in made if requirement)


def total_arms(tools, chunks, fixed=True, cold=False, slow=False):
    """Returns the arms that print one total. On slow storage rivals also run with many threads."""
    found = [arms.gnu_du(tools.baseline, "-s"), *arms.rivals(tools.rivals, tuned=cold or slow)]
    if tools.fathom:
        found.append(arms.fathom(tools.fathom, "-s"))
        found += arms.fathom_fixed(tools.fathom) if fixed else []
    return found + arms.floors(tools.floor, chunks, inode_order=cold)


def fuse_arms(tools):
    """Returns the arms for a slow mount. The lower bound also runs with chunks of single names,
    because each lookup there is a wait that another thread can share.
    """
    return total_arms(tools, [1, 256], slow=True)


def many_thread_arms(tools):
    """Returns the arms for a mount on which one thread takes minutes: GNU du and fathom as they
    are, and of the others only those with many threads.
    """
    always = ("baseline", "fathom")
    return [arm for arm in fuse_arms(tools) if arm.group in always or "64" in arm.name or "128" in arm.name]


def listing_arms(tools):
    """Returns the arms that print every file."""
    whole = SameBytes()
    found = [arms.gnu_du(tools.baseline, "-a", name="GNU du -a", answer=whole)]
    if tools.fathom:
        found.append(arms.fathom(tools.fathom, "-a", name="fathom -a", answer=whole))
    return found


def installed(options):
    """Returns the rivals. Installs them first if none has been installed."""
    if not rivals.INDEX.exists():
        rivals.install()
    found, missing = rivals.load()
    return {name: tool for name, tool in found.items() if name != "gnu"}, missing


COMPARISON = Comparison(
    script="du.py",
    title="fathom du against GNU du, its rivals and the floor",
    summary="Measures `fathom du` against GNU du, its rivals and the floor, and writes a run directory.",
    method="""\
Before timing, every arm's total is compared with that of a plain recursive lstat (hard links once, allocated
blocks); `du -a` is compared with GNU's byte for byte.""",
    baseline="GNU du",
    option="--gnu",
    command="du",
    floor="floor",
    cases=all_cases,
    names=NAMES,
    default=DEFAULT,
    quick=("real-warm", "fuse", "startup"),
    rivals=installed,
)

if __name__ == "__main__":
    main(COMPARISON)
