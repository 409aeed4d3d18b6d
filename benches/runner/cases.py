"""Cases: arms, the tree and cache state, and requirements. Executes nothing."""

from dataclasses import dataclass, field, replace
from typing import Callable


@dataclass(frozen=True)
class Arm:
    """A program with a set of options."""

    name: str
    # baseline, rival, tuned, fathom, ordered, from, top, live, fixed (a model or thread count),
    # floor, earlier
    group: str
    # Placeholders: "TREE" (the tree's name), "EMPTY" (the name of an empty directory), "OUT" (an
    # unused path, removed before each run), and each key of the case's `prepare` (the path prepared
    # for it).
    command: tuple
    answer: object  # an instance of a class of answers.py, which verifies the output
    checked: tuple = ()  # the command for verification, if it is not `command`; prints as many bytes
    note: str = ""

    def argv(self, names, checking=False):
        """Returns the command, with placeholders replaced according to `names`."""
        words = self.checked if checking and self.checked else self.command
        return [names.get(word, word) for word in words]


@dataclass(frozen=True)
class Requirement:
    """A requirement of `fathom bench run`: an upper limit for the arm or the group `ours`."""

    ours: str
    kind: str  # time, memory (a share of that of `than`), seconds, memory-bytes
    limit: float
    than: str = ""  # the arm or the group of the comparison


def faster(limit, than, ours="fathom"):
    """Requires at least `limit` times the speed of the fastest of `than`."""
    return Requirement(ours, "time", round(1 / limit, 4), than)


def within(limit, than, ours="fathom"):
    """Requires at most `limit` times the time of the fastest of `than`."""
    return Requirement(ours, "time", limit, than)


def at_most(seconds, ours):
    """Requires that `ours` takes at most `seconds`."""
    return Requirement(ours, "seconds", seconds)


def memory(limit, ours="fathom"):
    """Requires a peak memory of at most `limit` MiB."""
    return Requirement(ours, "memory-bytes", limit * 2**20)


def memory_below(than, ours="fathom"):
    """Requires no more peak memory than the least of `than`."""
    return Requirement(ours, "memory", 1, than)


@dataclass(frozen=True)
class Case:
    """A tree in a cache state, and the arms that are timed on it."""

    name: str
    title: str
    corpus: str
    arms: list
    requirements: tuple = ()
    expected: Callable | None = None  # path of the tree -> expected facts; by default the baseline's output
    cold: bool = False
    slow: bool = False  # mounted through slowfs
    drain: bool = False  # standard output is a pipe that is read
    prepare: dict = field(default_factory=dict)  # placeholder -> command that creates the data for it, once
    blocks_factor: float = 1  # above 1 for very short runs, below 1 for very long ones
    entry_bytes_max: float = 0  # what arms of group fathom may write for each entry of the tree; 0: anything
    # Whether programs are read from the disk first: a file just written is cached in small folios, and starts slower.
    reload: bool = False


# The groups of fathom that are compared with an earlier fathom: those that users run.
OURS = ("fathom", "ordered", "from", "top")
EARLIER_LIMIT = 1.02


def with_earlier(case, program, earlier):
    """Returns the case with each arm of fathom, started as `program`, also started as `earlier`.

    The earlier program prepares its own data, because the inventory format may have changed since.
    """
    made = {word: f"{word} (earlier)" for word in case.prepare}
    words = {program: earlier, **made}

    def of_then(command):
        return tuple(words.get(word, word) for word in command)

    ours = [arm for arm in case.arms if arm.group in OURS and program in (*arm.command, *arm.checked)]
    arms = [
        replace(
            arm,
            name=f"{arm.name} (earlier)",
            group="earlier",
            command=of_then(arm.command),
            checked=of_then(arm.checked),
        )
        for arm in ours
    ]
    requirements = [within(EARLIER_LIMIT, f"{arm.name} (earlier)", ours=arm.name) for arm in ours]
    requirements += [Requirement(arm.name, "memory", EARLIER_LIMIT, f"{arm.name} (earlier)") for arm in ours]
    # A placeholder of `prepare` also occurs in its own command.
    prepare = {words.get(word, word): of_then(command) for word, command in case.prepare.items()}
    return replace(
        case,
        arms=[*case.arms, *arms],
        requirements=(*case.requirements, *requirements),
        prepare={**case.prepare, **prepare},
    )


def only(case, wanted, unwanted):
    """Returns the case with the selected arms, and the requirements that they can meet. The baseline
    always stays: it is the reference.
    """
    wanted = wanted.split(",") if wanted else [""]
    unwanted = unwanted.split(",") if unwanted else []

    def names(arm, words):
        return any(word in arm.name for word in words)

    kept = [arm for arm in case.arms if arm.group == "baseline" or (names(arm, wanted) and not names(arm, unwanted))]
    return among(case, kept)


def among(case, arms):
    """Returns the case with `arms` alone, and the requirements on them."""
    known = {"", *(word for arm in arms for word in (arm.name, arm.group))}
    requirements = tuple(one for one in case.requirements if {one.ours, one.than} <= known)
    return replace(case, arms=list(arms), requirements=requirements)
