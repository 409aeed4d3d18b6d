"""A simulator of distributed scans, which runs the policy of the driver on trees of any size.

``python -m fathomfs.distributed.simulate --shape skewed --workers 64`` prints the share of the
ideal rate, and how the workers spend their time. docs/scale.md has the model's assumptions.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ._coordinator import BUDGET_S, Assignment, Coordinator, Failure, Split, Unit
from ._trees import SHAPES, SLICE_NAMES, Tree, grow

#: A directory that is left: its cluster, and the index and number of the slice of its names.
Ref = tuple[int, int, int]


@dataclass(frozen=True)
class Model:
    """Assumptions about workers, driver and storage. Times are in seconds."""

    workers: int = 8
    #: Entries that a worker examines in a second.
    rate: float = 30_000.0
    #: Names that a worker reads in a second: each slice of a directory reads all of its names.
    name_rate: float = 1_000_000.0
    budget_s: float = BUDGET_S
    #: Work of the driver for each event: it has one thread.
    driver_s: float = 0.001
    round_trip_s: float = 0.005
    commit_s: float = 0.05
    #: Shortest and longest time until a unit sees the flag.
    look_s: tuple[float, float] = (0.1, 0.2)
    #: Spread of the time of each cluster: the standard deviation of its logarithm.
    latency_sigma: float = 0.0
    #: The share of the workers that are slow, and how many times.
    slow_share: float = 0.0
    slow_times: float = 10.0
    #: Deaths of a worker in an hour; the time until a death is noticed, and until its successor runs.
    deaths_hour: float = 0.0
    notice_s: float = 5.0
    restart_s: float = 10.0
    #: Clusters that kill each worker which reads them.
    poison: frozenset[int] = frozenset()
    seed: int = 1

    def speeds(self) -> list[float]:
        """The rate of each worker, relative to `rate`."""
        slow = round(self.slow_share * self.workers)
        return [1 / self.slow_times] * slow + [1.0] * (self.workers - slow)


@dataclass
class Result:
    """The outcome of a simulated scan."""

    seconds: float
    #: The rate, divided by the sum of the rates of all workers.
    share: float
    #: The same for a driver that never waits: only the longest path of the tree limits it.
    share_max: float
    units: int
    attempts: int
    records: int
    failed: int
    entries: int
    entries_failed: int
    #: Most units that waited at once: the driver's memory grows with them.
    queued_max: int
    #: Worker seconds by cause: work, lost (deaths and second attempts), commit, messages, no unit,
    #: restart.
    worker_seconds: dict[str, float]


@dataclass
class _Attempt:
    worker: int
    assignment: Assignment
    #: Directories that are not entered yet; the next one is the last.
    stack: list[Ref]
    start: float = 0.0
    death: float = float("inf")
    done: list[Ref] = field(default_factory=list)
    left: list[Ref] = field(default_factory=list)
    is_due: bool = False


class Simulation:
    """One scan. `run` returns its result."""

    def __init__(self, tree: Tree, model: Model) -> None:
        self._tree, self._model = tree, model
        self._rng = random.Random(f"simulation {model.seed}")
        self._speeds = model.speeds()
        root = Unit("root", "", 0, 1)
        self._coordinator = Coordinator([root], workers=model.workers, budget_s=model.budget_s)
        #: The references that each unit has left, as its file has them.
        self._left: dict[str, list[Ref]] = {"": [(0, 0, 1)]}
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._sequence = 0
        self._now = self._driver_free = 0.0
        self._idle = list(range(model.workers))
        self._idle_since = [0.0] * model.workers
        #: The latest time in which the flag existed.
        self._flag = (float("inf"), float("inf"))
        self._spent: dict[str, float] = defaultdict(float)
        self._counts: Counter[str] = Counter()
        self._published: dict[str, list[Ref]] = {}
        self.counted: Counter[Ref] = Counter()

    def run(self) -> Result:
        """Runs the scan to its end."""
        self._dispatch()
        self._at(1.0, self._tick)
        while self._events and not self._coordinator.finished:
            self._now, _, event, arguments = heapq.heappop(self._events)
            event(*arguments)
        for worker in self._idle:
            self._spent["no unit"] += self._now - self._idle_since[worker]
        tree, model = self._tree, self._model
        ideal = tree.total / (model.rate * sum(self._speeds))
        least = max(ideal, tree.longest_path / model.rate)
        entries = sum(self._entries(ref) for ref in self.counted)
        return Result(
            self._now,
            ideal / self._now,
            ideal / least,
            self._counts["units"],
            self._counts["attempts"],
            self._counts["records"],
            self._counts["failed"],
            entries,
            self._counts["entries failed"],
            self._counts["queued"],
            dict(self._spent),
        )

    def _at(self, time: float, event: Callable[..., None], *arguments: object) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (time, self._sequence, event, arguments))

    def _entries(self, ref: Ref) -> int:
        cluster, index, count = ref
        names = self._tree.entries[cluster]
        return names * (index + 1) // count - names * index // count

    # The driver.

    def _by_driver(self, event: Callable[..., None], *arguments: object) -> None:
        """Plans work of the driver, which does one thing after another."""
        self._driver_free = max(self._now, self._driver_free) + self._model.driver_s
        self._at(self._driver_free, event, *arguments)

    def _tick(self) -> None:
        """Looks for stragglers, as the driver does while it waits for units."""
        self._dispatch()
        self._at(self._now + 1.0, self._tick)

    def _dispatch(self) -> None:
        while self._idle and (assignment := self._coordinator.assign(self._now)):
            worker = self._idle.pop()
            self._counts["attempts"] += 1
            unit = assignment.unit
            refs = self._left[unit.parent][unit.start : unit.end]
            attempt = _Attempt(worker, assignment, refs[::-1])
            self._driver_free = max(self._now, self._driver_free) + self._model.driver_s
            self._spent["no unit"] += self._now - self._idle_since[worker]
            begin = self._driver_free + self._model.round_trip_s / 2
            self._spent["messages"] += begin - self._now
            self._at(begin, self._begin, attempt)
        self._counts["queued"] = max(self._counts["queued"], self._coordinator.queued)
        raised, lowered = self._flag
        if self._coordinator.hungry and not raised <= self._now < lowered:
            self._flag = (self._now, float("inf"))
        elif not self._coordinator.hungry and raised <= self._now < lowered:
            self._flag = (raised, self._now)

    def _returned(self, attempt: _Attempt, sent: float) -> None:
        unit, left = attempt.assignment.unit, attempt.left
        # The first attempt that publishes its record wins; others are removed.
        self._spent["messages"] += self._now - sent
        self._free(attempt.worker)
        self._record(unit, left, _cut(len(left), attempt.assignment.pieces))
        self._dispatch()

    def _record(self, unit: Unit, left: list[Ref], pieces: Sequence[tuple[int, int]]) -> None:
        if self._coordinator.done(unit.id, pieces):
            self._counts["units"] += 1
            self._counts["records"] += 1
            self._left[unit.id] = left

    def _free(self, worker: int) -> None:
        self._idle.append(worker)
        self._idle_since[worker] = self._now

    def _noticed(self, attempt: _Attempt) -> None:
        unit = attempt.assignment.unit
        refs = self._left[unit.parent][unit.start : unit.end]
        match self._coordinator.lost(unit.id, attempt.assignment.attempt):
            case Split(_, pieces):
                self._record(unit, refs, pieces)
            case Failure(_):
                self._counts["failed"] += 1
                self._counts["entries failed"] += sum(self._below(ref) for ref in refs)
                self._record(unit, [], [])
        self._dispatch()

    def _restarted(self, worker: int) -> None:
        self._free(worker)
        self._dispatch()

    def _below(self, ref: Ref) -> int:
        entries = self._entries(ref)
        return entries + sum(self._below((child, 0, 1)) for child in self._children(ref))

    # A worker.

    def _begin(self, attempt: _Attempt) -> None:
        attempt.start = self._now
        if self._model.deaths_hour:
            attempt.death = self._now + self._rng.expovariate(self._model.deaths_hour / 3600)
        self._step(attempt)

    def _step(self, attempt: _Attempt) -> None:
        """Reads clusters for a while, so that the number of events does not grow with the tree's."""
        time, until = self._now, self._now + 0.02
        while attempt.stack:
            self._look(attempt, time)
            if time >= until or (attempt.is_due and attempt.done):
                break
            ref = attempt.stack.pop()
            if slices := self._slices(ref, attempt.assignment.slices):
                attempt.left += slices
                continue
            if ref[0] in self._model.poison:
                attempt.death = time
                break
            time += self._duration(ref, attempt.worker)
            attempt.done.append(ref)
            attempt.stack += [(child, 0, 1) for child in reversed(self._children(ref))]
        if time >= attempt.death:
            self._at(max(self._now, attempt.death), self._die, attempt)
        elif attempt.stack and not (attempt.is_due and attempt.done):
            self._at(time, self._step, attempt)
        else:
            self._at(time, self._end, attempt)

    def _look(self, attempt: _Attempt, time: float) -> None:
        raised, lowered = self._flag
        seen = max(raised, attempt.start) + self._rng.uniform(*self._model.look_s)
        over = time >= attempt.start + attempt.assignment.budget_s
        attempt.is_due = attempt.is_due or over or seen <= min(time, lowered)

    def _slices(self, ref: Ref, most: int) -> list[Ref]:
        cluster, _, count = ref
        slices = min(self._tree.entries[cluster] // SLICE_NAMES, most)
        if cluster != self._tree.wide or count > 1 or slices < 2:
            return []
        return [(cluster, index, slices) for index in range(slices)]

    def _children(self, ref: Ref) -> list[int]:
        cluster, index, count = ref
        return self._tree.children[cluster][index::count]

    def _duration(self, ref: Ref, worker: int) -> float:
        model = self._model
        names = self._tree.entries[ref[0]] if ref[0] == self._tree.wide else 0
        seconds = self._entries(ref) / model.rate + names / model.name_rate
        if model.latency_sigma:
            # Of mean 1, so that the ideal stays the same.
            seconds *= self._rng.lognormvariate(-(model.latency_sigma**2) / 2, model.latency_sigma)
        return seconds / self._speeds[worker]

    def _end(self, attempt: _Attempt) -> None:
        attempt.left += attempt.stack[::-1]
        unit = attempt.assignment.unit
        self._spent["commit"] += self._model.commit_s
        # The first record that is published wins, whichever the driver hears of first.
        won = self._published.setdefault(unit.id, attempt.left) is attempt.left
        if won:
            self.counted.update(attempt.done)
        attempt.left = self._published[unit.id]
        self._spent["work" if won else "lost"] += self._now - attempt.start
        published = self._now + self._model.commit_s
        heard = published + self._model.round_trip_s / 2
        self._at(heard, self._by_driver, self._returned, attempt, published)

    def _die(self, attempt: _Attempt) -> None:
        model = self._model
        self._spent["lost"] += self._now - attempt.start
        self._spent["restart"] += model.restart_s
        self._at(self._now + model.notice_s, self._by_driver, self._noticed, attempt)
        self._at(self._now + model.restart_s, self._by_driver, self._restarted, attempt.worker)


def _cut(count: int, pieces: int) -> list[tuple[int, int]]:
    """Cuts references as a unit does: into ranges of about equal length."""
    pieces = max(1, min(pieces, count))
    bounds = [count * piece // pieces for piece in range(pieces + 1)]
    return [(start, end) for start, end in zip(bounds, bounds[1:]) if start < end]


def simulate(
    shape: str, entries: int, model: Model, clusters: int = 100_000, wide_names: int = 10_000_000
) -> Result:
    """Simulates the scan of a tree of a shape. The same arguments give the same result.

    >>> from fathomfs.distributed.simulate import Model, simulate
    >>> result = simulate("random", 10**8, Model(workers=8), clusters=2000)
    >>> result.entries, result.share > 0.9
    (100000000, True)
    """
    return Simulation(grow(shape, entries, clusters, model.seed, wide_names), model).run()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Prints one JSON object for each number of workers."""
    options = _parser().parse_args(arguments)
    if options.plot:
        from ._plot import draw

        draw(options.plot)
        return 0
    for workers in options.workers:
        model = Model(
            workers=workers,
            rate=options.rate,
            budget_s=options.budget,
            latency_sigma=options.sigma,
            slow_share=options.slow,
            deaths_hour=options.deaths,
            seed=options.seed,
        )
        entries = options.entries or int(300 * model.rate * sum(model.speeds()))
        result = simulate(options.shape, entries, model, options.clusters, options.wide)
        print(json.dumps({"shape": options.shape, "workers": workers, **asdict(result)}))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fathomfs.distributed.simulate", description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="random")
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--entries", type=int, help="default: 300 s of work for each worker")
    parser.add_argument("--clusters", type=int, default=100_000)
    parser.add_argument("--wide", type=int, default=10_000_000, help="names of the directory of the shape wide")
    parser.add_argument("--rate", type=float, default=Model.rate, help="entries of a worker in a second")
    parser.add_argument("--budget", type=float, default=BUDGET_S, help="seconds")
    parser.add_argument("--sigma", type=float, default=0.0, help="spread of latencies (lognormal)")
    parser.add_argument("--slow", type=float, default=0.0, help="share of workers that are 10 times slower")
    parser.add_argument("--deaths", type=float, default=0.0, help="deaths of a worker in an hour")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", type=Path, metavar="DIR", help="make the pictures of docs/scale.md instead")
    return parser


if __name__ == "__main__":
    sys.exit(main())
