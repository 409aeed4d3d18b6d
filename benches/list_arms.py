"""The arms of `list.py`: the command of each, and the expected paths.

All print every path below the tree, one per line, and need nothing but names. For verification each
path ends in NUL instead, which is the same number of bytes.
"""

from runner.answers import SameBytes, SamePaths
from runner.cases import Arm

FATHOM_THREADS = (1, 2, 8, 64)
FLOOR_THREADS = (1, 2, 4, 8)
# For slow storage.
FLOOR_THREADS_PATIENT = (*FLOOR_THREADS, 16, 32, 64, 128)
# Rivals choose few threads by default. This arm shows their speed on slow storage with many.
RIVAL_THREADS = "64"
FIND = "find"
ANY, PATH = "fathom list --order any", "fathom list"


def find(command, name=FIND, group="baseline"):
    """Returns an arm of GNU find, which `command` starts."""
    return Arm(name, group, (*command, "TREE"), SamePaths(), checked=(*command, "TREE", "-print0"))


def bfs(binary, *options, group="rival"):
    """Returns an arm of bfs, which accepts find's expressions."""
    command = (binary, *options, "TREE")
    return Arm(" ".join(["bfs", *options]), group, command, SamePaths(), checked=(*command, "-print0"))


def fd(binary, *options, group="rival"):
    """Returns an arm of fd with options that disable all filters."""
    command = (binary, "--hidden", "--no-ignore", *options)
    return Arm(
        " ".join(["fd", *options]),
        group,
        (*command, ".", "TREE"),
        SamePaths(ends_directories=True, omits_root=True),
        checked=(*command, "-0", ".", "TREE"),
        note="leaves out the tree itself and ends directories in a slash, and is checked by that rule",
    )


def fdf(binary):
    """Returns an arm of fdf with options that disable all filters. Its default is a thread per
    processor.
    """
    command = (binary, "--hidden", "--no-ignore")
    return Arm(
        "fdf",
        "rival",
        (*command, ".", "TREE"),
        SamePaths(ends_directories=True, omits_root=True),
        checked=(*command, "--print0", ".", "TREE"),
        note="leaves out the tree itself and ends directories in a slash, and is checked by that rule",
    )


def fathom(binary, *options, name=None, group="fathom", order="any"):
    """Returns an arm of `fathom list`, whose default is path order."""
    command = (binary, "list", *(["--order", order] if order != "path" else []), *options)
    answer = SameBytes() if order == "path" else SamePaths()
    return Arm(name, group, (*command, "TREE"), answer, checked=(*command, "-0", "TREE"))


def fathoms(binary):
    """Returns the arms of fathom: unordered (twice), ordered, and unordered with fixed numbers of
    threads.
    """
    found = [fathom(binary, name=ANY)]
    found.append(fathom(binary, name=PATH, group="ordered", order="path"))
    fixed = [f"--threads={number}" for number in FATHOM_THREADS]
    return found + [fathom(binary, option, name=f"{ANY} {option}", group="fixed") for option in fixed]


def rivals(tools, tuned):
    """Returns the installed rivals with their defaults; with `tuned`, also with many threads if
    supported.
    """
    found = []
    if "bfs" in tools.rivals:
        path = tools.rivals["bfs"]["path"]
        found.append(bfs(path))
        found += [bfs(path, f"-j{RIVAL_THREADS}", group="tuned")] if tuned and "bfs -j" not in tools.missing else []
    if "fd" in tools.rivals:
        path = tools.rivals["fd"]["path"]
        found.append(fd(path))
        found += [fd(path, f"-j{RIVAL_THREADS}", group="tuned")] if tuned else []
    if "fdf" in tools.rivals:
        found.append(fdf(tools.rivals["fdf"]["path"]))
    return found


def floors(binary, threads):
    """Returns the lower-bound program with each number of threads."""
    return [floor(binary, number) for number in threads]


def floor(binary, threads):
    """Returns one arm of the lower-bound program."""
    command = (binary, "TREE", str(threads))
    return Arm(f"floor {threads} thr", "floor", command, SamePaths(), checked=(*command, "null"))
