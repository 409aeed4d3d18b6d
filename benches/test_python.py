"""Tests of the cases and verdicts of `python.py`, and of the answers of its arms."""

import os
import random
import sys
import tempfile
import unittest

import python as bench

# The arms remove their directory from the path of modules.
PATH = list(sys.path)
import python_arms as arms

sys.path[:] = PATH


def took(seconds, cpu_s):
    return {block: {"seconds": seconds + block / 1000, "cpu_s": cpu_s} for block in range(5)}


class Cases(unittest.TestCase):
    def test_every_arm_is_known_and_has_a_name_of_its_own(self):
        for case in bench.CASES:
            self.assertEqual(len(set(case.arms)), len(case.arms))
            for name in case.arms:
                self.assertTrue((name in arms.ARMS) != (name in bench.COMMANDS), name)

    def test_requirements_and_equal_answers_are_about_arms_of_the_case(self):
        for case in bench.CASES:
            named = {name for group in case.same for name in group}
            for one in case.requirements:
                named |= {one.ours, one.reference or one.ours}
            self.assertLessEqual(named, set(case.arms), case.name)

    def test_cases_have_distinct_names(self):
        names = [case.name for case in bench.CASES]
        self.assertEqual(len(set(names)), len(names))


class Verdicts(unittest.TestCase):
    def verdict(self, ours, reference, limit, measure="cpu_s"):
        requirement = bench.Requirement("text", "ours", measure, limit, "theirs" if reference else None)
        samples = {"ours": ours, "theirs": reference}
        return bench.verdict(requirement, samples, random.Random(1))[1:]

    def test_a_share_of_the_reference(self):
        self.assertEqual(self.verdict(took(1, 0.1), took(1, 1), 1 / 8), ["0.100 [0.100, 0.100]", "PASS"])
        self.assertEqual(self.verdict(took(1, 0.2), took(1, 1), 1 / 8), ["0.200 [0.200, 0.200]", "FAIL"])

    def test_a_time(self):
        measured, outcome = self.verdict(took(0.005, 0), None, 0.02, "seconds")
        self.assertTrue(measured.startswith("7.0 ms ["), measured)
        self.assertEqual(outcome, "PASS")

    def test_an_interval_that_contains_the_limit_is_marked(self):
        ours = {block: {"cpu_s": 1 + block % 2 / 2} for block in range(6)}
        theirs = {block: {"cpu_s": 1.25} for block in range(6)}
        self.assertIn("interval crosses", self.verdict(ours, theirs, 1)[1])


class Answers(unittest.TestCase):
    def test_columns_and_infos_do_not_depend_on_the_order(self):
        with tempfile.TemporaryDirectory() as tree:
            for name in "ab":
                with open(os.path.join(tree, name), "wb") as file:
                    file.write(name.encode() * 3)
            paths, sizes, times = arms.scandir_stat(tree, None)
            self.assertEqual(sizes, [3, 3])
            turned = [list(reversed(column)) for column in (paths, sizes, times)]
            self.assertEqual(arms.columns_answer(turned), arms.columns_answer((paths, sizes, times)))
            self.assertEqual(arms.columns_answer((paths, sizes, times))[0], 2)
            self.assertNotEqual(arms.columns_answer((paths, [3, 4], times)), arms.columns_answer((paths, sizes, times)))


if __name__ == "__main__":
    unittest.main()
