"""Tests of the table of `paint.py`."""

import random
import unittest

import paint


class Table(unittest.TestCase):
    def outcomes(self, page_bytes, paints):
        measured = {"first contentful paint": paints, "load event": [9000.0] * len(paints)}
        lines = paint.table(page_bytes, measured, random.Random(1)).splitlines()[2:]
        return [line.split("|")[4].strip() for line in lines]

    def test_a_small_page_that_is_painted_soon_is_as_needed(self):
        self.assertEqual(self.outcomes(1_500_000, [900.0] * 6), ["PASS", "PASS", ""])

    def test_a_large_page_and_a_late_paint_are_not(self):
        self.assertEqual(self.outcomes(1_500_001, [1100.0] * 6), ["FAIL", "FAIL", ""])


if __name__ == "__main__":
    unittest.main()
