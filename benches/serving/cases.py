"""What is measured: cases, the figures each has, and what they must show. Runs nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A number that one run of one server has."""

    label: str
    higher_wins: bool = False
    digits: int = 1

    def text(self, value):
        return f"{value:,.{self.digits}f}"


FIGURES = {
    "requests_s": Figure("requests/s", higher_wins=True, digits=0),
    "cpu_us": Figure("CPU µs a request"),
    "busy_percent": Figure("% of its core used"),
    "p50_ms": Figure("p50 ms", digits=2),
    "p99_ms": Figure("p99 ms", digits=2),
    "max_ms": Figure("longest ms", digits=2),
    "quiet_p50_ms": Figure("p50 ms without cold clients", digits=2),
    "quiet_p99_ms": Figure("p99 ms without", digits=2),
    "growth": Figure("times its p99 without", digits=2),
    "unanswered": Figure("unanswered", digits=0),
    "cold_mib_s": Figure("MiB/s to the cold clients", higher_wins=True, digits=0),
    "cold_rounds": Figure("of the cold set", digits=2),
    "listings": Figure("listings", higher_wins=True, digits=0),
    "rounds": Figure("of the set", digits=2),
    "idle_mib": Figure("idle MiB"),
    "full_mib": Figure("MiB with connections"),
    "connection_kib": Figure("KiB a connection", digits=2),
    "calls": Figure("system calls a request", digits=2),
}

# kind of case -> the figures its table shows
COLUMNS = {
    "hot": ("requests_s", "cpu_us", "busy_percent"),
    "mixed": ("p99_ms", "growth", "quiet_p99_ms", "p50_ms", "max_ms", "unanswered", "cold_mib_s", "cold_rounds"),
    "listing": ("p99_ms", "growth", "quiet_p99_ms", "p50_ms", "max_ms", "unanswered", "cold_mib_s", "listings"),
    "random": ("requests_s", "cpu_us", "p50_ms", "p99_ms", "rounds"),
    "memory": ("idle_mib", "full_mib", "connection_kib"),
    "calls": ("calls",),
}


@dataclass(frozen=True)
class Need:
    """What one case must reach. Made by the functions below, which say what each kind is."""

    kind: str  # better, not-worse, near, at-most
    limit: float
    text: str
    than: str = ""  # the group, or the arm, to compare with
    figure: str = ""  # of at-most


def better(limit, than, whom):
    """At least `limit` times as good, in the case's own figure, as the best of `than`, called `whom`."""
    return Need("better", limit, f"{limit} times better than {whom}", than)


def faster(than, whom):
    """Better than the best of `than`, be it by little."""
    return Need("better", 1, f"faster than {whom}", than)


def not_worse(than, whom):
    """At least as good as the best of `than`, or not to be told from it: of two equals one is behind by a hair."""
    return Need("not-worse", 1, f"not worse than {whom}", than)


def near(limit, than, whom):
    """The best of `than` is at most `limit` times as good."""
    return Need("near", limit, f"within {(limit - 1) * 100:.0f} % of {whom}", than)


def at_most(limit, figure):
    """A figure of ours that must not be larger."""
    return Need("at-most", limit, f"at most {limit} {FIGURES[figure].label}", figure=figure)


@dataclass(frozen=True)
class Case:
    """One way of asking, and what it must show."""

    name: str
    title: str
    kind: str  # hot, mixed, listing, random, memory, calls
    figure: str  # by which servers are compared
    size: int  # bytes of the hot file
    needs: tuple = ()
    slow: bool = False  # the cold files lie on a mount that takes 1 ms an operation
    blocks_factor: float = 1
    without: tuple = ()  # groups that have no part in it
