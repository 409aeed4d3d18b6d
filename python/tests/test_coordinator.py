"""The policy of distributed scans, event by event."""

import tracemalloc
import unittest

from fathomfs.distributed._coordinator import (
    STRAGGLER_S,
    Coordinator,
    Failure,
    Split,
    Unit,
    child_id,
    children,
)
from fathomfs.distributed.calculate import UNIT_BYTES


def coordinator(workers=2, end=1):
    return Coordinator([Unit("root", "", 0, end)], workers=workers)


def kill(scan, unit_id, times):
    """Lets workers die of the first unit that waits. Returns the last answer."""
    for _ in range(times):
        found = scan.assign(0.0)
        assert found.unit.id == unit_id
        answer = scan.lost(unit_id, found.attempt)
    return answer


class Coordinators(unittest.TestCase):
    def test_a_unit_is_requeued_under_a_new_attempt(self):
        scan = coordinator()
        self.assertIsNone(kill(scan, "root", 1))
        second = scan.assign(0.0)
        self.assertEqual((second.attempt, second.budget_s), (1, 0.0), "it reads one directory only")

    def test_three_deaths_halve_a_unit_and_fail_one_reference(self):
        scan = coordinator(end=2)
        answer = kill(scan, "root", 3)
        self.assertEqual(answer, Split(Unit("root", "", 0, 2), ((0, 1), (1, 2))))
        self.assertTrue(scan.done("root", answer.pieces))
        first = child_id("root", 0)
        self.assertEqual(kill(scan, first, 3), Failure(Unit(first, "root", 0, 1)))
        self.assertTrue(scan.done(first, []))
        self.assertEqual(scan.assign(0.0).unit, children("root", answer.pieces)[1])
        self.assertFalse(scan.finished)
        self.assertTrue(scan.done(child_id("root", 1), []))
        self.assertTrue(scan.finished)

    def test_a_death_that_is_reported_twice_counts_once(self):
        scan = coordinator()
        scan.assign(0.0)
        for _ in range(5):
            self.assertIsNone(scan.lost("root", 0))
        self.assertEqual((scan.queued, scan.running), (1, 0))

    def test_the_record_of_a_second_attempt_is_not_news(self):
        scan = coordinator()
        scan.assign(0.0)
        self.assertIsNone(scan.assign(STRAGGLER_S))
        self.assertIsNone(scan.assign(2 * STRAGGLER_S))
        second = scan.assign(2 * STRAGGLER_S + 1)
        self.assertEqual((second.unit.id, second.attempt), ("root", 1))
        self.assertTrue(scan.done("root", [(0, 1)]))
        self.assertFalse(scan.done("root", [(0, 1)]))
        self.assertEqual(scan.queued, 1)
        self.assertIsNone(scan.lost("root", 1))

    def test_the_death_of_a_second_attempt_leaves_the_first(self):
        scan = coordinator(workers=3)
        scan.assign(0.0)
        scan.assign(0.0)
        self.assertEqual(scan.assign(STRAGGLER_S + 1).attempt, 1)
        self.assertIsNone(scan.assign(10 * STRAGGLER_S), "two attempts are the most")
        self.assertIsNone(scan.lost("root", 1))
        self.assertEqual((scan.queued, scan.attempts), (0, 1))

    def test_workers_are_hungry_if_one_is_idle_and_no_unit_waits(self):
        scan = coordinator(workers=2)
        self.assertFalse(scan.hungry, "a unit waits")
        scan.assign(0.0)
        self.assertTrue(scan.hungry)
        scan.done("root", [(0, 1), (1, 2), (2, 3)])
        self.assertFalse(scan.hungry)
        scan.assign(0.0)
        scan.assign(0.0)
        self.assertFalse(scan.hungry, "a unit waits")
        scan.assign(0.0)
        self.assertFalse(scan.hungry, "no worker is idle")

    def test_memory_grows_with_units_and_not_with_references(self):
        scan = coordinator()
        scan.assign(0.0)
        tracemalloc.start()
        try:
            scan.done("root", [(0, 1_000_000)])
            few = tracemalloc.get_traced_memory()[0]
            unit = scan.assign(0.0).unit
            scan.done(unit.id, [(at, at + 100) for at in range(0, 1_000_000, 100)])
            many = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        self.assertLess(few, 10_000)
        self.assertEqual(scan.queued, 10_000)
        self.assertLess((many - few) / 10_000, UNIT_BYTES)


if __name__ == "__main__":
    unittest.main()
