#!/usr/bin/env python3
"""Measures `fathom list` against find, bfs, fd, fdf and the lower bound, and writes a run
directory.

Owns the cases: trees, cache states, arms, and requirements. runner/ prepares them, list_arms.py has
the arms, corpora.py the trees, rivals.py the rivals. Requires an otherwise idle machine.
"""

from dataclasses import replace

import list_arms as arms
import rivals
from runner.cases import Case, faster, within
from runner.main import Comparison, main

DEFAULT = ("real-warm", "small-warm", "small-cold", "fuse", "fuse-all")
NAMES = (*DEFAULT, "real-cold")


def all_cases(tools):
    """Returns every case of NAMES; `tools` are the available programs."""
    warm_arms, patient = names(tools), names(tools, patient=True)
    warm = (
        faster(1.8, "bfs"),
        faster(2, "baseline"),
        faster(1.1, "fdf"),
        within(1.4, "floor"),
    )
    cold = (faster(2.5, "baseline"), faster(2.5, "bfs"))
    fuse = (faster(3, "baseline"), within(1, "bfs"), within(1, "fd"))
    cases = [
        Case("real-warm", "names, real source tree, warm", "real", warm_arms, warm, blocks_factor=3),
        Case("small-warm", "names, 1.01 M small files, warm", "small", warm_arms, warm),
        Case("real-cold", "names, real source tree, cold", "real", patient, cold=True),
        Case("small-cold", "names, 1.01 M small files, cold", "small", patient, cold, cold=True),
        Case("fuse", "names, part of the source tree, 1 ms FUSE", "fuse", patient, fuse, slow=True),
        Case(
            "fuse-all",
            "names, the whole source tree, 1 ms FUSE",
            "real",
            [arm for arm in patient if not few_threads(arm)],
            fuse,
            slow=True,
            blocks_factor=0.3,
        ),
    ]
    order = within(1.3, "fathom", ours="ordered")
    return [replace(case, requirements=(*case.requirements, order), drain=True) for case in cases]


def names(tools, patient=False):
    """Returns the arms that list names; `patient` adds arms with many threads, for slow storage."""
    found = [arms.find(tools.baseline), *arms.rivals(tools, tuned=patient)]
    if tools.fathom:
        found += arms.fathoms(tools.fathom)
    return found + arms.floors(tools.floor, arms.FLOOR_THREADS_PATIENT if patient else arms.FLOOR_THREADS)


def few_threads(arm):
    """Returns whether the arm's fixed number of threads is so low that a large slow tree takes
    minutes.
    """
    return arm.group in ("fixed", "floor") and not any(number in arm.name for number in ("16", "32", "64", "128"))


def add_options(parser):
    for name in rivals.LISTERS:
        parser.add_argument(f"--{name}", metavar="PROGRAM", help=f"another {name} than that in PATH")


def installed(options):
    return rivals.find_listers({name: getattr(options, name) for name in rivals.LISTERS})


COMPARISON = Comparison(
    script="list.py",
    title="fathom list against find, its rivals and the floor",
    summary="Measures `fathom list` against find, bfs, fd, fdf and the floor, and writes a run directory.",
    method="""\
Before timing, every arm ends its paths in NUL; sorted, they must be find's, and those of `fathom list` without
--order must be find's byte for byte. While timed, lines end in newlines, standard output is a pipe that is read, and
an output whose length changes is noted.""",
    baseline="find",
    option="--find",
    command="find",
    floor="names",
    cases=all_cases,
    names=NAMES,
    default=DEFAULT,
    quick=("real-warm", "fuse"),
    rivals=installed,
    suffix="-list",
    add_options=add_options,
)

if __name__ == "__main__":
    main(COMPARISON)
