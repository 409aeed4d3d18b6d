"""Tests of the cases of `rm.py`, and of its runner with trees of a few files."""

import random
import tempfile
import types
import unittest
from pathlib import Path

import rm
from runner import build
from runner.cases import Arm, Case

TOOLS = build.Tools(
    baseline=("rm",), fathom="fathom", earlier=None, floor="names", timed="timed", slowfs=None, rivals={}, missing={}
)


class Cases(unittest.TestCase):
    def test_every_case_has_a_name_that_can_be_asked_for(self):
        self.assertEqual({case.name for case in rm.all_cases(TOOLS)}, set(rm.NAMES))

    def test_what_a_requirement_compares_with_is_in_its_case(self):
        for case in rm.all_cases(TOOLS):
            groups = {arm.group for arm in case.arms}
            self.assertEqual(len({arm.name for arm in case.arms}), len(case.arms))
            for requirement in case.requirements:
                self.assertLessEqual({requirement.reference, requirement.ours}, groups)

    def test_without_fathom_rm_is_compared_with_itself(self):
        names = [arm.name for arm in rm.arms_of(build.Tools(**{**vars(TOOLS), "fathom": None}))]
        self.assertEqual(names, ["rm -rf", "find -delete", "rm -rf (again)"])


class Fresh(unittest.TestCase):
    def run_case(self, command):
        """Runs an arm in two blocks; returns the result and the number of trees that were built."""
        built = []

        def build_tree(target):
            built.append(target)
            (target / "file").touch()

        with tempfile.TemporaryDirectory() as root:
            corpora = types.SimpleNamespace(
                ROOT=root,
                BUILDERS={"tiny": (1, build_tree)},
                corpus=lambda name: Path(root),
                facts_of=lambda name: {"entries": 2},
            )
            tools = build.Tools(**{**vars(TOOLS), "timed": build.compile_c("timed", root)})
            runner = rm.FreshRunner(tools, corpora, random.Random(1), lambda text: None)
            arm = Arm("arm", "baseline", command, rm.Gone())
            return runner.run(Case("case", "", "tiny", [arm]), 2), len(built)

    def test_each_run_gets_a_tree_of_its_own(self):
        result, built = self.run_case(("rm", "-rf", "TREE"))
        self.assertEqual((result.excluded, len(result.samples["arm"]), built), ({}, 2, 3))

    def test_an_arm_that_leaves_something_is_excluded(self):
        result, built = self.run_case(("true", "TREE"))
        self.assertEqual((result.excluded, built), ({"arm": "it has left something of the tree"}, 1))
        result, _ = self.run_case(("sh", "-c", "rm -r tree; echo x"))
        self.assertEqual(result.excluded, {"arm": "it prints b'x\\n'"})


if __name__ == "__main__":
    unittest.main()
