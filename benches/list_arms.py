"""Who `list.py` measures: the command of each arm, and what its paths must be.

All print every path below the tree, one a line, and need not know more than names. To be checked they end each path in
NUL instead, which is as many bytes.
"""

from runner.answers import Exactly, Paths
from runner.cases import Arm

FATHOM_THREADS = (1, 2, 8, 64)
FLOOR_THREADS = (1, 2, 4, 8)
# Where storage makes one wait.
FLOOR_THREADS_PATIENT = (*FLOOR_THREADS, 16, 32, 64, 128)
# Rivals choose few threads by themselves; given many, are they as fast on slow storage?
RIVAL_THREADS = "64"
FIND = "find"
ANY, PATH = "fathom list --order any", "fathom list"


def find(command, name=FIND, group="baseline"):
    """GNU find, `command` being the words that start it."""
    return Arm(name, group, (*command, "TREE"), Paths(), checked=(*command, "TREE", "-print0"))


def bfs(binary, *options, group="rival"):
    """bfs, which takes find's expressions."""
    command = (binary, *options, "TREE")
    return Arm(" ".join(["bfs", *options]), group, command, Paths(), checked=(*command, "-print0"))


def fd(binary, *options, group="rival"):
    """fd, told to leave out nothing."""
    command = (binary, "--hidden", "--no-ignore", *options)
    return Arm(
        " ".join(["fd", *options]),
        group,
        (*command, ".", "TREE"),
        Paths(ends_directories=True, omits_root=True),
        checked=(*command, "-0", ".", "TREE"),
        note="leaves out the tree itself and ends directories in a slash, and is checked by that rule",
    )


def fdf(binary):
    """fdf, told to leave out nothing. By itself it takes a thread a processor."""
    command = (binary, "--hidden", "--no-ignore")
    return Arm(
        "fdf",
        "rival",
        (*command, ".", "TREE"),
        Paths(ends_directories=True, omits_root=True),
        checked=(*command, "--print0", ".", "TREE"),
        note="leaves out the tree itself and ends directories in a slash, and is checked by that rule",
    )


def fathom(binary, *options, name=None, group="fathom", order="any"):
    """`fathom list`, which is in path order unless told otherwise."""
    command = (binary, "list", *(["--order", order] if order != "path" else []), *options)
    answer = Exactly() if order == "path" else Paths()
    return Arm(name, group, (*command, "TREE"), answer, checked=(*command, "-0", "TREE"))


def fathoms(binary):
    """As found, twice; in order; and as found with each number of threads, named instead of chosen."""
    found = [fathom(binary, name=ANY), fathom(binary, name=f"{ANY} (again)", group="again")]
    found.append(fathom(binary, name=PATH, group="ordered", order="path"))
    fixed = [f"--threads={number}" for number in FATHOM_THREADS]
    return found + [fathom(binary, option, name=f"{ANY} {option}", group="fixed") for option in fixed]


def rivals(tools, tuned):
    """The installed rivals with their own defaults; with `tuned`, also with many threads where they can."""
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
    """The C program at each number of threads."""
    return [floor(binary, number) for number in threads]


def floor(binary, threads):
    """The C program once."""
    command = (binary, "TREE", str(threads))
    return Arm(f"floor {threads} thr", "floor", command, Paths(), checked=(*command, "null"))
