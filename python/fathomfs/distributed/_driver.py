"""The driver: gives units to an engine, collects their ends, and keeps what the policy needs.

The state of the scan is its records, so a driver that dies loses nothing that is finished.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from .._errors import FathomError
from . import _commit, _faults
from ._commit import Totals
from ._coordinator import BUDGET_S, DEATHS_MAX, Assignment, Coordinator, Failure, Split, Unit
from ._engines import End, Engine, EngineError
from ._ramp import BUDGET_S as RAMP_BUDGET_S
from ._ramp import ENTRIES_MIN, Ramp
from ._worker import ClusterScan, Outcome, Task

#: The longest wait for the end of a unit, in seconds: the time until a signal is noticed.
POLL_S = 0.2
#: The time that running units have to return what they have, once the scan is to end, in seconds.
DRAIN_S = 5.0
#: The time without a worker after which the user is told that the scan waits for one, in seconds.
NO_WORKER_S = 60.0
#: The number of refused units for each worker, without one that was done, after which no worker is
#: taken to see the roots.
REFUSALS_PER_WORKER = 2
#: The number of units that fail with an exception, without one that was done, after which the scan
#: is taken to be unable to go on.
ERRORS_MAX = 3
#: The number of deaths of a unit's only worker that are taken for deaths of machines.
LONE_DEATHS_MAX = 10


@dataclass(frozen=True)
class ClusterProgress:
    """The progress of a distributed scan."""

    #: ``scan``, or ``finish`` while the tables are put together.
    phase: str
    #: Entries and directories in the records of finished units.
    entries: int
    directories: int
    units_done: int
    units_running: int
    units_queued: int
    workers: int
    elapsed_s: float
    #: Entries a second since this driver has started.
    rate: float
    #: About how many entries there are, if an earlier inventory or the filesystem tells.
    entries_expected: int | None


@dataclass
class Options:
    """The options of a driver."""

    threads: int | None = None
    io: str = "auto"
    rate: int | None = None
    in_flight: int | None = None
    #: When the scan is to end, on the clock ``time.monotonic``.
    deadline: float | None = None
    #: The longest time that a unit runs before it returns what is left.
    budget_s: float = BUDGET_S
    #: Workers that may die of a unit before it is cut, and in the end given up.
    deaths_max: int = DEATHS_MAX
    ramp: Ramp | None = None
    entries_expected: int | None = None
    progress: Callable[[ClusterProgress], object] | None = None
    #: Is told of refused workers and failed units.
    warn: Callable[[str], object] | None = None
    #: Returns whether a signal has come.
    interrupted: Callable[[], bool] = lambda: False


class Driver:
    """One run of the loop over the units of a scan."""

    def __init__(self, cluster: ClusterScan, engine: Engine, options: Options) -> None:
        self._cluster, self._engine, self._options = cluster, engine, options
        self._part = os.fspath(cluster.part)
        self._hungry_path = os.path.join(self._part, "hungry")
        self._attempts = _commit.next_driver(self._part) * _commit.ATTEMPTS_PER_DRIVER
        state = _commit.read_state(self._part, Unit("root", "", 0, cluster.roots))
        self.totals: Totals = state.totals
        self._first_entries = state.totals.entries
        self._coordinator = self._policy(state.pending)
        #: The attempts that the engine has, by unit and number.
        self._sent: dict[tuple[str, int], Assignment] = {}
        #: Those of them whose unit another attempt has finished.
        self._stale: set[tuple[str, int]] = set()
        self._rate_sent = self._in_flight_sent = 0
        #: Whether units should end because the shares of the limits are too large for more workers.
        self._is_short = False
        self._is_hungry: bool | None = None
        self._refusals, self._refused_hosts = 0, set[str]()
        #: Failures since the last record, and the number of records at the first failure of each unit.
        self._errors, self._failing = 0, dict[str, int]()
        #: Deaths of each unit at which there was no other worker.
        self._lone_deaths: dict[str, int] = {}
        self._error: FathomError | None = None
        self._start = self._reported = time.monotonic()
        #: When there was a worker for the last time; infinite once the user was told that there is none.
        self._last_worker = self._start

    def _policy(self, pending: Iterable[Unit]) -> Coordinator:
        # The limits are shared out by this driver, which knows of finished units that still run.
        return Coordinator(
            pending, workers=0, budget_s=self._options.budget_s, deaths_max=self._options.deaths_max
        )

    def run(self) -> str | None:
        """Scans until everything is done. Returns why it ended before, if it did.

        An error of the engine or of the inventory's storage is raised after running units have had
        the time to end; the records stay, so that the scan can be resumed.
        """
        stopped = self._stop_reason()
        while stopped is None and not self._coordinator.finished and self._error is None:
            self._assign()
            self._set_hungry(self._coordinator.hungry or self._is_short)
            self._collect(POLL_S)
            self._tell_of_no_worker()
            stopped = self._stop_reason()
        if self._error is not None or stopped is not None:
            self._drain()
        self._set_hungry(False)
        self.report("scan", force=True)
        if self._error is not None:
            raise self._error
        return None if self._coordinator.finished else stopped

    def report(self, phase: str, *, entries: int | None = None, force: bool = False) -> None:
        """Calls ``progress``, a few times a second."""
        now = time.monotonic()
        if self._options.progress is None or (now - self._reported < POLL_S and not force):
            return
        self._reported = now
        elapsed = now - self._start
        done = self.totals.entries - self._first_entries
        progress = ClusterProgress(
            phase,
            self.totals.entries if entries is None else entries,
            self.totals.dirs,
            self.totals.units,
            self._coordinator.running,
            self._coordinator.queued,
            self._coordinator.workers,
            elapsed,
            done / elapsed if elapsed > 0 else 0.0,
            self._options.entries_expected,
        )
        self._options.progress(progress)

    def _stop_reason(self) -> str | None:
        if self._options.interrupted():
            return "interrupted"
        if self._options.deadline is not None and time.monotonic() >= self._options.deadline:
            return "deadline"
        return None

    def _collect(self, timeout: float) -> None:
        try:
            for end in self._engine.poll(timeout):
                _faults.point("driver-collect")
                self._take(end)
        except EngineError as error:
            self._error = error
        self.report("scan")

    def _drain(self) -> None:
        """Has running units return what they have."""
        last = time.monotonic() + DRAIN_S
        self._set_hungry(True)
        while self._sent.keys() - self._stale and time.monotonic() < last:
            if isinstance(self._error, EngineError):
                return
            self._collect(POLL_S)

    def _set_hungry(self, hungry: bool) -> None:
        if hungry == self._is_hungry:
            return
        self._is_hungry = hungry
        try:
            if hungry:
                with open(self._hungry_path, "wb"):
                    pass
            else:
                os.unlink(self._hungry_path)
        except FileNotFoundError:
            pass
        except OSError as error:
            # Units end by their budgets all the same.
            self._warn(f"cannot set '{self._hungry_path}': {error.strerror}")

    def _tell_of_no_worker(self) -> None:
        now = time.monotonic()
        if self._coordinator.workers > 0:
            self._last_worker = now
        elif now - self._last_worker >= NO_WORKER_S:
            self._last_worker = float("inf")
            self._warn(f"no worker for {NO_WORKER_S:.0f} s: the scan waits for one")

    def _capacity(self) -> int:
        """The number of attempts that may run at once."""
        ramp = self._options.ramp
        limits = (self._options.rate, self._options.in_flight, None if ramp is None else ramp.limit)
        return min([self._engine.slots(), *(limit for limit in limits if limit is not None)])

    def _assign(self) -> None:
        try:
            capacity, spare = self._capacity(), self._engine.spare
            # A worker that still has a finished unit, as a stopped one does, is no worker.
            self._coordinator.workers = max(0, capacity - len(self._stale))
            self._coordinator.budget_s = self._current_budget()
            self._is_short = False
            while True:
                idle = capacity - len(self._sent)
                if idle <= 0 and not (self._coordinator.queued and idle > -spare):
                    return
                shares = self._shares(capacity)
                if shares is None:
                    self._is_short = idle > 0
                    return
                assignment = self._coordinator.assign(time.monotonic())
                if assignment is None:
                    return
                self._send(replace(assignment, rate=shares[0], in_flight=shares[1]))
        except EngineError as error:
            self._error = error

    def _current_budget(self) -> float:
        ramp = self._options.ramp
        budget = self._options.budget_s
        if ramp is not None and ramp.limit < self._engine.slots():
            budget = min(budget, RAMP_BUDGET_S)
        if self._options.deadline is not None:
            budget = min(budget, max(0.0, self._options.deadline - time.monotonic()))
        return budget

    def _shares(self, capacity: int) -> tuple[int | None, int | None] | None:
        """The shares of the limits for one more attempt; running ones keep theirs.

        Returns ``None`` if not enough is left: there are more workers than when those were given.
        """
        shares: list[int | None] = []
        for limit, sent in ((self._options.rate, self._rate_sent), (self._options.in_flight, self._in_flight_sent)):
            share = None if limit is None else max(1, limit // max(1, capacity))
            if limit is not None and share is not None and sent > 0 and sent + share > limit:
                return None
            shares.append(share)
        return shares[0], shares[1]

    def _send(self, assignment: Assignment) -> None:
        attempt = self._attempts + assignment.attempt
        unit = assignment.unit
        task = Task(
            part=self._part,
            unit=unit.id,
            parent=unit.parent,
            start=unit.start,
            end=unit.end,
            attempt=attempt,
            budget_s=assignment.budget_s,
            pieces=assignment.pieces,
            slices=assignment.slices,
            rate=assignment.rate,
            in_flight=assignment.in_flight,
            threads=self._options.threads,
            io=self._options.io,
        )
        self._sent[(unit.id, attempt)] = assignment
        self._rate_sent += assignment.rate or 0
        self._in_flight_sent += assignment.in_flight or 0
        _faults.point("driver-send")
        self._engine.submit(task)

    def _take(self, end: End) -> None:
        assignment = self._sent.pop((end.unit, end.attempt), None)
        if assignment is None:
            return
        self._stale.discard((end.unit, end.attempt))
        self._rate_sent -= assignment.rate or 0
        self._in_flight_sent -= assignment.in_flight or 0
        outcome = end.outcome
        record = outcome.get("record")
        if record is not None:
            self._refusals = self._errors = 0
            self._settle(end.unit, record)
            return
        # Whatever the engine says: a worker may have died after its record was published.
        record = _commit.read_record(self._part, end.unit)
        if record is not None:
            self._settle(end.unit, record)
        elif outcome["kind"] == "refused":
            self._refuse(assignment, outcome)
        elif outcome["kind"] == "storage":
            self._coordinator.returned(end.unit, assignment.attempt)
            self._error = FathomError(outcome.get("errno", 0), outcome.get("message", ""))
        elif outcome["kind"] == "error" and not self._is_error_of_unit(end.unit):
            self._fail(assignment, outcome)
        elif outcome["kind"] == "lost" and self._is_lone_death(end.unit):
            self._coordinator.returned(end.unit, assignment.attempt)
        else:
            self._lose(assignment, outcome)

    def _settle(self, unit: str, record: _commit.Record) -> None:
        if not self._coordinator.done(unit, record["pieces"]):
            return
        self.totals.add(record)
        self._failing.pop(unit, None)
        self._lone_deaths.pop(unit, None)
        self._stale.update(key for key in self._sent if key[0] == unit)
        if record["kind"] == "scanned" and self._options.ramp is not None and record["entries"] >= ENTRIES_MIN:
            latency = record.get("latency_us") or 1e6 * record["seconds"] / record["entries"]
            self._options.ramp.observe(latency)

    def _refuse(self, assignment: Assignment, outcome: Outcome) -> None:
        self._coordinator.returned(assignment.unit.id, assignment.attempt)
        host = outcome.get("host", "")
        if host not in self._refused_hosts:
            self._refused_hosts.add(host)
            self._warn(f"cannot use the worker on '{host}': {outcome.get('message', '')}")
        self._refusals += 1
        if self._refusals > REFUSALS_PER_WORKER * max(1, self._engine.slots()):
            self._error = EngineError(f"no worker sees what is to be scanned: {outcome.get('message', '')}")

    def _is_error_of_unit(self, unit: str) -> bool:
        """Whether others were done since a unit has failed for the first time."""
        return self._failing.setdefault(unit, self.totals.units) < self.totals.units

    def _fail(self, assignment: Assignment, outcome: Outcome) -> None:
        """Tries a unit again that has raised an exception; ends the scan if nothing else happens."""
        self._coordinator.returned(assignment.unit.id, assignment.attempt)
        self._errors += 1
        if self._errors >= max(ERRORS_MAX, self._engine.slots()):
            self._error = FathomError(outcome.get("errno", 0), outcome.get("message", ""))

    def _is_lone_death(self, unit: str) -> bool:
        """Whether all workers have died, as machines do that are taken away: no unit's doing."""
        if self._engine.slots() > 1:
            return False
        deaths = self._lone_deaths[unit] = self._lone_deaths.get(unit, 0) + 1
        return deaths <= LONE_DEATHS_MAX

    def _lose(self, assignment: Assignment, outcome: Outcome) -> None:
        """Counts a death, and writes the record of a unit that has killed too many workers."""
        decision = self._coordinator.lost(assignment.unit.id, assignment.attempt)
        if decision is None:
            return
        unit = decision.unit
        operands = (unit.id, unit.parent, unit.start, unit.end)
        if isinstance(decision, Split):
            self._cluster.record_split(*operands, [*decision.pieces])
        else:
            assert isinstance(decision, Failure)
            self._warn(f"cannot scan unit '{unit.id}': {outcome.get('message', '')}")
            self._cluster.record_failed(*operands, outcome.get("message", ""))
        _commit.publish(self._part, unit.id, -1)
        record = _commit.read_record(self._part, unit.id)
        assert record is not None
        self._settle(unit.id, record)

    def _warn(self, message: str) -> None:
        if self._options.warn is not None:
            self._options.warn(message)
