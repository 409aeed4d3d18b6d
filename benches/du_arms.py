"""The arms of `du.py`: the command of each, the meaning of its total, and the expected totals.

Every arm counts the same: allocated blocks, hard links once; and prints one total.
"""

import functools
import os
from dataclasses import dataclass, replace

from runner.answers import Total
from runner.cases import Arm

FATHOM_MODELS = ("sync", "threads", "async-seq", "async-par", "uring")
FATHOM_THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
FLOOR_THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
# Inode order is for cold disks, on which few threads never win.
FLOOR_THREADS_INODE = (16, 32, 64, 128)
# Rivals choose few threads by default. This arm shows their speed on slow storage with many.
RIVAL_THREADS = "64"


@dataclass(frozen=True)
class Facts:
    """The content of a tree according to one plain recursive lstat."""

    allocated: int  # bytes, hard links once
    directories: int
    directory_bytes: int


@functools.cache
def facts_of(tree):
    """Walks the tree with plain lstat: a reference that is independent of all measured programs."""
    seen, allocated = set(), 0
    directories, directory_bytes = 0, 0
    pending = [os.fspath(tree)]
    while pending:
        path = pending.pop()
        directories += 1
        directory_bytes += os.lstat(path).st_blocks * 512
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                stat = entry.stat(follow_symlinks=False)
                inode = (stat.st_dev, stat.st_ino)
                if stat.st_nlink == 1 or inode not in seen:
                    allocated += stat.st_blocks * 512
                    seen.update([inode] if stat.st_nlink > 1 else [])
    return Facts(allocated + directory_bytes, directories, directory_bytes)


def exact(facts):
    """Returns the blocks of every inode, each counted once: the definition of GNU du and the lower
    bound.
    """
    return facts.allocated


def flat_directories(facts):
    """Returns the total of gdu, which counts every directory as 4096 bytes."""
    return facts.allocated - facts.directory_bytes + 4096 * facts.directories


def in_bytes(pattern=r"(\d+)", expected=exact):
    """Returns the expected total in bytes."""
    return Total(expected, pattern=pattern)


# The output of GNU du -s, and of programs with the same format.
KIBIBYTES = Total(exact, unit=1024, pattern=r"^(\d+)\tTREE$")


def gnu_du(command, *options, name="GNU du", group="baseline", answer=KIBIBYTES):
    """Returns an arm of GNU du, which `command` starts."""
    return Arm(name, group, (*command, *options, "TREE"), answer)


def fathom(binary, *options, name="fathom", group="fathom", answer=KIBIBYTES):
    """Returns an arm of `fathom du`."""
    return Arm(name, group, (binary, "du", *options, "TREE"), answer)


def fathom_fixed(binary):
    """Returns fathom with each model and each number of threads fixed."""
    models = [fathom(binary, "-s", f"--io={m}", name=f"fathom --io={m}", group="fixed") for m in FATHOM_MODELS]
    threads = [
        fathom(binary, "-s", f"--threads={n}", name=f"fathom --threads={n}", group="fixed") for n in FATHOM_THREADS
    ]
    return models + threads


def floors(binary, chunks, inode_order=False):
    """Returns the lower-bound program with each number of threads and chunk size, optionally in
    inode order.
    """
    found = [floor(binary, threads, chunk) for chunk in chunks for threads in FLOOR_THREADS]
    if inode_order:
        found += [floor(binary, threads, chunk, "inode") for chunk in chunks for threads in FLOOR_THREADS_INODE]
    return found


def floor(binary, threads, chunk, *order):
    """Returns one arm of the lower-bound program."""
    name = ", ".join([f"floor {threads} thr", f"chunk {chunk}", *(f"{word} order" for word in order)])
    return Arm(name, "floor", (binary, "TREE", str(threads), str(chunk), *order), KIBIBYTES)


def rivals(tools, tuned):
    """Returns the installed rivals with their defaults; with `tuned`, also with many threads if
    supported.
    """
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


# Each rival, with its options for many threads.
RIVALS = (
    (Arm("diskus", "rival", ("TREE",), in_bytes()), ("-j", RIVAL_THREADS)),
    (
        Arm(
            "pdu",
            "rival",
            ("--bytes-format=plain", "--deduplicate-hardlinks", "--max-depth=1", "--min-ratio=0", "TREE"),
            in_bytes(),
        ),
        (f"--threads={RIVAL_THREADS}",),
    ),
    (
        Arm("dust", "rival", ("-P", "-c", "-b", "-d", "0", "-o", "b", "TREE"), in_bytes(r"(\d+)B .*TREE")),
        ("-T", RIVAL_THREADS),
    ),
    (
        Arm(
            "dua",
            "rival",
            ("-f", "bytes", "aggregate", "--no-total", "TREE", "EMPTY"),
            in_bytes(r"(\d+) b TREE$"),
            note="is given an empty directory too: for a single one it lists that one's entries instead",
        ),
        ("-t", RIVAL_THREADS),
    ),
    (
        Arm(
            "gdu",
            "rival",
            ("-n", "-p", "-c", "-s", "--no-prefix", "TREE"),
            in_bytes(r"(\d+) TREE$", flat_directories),
            note="takes every directory for 4096 bytes, and is checked by that rule",
        ),
        (),
    ),
)
