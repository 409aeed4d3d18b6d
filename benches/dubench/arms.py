"""Who is measured: the command of each arm, and what its total means. Runs nothing.

Every arm counts the same thing: allocated blocks, hard links once, and prints one total. Where a rival
cannot be told to, `expected` says by what its total must differ, and the difference is checked, not ignored.
"""

import re
from dataclasses import dataclass, replace
from typing import Callable

FATHOM_MODELS = ("sync", "threads", "async-seq", "async-par", "uring")
FATHOM_THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
FLOOR_THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
# Inode order is for cold disks, where few threads never win.
FLOOR_THREADS_INODE = (16, 32, 64, 128)
# Rivals choose few threads by themselves; given many, are they as fast on slow storage?
RIVAL_THREADS = "64"


@dataclass(frozen=True)
class Facts:
    """What a tree holds, as one plain recursive lstat sees it."""

    allocated: int  # bytes, hard links once
    directories: int
    directory_bytes: int


def exact(facts):
    """GNU's definition, and the floor's: every inode's blocks, once."""
    return facts.allocated


def flat_directories(facts):
    """gdu takes every directory for 4096 bytes, whatever it occupies."""
    return facts.allocated - facts.directory_bytes + 4096 * facts.directories


@dataclass(frozen=True)
class Arm:
    """One program with one set of options."""

    name: str
    group: str  # gnu, rival, tuned, fathom, fixed (a model or thread count), floor, again
    command: tuple  # "TREE" stands for the tree's name, "EMPTY" for an empty directory's
    unit: int = 1  # bytes one unit of the printed total means
    pattern: str = r"(\d+)"  # finds the total in the output
    expected: Callable = exact
    note: str = ""

    def argv(self, tree, empty):
        """The command for one tree."""
        return [{"TREE": tree, "EMPTY": empty}.get(word, word) for word in self.command]

    def total(self, output, tree):
        """The printed total, in this arm's units; None when there is none."""
        found = re.search(self.pattern.replace("TREE", re.escape(tree)), output, re.MULTILINE)
        return int(found.group(1)) if found else None

    def agrees(self, total, facts):
        """Whether `total` is right, rounded up to this arm's unit."""
        return total == -(-self.expected(facts) // self.unit)


def gnu_du(command, *options, name="GNU du", group="gnu"):
    """GNU du, `command` being the words that start it."""
    return Arm(name, group, (*command, *options, "TREE"), unit=1024, pattern=r"^(\d+)\tTREE$")


def fathom(binary, *options, name="fathom", group="fathom"):
    """`fathom du`."""
    return Arm(name, group, (binary, "du", *options, "TREE"), unit=1024, pattern=r"^(\d+)\tTREE$")


def fathom_fixed(binary):
    """fathom with each model, and with each number of threads, named instead of chosen."""
    models = [fathom(binary, "-s", f"--io={m}", name=f"fathom --io={m}", group="fixed") for m in FATHOM_MODELS]
    threads = [
        fathom(binary, "-s", f"--threads={n}", name=f"fathom --threads={n}", group="fixed") for n in FATHOM_THREADS
    ]
    return models + threads


def floors(binary, chunks, inode_order=False):
    """The C program at each number of threads and each chunk size; perhaps also in order of inode numbers."""
    found = [floor(binary, threads, chunk) for chunk in chunks for threads in FLOOR_THREADS]
    if inode_order:
        found += [floor(binary, threads, chunk, "inode") for chunk in chunks for threads in FLOOR_THREADS_INODE]
    return found


def floor(binary, threads, chunk, *order):
    """The C program once."""
    name = ", ".join([f"floor {threads} thr", f"chunk {chunk}", *(f"{word} order" for word in order)])
    return Arm(name, "floor", (binary, "TREE", str(threads), str(chunk), *order), 1024, r"^(\d+)\tTREE$")


def rivals(tools, tuned):
    """The installed rivals with their own defaults; with `tuned`, also with many threads where they can."""
    found = []
    for arm, threads in RIVALS:
        if arm.name not in tools:
            continue
        path = tools[arm.name]["path"]
        found.append(replace(arm, command=(path, *arm.command)))
        if tuned and threads:
            name = f"{arm.name} {' '.join(threads)}"
            found.append(replace(arm, name=name, group="tuned", command=(path, *threads, *arm.command)))
    return found


# Each rival, and the words that give it many threads.
RIVALS = (
    (Arm("diskus", "rival", ("TREE",)), ("-j", RIVAL_THREADS)),
    (
        Arm(
            "pdu",
            "rival",
            ("--bytes-format=plain", "--deduplicate-hardlinks", "--max-depth=1", "--min-ratio=0", "TREE"),
        ),
        (f"--threads={RIVAL_THREADS}",),
    ),
    (
        Arm("dust", "rival", ("-P", "-c", "-b", "-d", "0", "-o", "b", "TREE"), pattern=r"(\d+)B .*TREE"),
        ("-T", RIVAL_THREADS),
    ),
    (
        Arm(
            "dua",
            "rival",
            ("-f", "bytes", "aggregate", "--no-total", "TREE", "EMPTY"),
            pattern=r"(\d+) b TREE$",
            note="is given an empty directory too: for a single one it lists that one's entries instead",
        ),
        ("-t", RIVAL_THREADS),
    ),
    (
        Arm(
            "gdu",
            "rival",
            ("-n", "-p", "-c", "-s", "--no-prefix", "TREE"),
            pattern=r"(\d+) TREE$",
            expected=flat_directories,
            note="takes every directory for 4096 bytes, and is checked by that rule",
        ),
        (),
    ),
)
