"""What is measured: each case's tree, cache state and arms, and what the case must show. Runs nothing."""

from dataclasses import dataclass

from . import arms


@dataclass(frozen=True)
class Need:
    """A ratio this case must reach: `kind` says of what to what."""

    kind: str  # gnu, rival, floor, regret, startup, memory, memory-rival
    limit: float

    @property
    def text(self):
        """The need in words."""
        return {
            "gnu": f"{self.limit} times faster than GNU du",
            "rival": f"{self.limit} times faster than the best rival",
            "floor": f"within {self.limit} of the floor's best",
            "regret": f"auto within {self.limit} of the best fixed model or thread count",
            "startup": f"within {self.limit} of GNU du",
            "memory": f"peak memory at most {self.limit} MiB",
            "memory-rival": "peak memory below every rival's",
        }[self.kind]


@dataclass(frozen=True)
class Case:
    """One tree in one cache state, and everybody who is timed on it."""

    name: str
    title: str
    corpus: str
    arms: list
    needs: tuple = ()
    cold: bool = False
    slow: bool = False  # mounted through slowfs
    drain: bool = False  # standard output is a pipe that is read
    blocks_factor: float = 1  # for runs so short that many are cheap and needed, or so long that few must do


DEFAULT = ("real-warm", "small-warm", "wide-warm", "real-cold", "small-cold", "fuse", "fuse-all", "pipe", "startup")
NAMES = (*DEFAULT, "wide-cold")


def all_cases(tools):
    """Every case of NAMES; `tools` are the programs that `build.tools` found."""
    warm = (Need("gnu", 1.9), Need("rival", 1.25), Need("floor", 1.12), Need("regret", 1.05))
    cold = (Need("gnu", 2.5), Need("rival", 1.15), Need("floor", 1.1), Need("regret", 1.1))
    fuse = (Need("gnu", 12), Need("rival", 3.5), Need("floor", 1.2), Need("regret", 1.15))
    pipe = (Need("gnu", 1.6),)
    small_memory = (Need("memory", 16), Need("memory-rival", 0))
    wide_needs = (Need("regret", 1.05), Need("memory", 48), Need("memory-rival", 0))
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
            tuple(need for need in fuse if need.kind != "rival"),  # their defaults take minutes
            slow=True,
            blocks_factor=0.3,
        ),
        Case("pipe", "`du -a` to a pipe, 1.01 M files, warm", "small", listings(tools), pipe, drain=True),
        Case(
            "startup",
            "`du -s`, an empty directory",
            "empty",
            totals(tools, [], fixed=False),
            (Need("startup", 1.5),),
            blocks_factor=20,
        ),
    ]
    return {case.name: case for case in cases}


def totals(tools, chunks, fixed=True, cold=False, slow=False):
    """The arms that print one total. Where storage makes one wait, rivals also run with many threads."""
    found = [arms.gnu_du(tools.gnu, "-s"), *arms.rivals(tools.rivals, tuned=cold or slow)]
    if tools.fathom:
        found.append(arms.fathom(tools.fathom, "-s"))
        found.append(arms.fathom(tools.fathom, "-s", name="fathom (again)", group="again"))
        found += arms.fathom_fixed(tools.fathom) if fixed else []
    else:
        found.append(arms.gnu_du(tools.gnu, "-s", name="GNU du (again)", group="again"))
    return found + arms.floors(tools.floor, chunks, inode_order=cold)


def fuse_arms(tools):
    """Single names as chunks too: on slow storage each is a wait worth sharing."""
    return totals(tools, [1, 256], slow=True)


def patient_arms(tools):
    """Of a mount on which one thread takes minutes: GNU du all the same, and of all others those with many threads."""
    always = ("gnu", "fathom", "again")
    return [arm for arm in fuse_arms(tools) if arm.group in always or "64" in arm.name or "128" in arm.name]


def listings(tools):
    """The arms that print every file."""
    found = [arms.gnu_du(tools.gnu, "-a", name="GNU du -a")]
    found.append(arms.gnu_du(tools.gnu, "-a", name="GNU du -a (again)", group="again"))
    if tools.fathom:
        found.append(arms.fathom(tools.fathom, "-a", name="fathom -a"))
    return found
