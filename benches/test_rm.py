"""Tests of the cases of `rm.py`, and of its preparation with a tree of few files."""

import contextlib
import subprocess
import tempfile
import types
import unittest
from pathlib import Path

import rm
from runner import build
from runner.cases import Arm, Case
from runner.run import Failure

TOOLS = build.Tools(
    baseline=("rm",), fathom="fathom", earlier=None, floor="names", slowfs=None, rivals={}, missing={}
)


class Cases(unittest.TestCase):
    def test_every_case_has_a_name_that_can_be_asked_for(self):
        self.assertEqual({case.name for case in rm.all_cases(TOOLS)}, set(rm.NAMES))

    def test_what_a_requirement_compares_with_is_in_its_case(self):
        for case in rm.all_cases(TOOLS):
            groups = {arm.group for arm in case.arms}
            self.assertEqual(len({arm.name for arm in case.arms}), len(case.arms))
            for requirement in case.requirements:
                self.assertLessEqual({requirement.than, requirement.ours}, groups)

    def test_without_fathom_the_others_are_measured(self):
        names = [arm.name for arm in rm.arms_of(build.Tools(**{**vars(TOOLS), "fathom": None}))]
        self.assertEqual(names, ["rm -rf", "find -delete"])


class Fresh(unittest.TestCase):
    def prepare(self, root, command):
        """Prepares a case of one arm with the tree `few`."""
        facts = types.SimpleNamespace(ROOT=root, corpus=lambda name: Path(root), facts_of=lambda name: {"entries": 2})
        case = Case("case", "", "few", [Arm("arm", "baseline", command, rm.Gone())])
        with contextlib.ExitStack() as stack:
            prepared = rm.FreshPreparer(TOOLS, facts, lambda text: None).prepare(case, stack)
            tree = prepared.directory / prepared.names["TREE"]
            left = tree.exists()
            built = [subprocess.run(prepared.rebuild, stderr=subprocess.DEVNULL).returncode for _ in range(2)]
            return prepared, left, built, sum(1 for _ in tree.rglob("*"))

    def test_each_run_gets_a_tree_of_its_own_where_nothing_is_left(self):
        with tempfile.TemporaryDirectory() as root:
            prepared, left, built, entries = self.prepare(root, ("rm", "-rf", "TREE"))
        self.assertEqual((prepared.excluded, left, built[0], entries), ({}, False, 0, 2110))
        self.assertNotEqual(built[1], 0)
        self.assertIn(f"{rm.BUILD} few", prepared.text(1))

    def test_an_arm_that_leaves_something_is_excluded_and_the_next_one_has_its_tree(self):
        arms = [Arm("rm", "baseline", ("rm", "-rf", "TREE"), rm.Gone()), Arm("true", "rival", ("true",), rm.Gone())]
        arms += [Arm("also", "fathom", ("rm", "-rf", "TREE"), rm.Gone())]
        with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
            facts = types.SimpleNamespace(ROOT=root, corpus=lambda name: Path(root), facts_of=lambda name: {"entries": 2})
            prepared = rm.FreshPreparer(TOOLS, facts, lambda text: None).prepare(Case("case", "", "few", arms), stack)
        self.assertEqual(prepared.excluded, {"true": "it has left something of the tree"})
        self.assertEqual([arm.name for arm in prepared.case.arms], ["rm", "also"])

    def test_an_arm_that_prints_something_is_excluded(self):
        with tempfile.TemporaryDirectory() as root, self.assertRaisesRegex(Failure, "it prints b'x"):
            self.prepare(root, ("sh", "-c", "rm -r tree; echo x"))


if __name__ == "__main__":
    unittest.main()
