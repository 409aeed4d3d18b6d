#!/usr/bin/env python3
"""Measures `fathom scan` and queries on inventories, and writes a run directory.

Owns the cases: trees, arms, and requirements. runner/ prepares them, corpora.py has the trees.
Requires an otherwise idle machine.
"""

from runner.answers import AnyOutput, SameBytes, SamePaths, SameTotal
from runner.cases import Arm, Case, at_most, faster, memory, within
from runner.main import Comparison, main

DEFAULT = ("scan-small", "scan-five", "ask-five")
# The fields of an inventory entry, as format directives of find.
FIELDS = r"%p\t%y\t%D\t%i\t%#m\t%U\t%G\t%n\t%s\t%b\t%A@\t%T@\t%C@\t%l\n"
REPORTS = ("dir", "depth", "user", "group", "ext", "age", "size", "type", "file")
SCAN, LIVE, FROM = "fathom scan", "fathom du -s", "fathom du -s --from"
REPORT, GREW = "fathom report", "fathom grew"


def all_cases(tools):
    """Returns every case of DEFAULT; `tools` are the available programs."""
    requirements = (within(1.5, "live"), faster(2, "baseline"), memory(120))
    scans = scan_arms(tools)
    asked = [within(0.1, LIVE, ours=name) for name in (FROM, *map(top_name, REPORTS))]
    return [
        Case("scan-small", "an inventory of 1.01 M small files, warm", "small", scans, requirements, entry_bytes_max=40),
        Case(
            "scan-five",
            "an inventory of 5.05 M small files, warm",
            "five",
            scans,
            requirements,
            entry_bytes_max=40,
            blocks_factor=0.5,
        ),
        Case(
            "ask-five",
            "questions to an inventory of 5.05 M entries",
            "five",
            query_arms(tools),
            (*asked, at_most(3, REPORT), at_most(2, GREW)),
            prepare={
                "MADE": (str(tools.fathom), "scan", "-o", "MADE", "TREE"),
                # An inventory of an earlier time, when some files were not there.
                "LESS": (str(tools.fathom), "scan", "--exclude", "*7", "-o", "LESS", "TREE"),
            },
            blocks_factor=0.5,
        ),
    ]


def scan_arms(tools):
    """Returns the arms that record every entry, and one that only adds up sizes."""
    find, fathom = tools.baseline, str(tools.fathom)
    checked = ("sh", "-c", '"$0" scan -o "$2" "$1" && "$0" export --to nul "$2"', fathom, "TREE", "OUT")
    command = (fathom, "scan", "-o", "OUT", "TREE")
    return [
        Arm(
            "find -fprintf",
            "baseline",
            (*find, "TREE", "-fprintf", "OUT", FIELDS),
            SamePaths(),
            checked=(*find, "TREE", "-print0"),
            note="writes the same fields as text to a file, and is not asked to put it on the disk",
        ),
        Arm(SCAN, "fathom", command, SamePaths(), checked=checked, note="ends when all is on the disk (fsync)"),
        Arm(LIVE, "live", (fathom, "du", "-s", "TREE"), AnyOutput()),
    ]


def top_name(report):
    return f"fathom top --by {report}"


def query_arms(tools):
    """Returns the arms of queries: GNU du and fathom on the tree, and fathom on its inventory."""
    fathom = str(tools.fathom)
    total = SameTotal(rb'"total":{"bytes":(\d+)')
    return [
        Arm("GNU du -s", "baseline", ("du", "-s", "TREE"), SameBytes()),
        Arm(LIVE, "live", (fathom, "du", "-s", "TREE"), SameBytes()),
        Arm(FROM, "from", (fathom, "du", "-s", "--from", "MADE"), SameBytes()),
        *(
            Arm(top_name(report), "top", (fathom, "top", "--json", "--by", report, "MADE"), total)
            for report in REPORTS
        ),
        Arm(REPORT, "top", (fathom, "report", "-o", "-", "MADE"), AnyOutput()),
        Arm(GREW, "top", (fathom, "grew", "LESS", "MADE"), AnyOutput()),
    ]


COMPARISON = Comparison(
    script="inventory.py",
    title="fathom scan against find, and answers from an inventory against those from the tree",
    summary="Measures `fathom scan` and what is asked of inventories, and writes a run directory.",
    method="""\
Before timing, the paths of an inventory must be find's, and the totals of its answers GNU du's. (That every field is right is
a test's to show.) What an arm writes goes to the filesystem of the trees and is removed before the next one.""",
    baseline="the baseline",
    option="--find",
    command="find",
    floor="names",
    cases=all_cases,
    names=DEFAULT,
    default=DEFAULT,
    quick=("scan-small",),
    rivals=lambda options: ({}, {}),
    suffix="-inventory",
)

if __name__ == "__main__":
    main(COMPARISON)
