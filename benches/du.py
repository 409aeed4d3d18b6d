#!/usr/bin/env python3
"""Measures `fathom du` against GNU du, its rivals and the floor, and writes a run directory.

Owns the cases: trees, cache states, who is timed on them, and what each must show. How it is done is in runner/, the
arms are in du_arms.py, the trees in corpora.py, the rivals in rivals.py. Run it on a machine that does nothing else.
"""

from dataclasses import replace

import du_arms as arms
import rivals
from runner.answers import Exactly
from runner.cases import Case, faster, memory, memory_below, within
from runner.main import Comparison, main

DEFAULT = ("real-warm", "small-warm", "wide-warm", "real-cold", "small-cold", "fuse", "fuse-all", "pipe", "startup")
NAMES = (*DEFAULT, "wide-cold")
LEANEST = memory_below("rival", "every rival's")


def all_cases(tools):
    """Every case of NAMES; `tools` are the programs that were found."""
    warm = needs(gnu=1.9, rival=1.25, floor=1.12, regret=1.05)
    cold = needs(gnu=2.5, rival=1.15, floor=1.1, regret=1.1)
    fuse = needs(gnu=12, rival=3.5, floor=1.2, regret=1.15)
    pipe = needs(gnu=1.6)
    small_memory = (memory(16), LEANEST)
    wide_needs = (*needs(regret=1.05), memory(48), LEANEST)
    warm_arms, cold_arms = totals(tools, [256]), totals(tools, [64], cold=True)
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
            patient_arms(tools),
            tuple(need for need in fuse if need.than != "rival"),  # their defaults take minutes
            slow=True,
            blocks_factor=0.3,
        ),
        Case("pipe", "`du -a` to a pipe, 1.01 M files, warm", "small", listings(tools), pipe, drain=True),
        Case(
            "startup",
            "`du -s`, an empty directory",
            "empty",
            totals(tools, [], fixed=False),
            (within(1.5, "baseline", "GNU du"),),
            blocks_factor=20,
            reload=True,
        ),
    ]
    return [case if case.drain else replace(case, expected=arms.facts_of) for case in cases]


def needs(gnu=None, rival=None, floor=None, regret=None):
    """Those of the usual needs that a case has, by their limits."""
    made = (
        gnu and faster(gnu, "baseline", "GNU du"),
        rival and faster(rival, "rival", "the best rival"),
        floor and within(floor, "floor", "the floor's best"),
        regret and within(regret, "fixed", "the best fixed model or thread count", what="auto "),
    )
    return tuple(need for need in made if need)


def totals(tools, chunks, fixed=True, cold=False, slow=False):
    """The arms that print one total. Where storage makes one wait, rivals also run with many threads."""
    found = [arms.gnu_du(tools.baseline, "-s"), *arms.rivals(tools.rivals, tuned=cold or slow)]
    if tools.fathom:
        found.append(arms.fathom(tools.fathom, "-s"))
        found.append(arms.fathom(tools.fathom, "-s", name="fathom (again)", group="again"))
        found += arms.fathom_fixed(tools.fathom) if fixed else []
    else:
        found.append(arms.gnu_du(tools.baseline, "-s", name="GNU du (again)", group="again"))
    return found + arms.floors(tools.floor, chunks, inode_order=cold)


def fuse_arms(tools):
    """Single names as chunks too: on slow storage each is a wait worth sharing."""
    return totals(tools, [1, 256], slow=True)


def patient_arms(tools):
    """Of a mount on which one thread takes minutes: GNU du all the same, and of all others those with many threads."""
    always = ("baseline", "fathom", "again")
    return [arm for arm in fuse_arms(tools) if arm.group in always or "64" in arm.name or "128" in arm.name]


def listings(tools):
    """The arms that print every file."""
    whole = Exactly()
    found = [arms.gnu_du(tools.baseline, "-a", name="GNU du -a", answer=whole)]
    found.append(arms.gnu_du(tools.baseline, "-a", name="GNU du -a (again)", group="again", answer=whole))
    if tools.fathom:
        found.append(arms.fathom(tools.fathom, "-a", name="fathom -a", answer=whole))
    return found


def installed(options):
    """The rivals, fetched when none was yet."""
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
