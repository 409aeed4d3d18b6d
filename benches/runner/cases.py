"""Cases: arms, the tree and cache state, and requirements. Executes nothing."""

from dataclasses import dataclass, field, replace
from typing import Callable


@dataclass(frozen=True)
class Arm:
    """A program with a set of options."""

    name: str
    # baseline, rival, tuned, fathom, ordered, from, top, live, fixed (a model or thread count),
    # floor, again, earlier
    group: str
    # Placeholders: "TREE" (the tree's name), "EMPTY" (the name of an empty directory), "OUT" (an
    # unused path, removed after the run), and each key of the case's `prepare` (the path prepared
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
class Figure:
    """A time measured elsewhere, with the numbers that make it comparable."""

    seconds: float
    entries: int  # in its tree
    baseline_s: float  # the baseline's time for that tree on that machine


@dataclass(frozen=True)
class Requirement:
    """A requirement of a case. Built by the functions below, which define each kind."""

    kind: str  # faster, within, seconds, memory, memory-below, size, published
    limit: float
    text: str
    reference: str = ""  # the group or the arm of the comparison
    ours: str = "fathom"  # the group that must meet the requirement
    figure: Figure | None = None


def faster(limit, reference, label, ours="fathom"):
    """Requires at least `limit` times the speed of the fastest of `reference`, called `label`."""
    return Requirement("faster", limit, f"{limit} times faster than {label}", reference, ours)


def not_slower(reference, label):
    """Requires at least the speed of the fastest of `reference`."""
    return Requirement("faster", 1, f"not slower than {label}", reference)


def within(limit, reference, label, ours="fathom", what=""):
    """Requires at most `limit` times the time of the fastest of `reference`."""
    return Requirement("within", limit, f"{what}within {limit} of {label}", reference, ours)


def at_most(seconds, ours):
    """Requires that `ours` takes at most `seconds`."""
    return Requirement("seconds", seconds, f"{ours} in at most {seconds} s", ours=ours)


def memory(limit):
    """Requires a peak memory of at most `limit` MiB."""
    return Requirement("memory", limit, f"peak memory at most {limit} MiB")


def memory_below(reference, label):
    """Requires a lower peak memory than any of `reference`."""
    return Requirement("memory-below", 0, f"peak memory below {label}", reference)


def size(limit):
    """Requires an output of at most `limit` bytes for each entry of the tree."""
    return Requirement("size", limit, f"at most {limit} bytes an entry")


def published(limit, label, figure):
    """Compares with `limit` times a published speed. For information: the runs were not
    interleaved.
    """
    milliseconds = f"{figure.seconds * 1000:.0f} ms"
    text = f"{limit} times faster than {label}'s published {milliseconds}"
    return Requirement("published", limit, text, figure=figure)


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

    ours = [arm for arm in case.arms if arm.group in OURS]
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
    requirements = [
        within(EARLIER_LIMIT, f"{arm.name} (earlier)", "the earlier program", ours=arm.name, what=f"{arm.name} ")
        for arm in ours
    ]
    # A placeholder of `prepare` also occurs in its own command.
    prepare = {words.get(word, word): of_then(command) for word, command in case.prepare.items()}
    return replace(
        case,
        arms=[*case.arms, *arms],
        requirements=(*case.requirements, *requirements),
        prepare={**case.prepare, **prepare},
    )


def only(case, wanted, unwanted):
    """Returns the case with the selected arms. The baseline always stays: it is the reference."""
    wanted = wanted.split(",") if wanted else [""]
    unwanted = unwanted.split(",") if unwanted else []

    def names(arm, words):
        return any(word in arm.name for word in words)

    kept = [arm for arm in case.arms if arm.group == "baseline" or (names(arm, wanted) and not names(arm, unwanted))]
    return replace(case, arms=kept)
