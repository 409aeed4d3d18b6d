#!/usr/bin/env python3
"""Measures the sources of `fathom explore` against `fathom du -s` and other explorers, and writes a
run directory.

Owns the cases: trees, arms, and requirements. runner/ prepares them, du_arms.py has the arms of du,
in_terminal.py and floor/frame.c run explorers. Requires an otherwise idle machine, and the example `sources` of
crates/explore beside the program (`cargo build --release -p fathom-explore --example sources`).
"""

import shutil
import sys
from pathlib import Path

import du_arms
import rivals
from runner import build
from runner.answers import AnyOutput
from runner.cases import Arm, Case, at_most, memory, memory_below, within
from runner.main import Comparison, main

DEFAULT = ("walk-small", "frame-small", "terminal-small", "open-five", "frame-five")
HERE = Path(__file__).resolve().parent
LIVE = "fathom du -s"
FRAME = "first frame"
# In the row of each directory at the top of both trees, whose names are numbers.
ROW = "00/"
# program -> its options for a tree that is explored
EXPLORERS = {"gdu": (), "ncdu": (), "dua": ("interactive",)}


def all_cases(tools):
    """Returns every case of DEFAULT; `tools` are the available programs."""
    fathom = str(tools.fathom)
    sources = str(Path(fathom).parent / "examples" / "sources")
    walk = Arm("sources walk", "fathom", (sources, "walk", "TREE"), du_arms.in_bytes(), note="keeps what is shown")
    made_of_five = {"MADE": (fathom, "scan", "-o", "MADE", "TREE")}
    open_five = Arm("sources open", "fathom", (sources, "open", "MADE"), AnyOutput())
    return [
        Case(
            "walk-small",
            "a live tree of 1.01 M small files, warm",
            "small",
            [
                du_arms.gnu_du(tools.baseline, "-s"),
                du_arms.fathom(fathom, "-s", name=LIVE, group="live"),
                walk,
                *du_arms.rivals({name: tools.rivals[name] for name in tools.rivals if name in EXPLORERS}, tuned=False),
            ],
            (within(1.1, "live"),),
            expected=du_arms.facts_of,
        ),
        Case(
            "frame-small",
            "the first frame with rows, of a live tree of 1.01 M small files, warm",
            "small",
            [du_arms.gnu_du(tools.baseline, "-s"), frame(FRAME, fathom, "TREE")],
            (at_most(0.05, FRAME),),
            expected=du_arms.facts_of,
        ),
        Case(
            "terminal-small",
            "peak memory of explorers, 1.01 M small files, warm; the times have no meaning",
            "small",
            [du_arms.gnu_du(tools.baseline, "-s"), *terminal_arms(tools, fathom)],
            (memory_below("rival"),),
            expected=du_arms.facts_of,
            blocks_factor=0.3,
        ),
        Case(
            "open-five",
            "an inventory of 5.05 M entries is opened, and the directory at its top listed",
            "five",
            [du_arms.gnu_du(tools.baseline, "-s"), du_arms.fathom(fathom, "-s", name=LIVE, group="live"), open_five],
            # The tree of the small case takes half a second, five times as many entries 2.5 s.
            (memory(100), within(0.1, "live")),
            prepare=made_of_five,
            expected=du_arms.facts_of,
            blocks_factor=0.5,
        ),
        Case(
            "frame-five",
            "the first frame with rows, of an inventory of 5.05 M entries",
            "five",
            [du_arms.gnu_du(tools.baseline, "-s"), frame(FRAME, fathom, "MADE")],
            (at_most(0.3, FRAME), memory(100)),
            prepare=made_of_five,
            expected=du_arms.facts_of,
            blocks_factor=0.5,
        ),
    ]


def frame(name, fathom, place):
    """Returns the explorer, which is killed once it has drawn a row."""
    return Arm(name, "fathom", (build.compile_c("frame"), ROW, fathom, "explore", place), AnyOutput())


def terminal_arms(tools, fathom):
    """Returns the explorers in a terminal. The wrapper itself takes ten megabytes."""
    wrapper = (sys.executable, str(HERE / "in_terminal.py"))
    found = [Arm("fathom explore", "fathom", (*wrapper, fathom, "explore", "TREE"), AnyOutput())]
    for name, words in EXPLORERS.items():
        if name in tools.rivals:
            command = (*wrapper, tools.rivals[name]["path"], *words, "TREE")
            found.append(Arm(name, "rival", command, AnyOutput()))
    return found


def installed(options):
    """Returns the explorers among the rivals, and the ncdu of the system."""
    if not rivals.INDEX.exists():
        rivals.install()
    found, missing = rivals.load()
    found = {name: tool for name, tool in found.items() if name in EXPLORERS}
    path = shutil.which("ncdu")
    if path:
        version = rivals.first_line([path, "--version"])
        found["ncdu"] = {"path": path, "version": version, "source": "system"}
    else:
        missing["ncdu"] = "no program ncdu: apt-get install ncdu"
    return found, {name: why for name, why in missing.items() if name in EXPLORERS}


COMPARISON = Comparison(
    script="explore.py",
    title="The sources of fathom explore against fathom du -s and other explorers",
    summary="Measures what `fathom explore` shows against `fathom du -s` and other explorers.",
    method="""\
Before timing, the totals of the walks are compared with that of a plain recursive lstat. `sources` is the explorer without its
terminal: it walks the tree with everything that the explorer keeps, or opens an inventory and lists its top. For the peak
memory of whole explorers each runs in a terminal until it draws nothing any more, and is quit. For a first frame the explorer
runs in a terminal until it has drawn the row of a directory, and is killed.""",
    baseline="GNU du",
    option="--gnu",
    command="du",
    floor="floor",
    cases=all_cases,
    names=DEFAULT,
    default=DEFAULT,
    quick=("walk-small",),
    rivals=installed,
    suffix="-explore",
)

if __name__ == "__main__":
    main(COMPARISON)
