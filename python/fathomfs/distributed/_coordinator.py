"""The policy of a distributed scan: which unit runs next, for how long, and when units are cut.

The coordinator is a state machine without clocks, files or threads. The driver and the simulator
feed it with events, so that what is simulated is what runs. It keeps no path: a unit is a range of
the references that its parent has left, which are in the record of the parent.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

#: The longest time that a unit runs before it returns what is left, in seconds.
BUDGET_S = 60.0
#: Fewest and most units that the references which a unit leaves are cut into.
PIECES_MIN, PIECES_MAX = 2, 64
#: Number of workers that may die of a unit before it is cut in halves.
DEATHS_MAX = 3
#: Most slices that a directory with very many names is read in. Each slice reads all of the names.
SLICES_MAX = 1024
#: A unit that has not returned this many seconds after a worker ran out of units is also given to
#: that worker.
STRAGGLER_S = 10.0
#: Most attempts at one unit that run at once.
ATTEMPTS_MAX = 2


def child_id(parent: str, piece: int) -> str:
    """The name of a unit: the same in every run, so that a restarted driver finds what is done."""
    return hashlib.sha256(f"{parent}/{piece}".encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Unit:
    """The references ``start`` to ``end`` that the unit ``parent`` has left; all operands if it is empty."""

    id: str
    parent: str
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


def children(parent: str, pieces: Sequence[tuple[int, int]]) -> list[Unit]:
    """The units that a record leaves to do."""
    return [Unit(child_id(parent, piece), parent, start, end) for piece, (start, end) in enumerate(pieces)]


@dataclass(frozen=True)
class Assignment:
    """A unit for a worker."""

    unit: Unit
    attempt: int
    budget_s: float
    #: Number of units that the references which are left are cut into.
    pieces: int
    #: Most units that read one directory with very many names.
    slices: int
    #: Entries that this worker may examine in a second.
    rate: int | None
    #: Directories that this worker may read at once.
    in_flight: int | None


@dataclass(frozen=True)
class Split:
    """Too many workers have died of the unit: it is done in pieces. A record says so."""

    unit: Unit
    pieces: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Failure:
    """Too many workers have died of this one reference. A record says so."""

    unit: Unit


@dataclass
class _Running:
    unit: Unit
    #: The attempts that run, with the times of their starts.
    attempts: dict[int, float] = field(default_factory=dict)


class Coordinator:
    """Decides on the units of a scan.

    >>> coordinator = Coordinator([Unit("root", "", 0, 1)], workers=2)
    >>> first = coordinator.assign(now=0.0)
    >>> first.unit.id, first.attempt, coordinator.hungry
    ('root', 0, True)
    >>> coordinator.done("root", [(0, 5), (5, 10)])
    True
    >>> coordinator.assign(1.0).unit.start, coordinator.assign(1.0).unit.start, coordinator.hungry
    (0, 5, False)
    """

    def __init__(
        self,
        frontier: Iterable[Unit],
        *,
        workers: int,
        budget_s: float = BUDGET_S,
        deaths_max: int = DEATHS_MAX,
        rate: int | None = None,
        in_flight: int | None = None,
    ) -> None:
        self.workers = workers
        self.budget_s = budget_s
        self._deaths_max = deaths_max
        self._rate, self._in_flight = rate, in_flight
        self._queue = deque(frontier)
        self._running: dict[str, _Running] = {}
        self._attempts: dict[str, int] = {}
        self._deaths: dict[str, int] = {}
        #: The time since which no unit waits, as far as `assign` was told.
        self._starved: float | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return not self._queue and not self._running

    @property
    def queued(self) -> int:
        """The number of units that wait."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """The number of units that run."""
        return len(self._running)

    @property
    def attempts(self) -> int:
        """The number of attempts that run."""
        return sum(len(running.attempts) for running in self._running.values())

    @property
    def idle(self) -> int:
        """The number of workers without a unit."""
        return max(0, self.workers - self.attempts)

    @property
    def hungry(self) -> bool:
        """Whether running units should return what is left: a worker has nothing to do."""
        return not self._queue and self.idle > 0 and bool(self._running)

    @property
    def pieces(self) -> int:
        """The number of units that a unit which returns now should be cut into."""
        wanted = self.idle + self.workers // max(1, len(self._running))
        return max(PIECES_MIN, min(PIECES_MAX, wanted))

    @property
    def slices(self) -> int:
        """The number of units that one directory with very many names should be read by."""
        return max(PIECES_MIN, min(SLICES_MAX, self.workers))

    def assign(self, now: float) -> Assignment | None:
        """The next unit for an idle worker: one that waits, or else one that returns too late."""
        if self._queue:
            self._starved = None
            unit = self._queue.popleft()
        else:
            if self._starved is None:
                self._starved = now
            straggler = self._straggler(now)
            if straggler is None:
                return None
            unit = straggler
        attempt = self._attempts.get(unit.id, 0)
        self._attempts[unit.id] = attempt + 1
        self._running.setdefault(unit.id, _Running(unit)).attempts[attempt] = now
        # Without a budget, a unit reads one directory and leaves the others: so a directory that kills
        # workers fails alone, and not everything below an ancestor.
        budget_s = 0.0 if unit.id in self._deaths else self.budget_s
        share = max(1, self.workers)
        rate = None if self._rate is None else max(1, self._rate // share)
        in_flight = None if self._in_flight is None else max(1, self._in_flight // share)
        return Assignment(unit, attempt, budget_s, self.pieces, self.slices, rate, in_flight)

    def done(self, unit_id: str, pieces: Sequence[tuple[int, int]]) -> bool:
        """A record of the unit exists. Returns whether that is news; a second attempt's is not."""
        if self._running.pop(unit_id, None) is None:
            return False
        self._forget(unit_id)
        self._queue.extend(children(unit_id, pieces))
        return True

    def lost(self, unit_id: str, attempt: int) -> Split | Failure | None:
        """A worker has died. Returns what is to be recorded, if the unit has killed too many."""
        running = self._running.get(unit_id)
        if running is None or running.attempts.pop(attempt, None) is None:
            return None
        deaths = self._deaths[unit_id] = self._deaths.get(unit_id, 0) + 1
        if running.attempts:
            return None
        unit = running.unit
        if deaths < self._deaths_max:
            del self._running[unit_id]
            self._queue.appendleft(unit)
            return None
        if len(unit) > 1:
            middle = len(unit) // 2
            return Split(unit, ((0, middle), (middle, len(unit))))
        return Failure(unit)

    def returned(self, unit_id: str, attempt: int) -> None:
        """A worker has given the unit back untouched, which is no death."""
        running = self._running.get(unit_id)
        if running is None or running.attempts.pop(attempt, None) is None or running.attempts:
            return
        del self._running[unit_id]
        self._queue.appendleft(running.unit)

    def _forget(self, unit_id: str) -> None:
        self._attempts.pop(unit_id, None)
        self._deaths.pop(unit_id, None)

    def _straggler(self, now: float) -> Unit | None:
        """The unit that runs for longest, if the flag has not made it return in time."""
        late = [
            (min(running.attempts.values()), running.unit)
            for running in self._running.values()
            if 0 < len(running.attempts) < ATTEMPTS_MAX
        ]
        starved = now if self._starved is None else self._starved
        start, unit = min(late, key=lambda one: one[0], default=(now, None))
        return unit if now - max(start, starved) > STRAGGLER_S else None
