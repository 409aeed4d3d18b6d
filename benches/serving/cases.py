"""Cases: the figures of each kind, and requirements. Executes nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A number measured in one run of one server."""

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

# kind of case -> the figures of its table
COLUMNS = {
    "hot": ("requests_s", "cpu_us", "busy_percent"),
    "mixed": ("p99_ms", "growth", "quiet_p99_ms", "p50_ms", "max_ms", "unanswered", "cold_mib_s", "cold_rounds"),
    "listing": ("p99_ms", "growth", "quiet_p99_ms", "p50_ms", "max_ms", "unanswered", "cold_mib_s", "listings"),
    "random": ("requests_s", "cpu_us", "p50_ms", "p99_ms", "rounds"),
    "memory": ("idle_mib", "full_mib", "connection_kib"),
    "calls": ("calls",),
}


@dataclass(frozen=True)
class Requirement:
    """A requirement of a case. Built by the functions below, which define each kind."""

    kind: str  # better, not-worse, near, at-most
    limit: float
    text: str
    reference: str = ""  # the group or the arm of the comparison
    figure: str = ""  # of at-most


def better(limit, reference, label):
    """Requires at least `limit` times the result (the case's figure) of the best of `reference`, called
    `label`.
    """
    return Requirement("better", limit, f"{limit} times better than {label}", reference)


def faster(reference, label):
    """Requires a better result than the best of `reference`."""
    return Requirement("better", 1, f"faster than {label}", reference)


def not_worse(reference, label):
    """Requires a result at least as good as the best of `reference`, or not distinguishable from it."""
    return Requirement("not-worse", 1, f"not worse than {label}", reference)


def near(limit, reference, label):
    """Requires that the best of `reference` is at most `limit` times as good."""
    return Requirement("near", limit, f"within {(limit - 1) * 100:.0f} % of {label}", reference)


def at_most(limit, figure):
    """Limits a figure of fathom."""
    return Requirement("at-most", limit, f"at most {limit} {FIGURES[figure].label}", figure=figure)


@dataclass(frozen=True)
class Case:
    """A kind of load, and its requirements."""

    name: str
    title: str
    kind: str  # hot, mixed, listing, random, memory, calls
    figure: str  # the figure by which servers are compared
    size: int  # bytes of the hot file
    requirements: tuple = ()
    slow: bool = False  # the cold files lie on a mount with a delay of 1 ms for each operation
    blocks_factor: float = 1
    without: tuple = ()  # groups that do not take part
