"""What is measured: arms, the tree and cache state they meet in, and what a case must show. Runs nothing."""

from dataclasses import dataclass, field, replace
from typing import Callable


@dataclass(frozen=True)
class Arm:
    """One program with one set of options."""

    name: str
    # baseline, rival, tuned, fathom, ordered, from, top, live, fixed (a model or thread count), floor, again, earlier
    group: str
    # "TREE" stands for the tree's name, "EMPTY" for an empty directory's, "OUT" for a path where there is nothing, which goes
    # after the run, and a word of the case's `prepare` for what was prepared under that name
    command: tuple
    answer: object  # of answers.py: what its output must be
    checked: tuple = ()  # what is run to check it, where that is not `command` itself; prints as many bytes
    note: str = ""

    def argv(self, names, checking=False):
        """The command, with `names` for words that stand for something."""
        words = self.checked if checking and self.checked else self.command
        return [names.get(word, word) for word in words]


@dataclass(frozen=True)
class Figure:
    """A time that was measured elsewhere, and what makes it comparable."""

    seconds: float
    entries: int  # in its tree
    baseline_s: float  # what the baseline took for that tree, there


@dataclass(frozen=True)
class Need:
    """What one case must reach. Made by the functions below, which say what each kind is."""

    kind: str  # faster, within, memory, memory-below, size, published
    limit: float
    text: str
    than: str = ""  # the group, or the arm, to compare with
    ours: str = "fathom"  # the group that must reach it
    figure: Figure | None = None


def faster(limit, than, whom, ours="fathom"):
    """At least `limit` times as fast as the fastest of `than`, called `whom`."""
    return Need("faster", limit, f"{limit} times faster than {whom}", than, ours)


def not_slower(than, whom):
    """At least as fast as the fastest of `than`."""
    return Need("faster", 1, f"not slower than {whom}", than)


def within(limit, than, whom, ours="fathom", what=""):
    """At most `limit` times the time of the fastest of `than`."""
    return Need("within", limit, f"{what}within {limit} of {whom}", than, ours)


def memory(limit):
    """A peak of at most `limit` MiB."""
    return Need("memory", limit, f"peak memory at most {limit} MiB")


def memory_below(than, whom):
    """A lower peak than any of `than`."""
    return Need("memory-below", 0, f"peak memory below {whom}", than)


def size(limit):
    """An output of at most `limit` bytes an entry of the tree."""
    return Need("size", limit, f"at most {limit} bytes an entry")


def published(limit, whom, figure):
    """`limit` times as fast as somebody was elsewhere: information, for nothing was interleaved with it."""
    milliseconds = f"{figure.seconds * 1000:.0f} ms"
    return Need("published", limit, f"{limit} times faster than {whom}'s published {milliseconds}", figure=figure)


@dataclass(frozen=True)
class Case:
    """One tree in one cache state, and everybody who is timed on it."""

    name: str
    title: str
    corpus: str
    arms: list
    needs: tuple = ()
    expected: Callable | None = None  # from a tree's path, what answers are compared with; else the baseline's output
    cold: bool = False
    slow: bool = False  # mounted through slowfs
    drain: bool = False  # standard output is a pipe that is read
    prepare: dict = field(default_factory=dict)  # word -> the command that makes, once, what the word stands for
    blocks_factor: float = 1  # for runs so short that many are cheap and needed, or so long that few must do
    reload: bool = False  # programs come from the disk first: one just written is cached in small pieces, and starts slower


# The arms that an earlier program is compared in: fathom as people run it.
OURS = ("fathom", "ordered", "from", "top")
EARLIER_LIMIT = 1.02


def with_earlier(case, program, earlier):
    """The case in which each of fathom's arms, started as `program`, meets itself as `earlier`.

    The earlier program prepares what it reads: an inventory's format may have changed since.
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
    needs = [
        within(EARLIER_LIMIT, f"{arm.name} (earlier)", "the earlier program", ours=arm.name, what=f"{arm.name} ")
        for arm in ours
    ]
    # The word that a command makes stands in the command itself.
    prepare = {words.get(word, word): of_then(command) for word, command in case.prepare.items()}
    return replace(
        case,
        arms=[*case.arms, *arms],
        needs=(*case.needs, *needs),
        prepare={**case.prepare, **prepare},
    )


def only(case, wanted, unwanted):
    """The case with the arms that were asked for. The baseline stays: the others are compared with it."""
    wanted = wanted.split(",") if wanted else [""]
    unwanted = unwanted.split(",") if unwanted else []

    def names(arm, words):
        return any(word in arm.name for word in words)

    kept = [arm for arm in case.arms if arm.group == "baseline" or (names(arm, wanted) and not names(arm, unwanted))]
    return replace(case, arms=kept)
