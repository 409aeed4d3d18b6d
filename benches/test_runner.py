"""Tests of verification, files of cases, ratios and reports. They measure nothing.

Run them with `python3 -m unittest discover benches`.
"""

import random
import tomllib
import unittest
from pathlib import Path

from runner import answers, cases, main, report, run, stats


class Answers(unittest.TestCase):
    FIND = b"t\0t/a\0t/b\0"

    def test_one_other_byte_is_a_complaint(self):
        self.assertIsNone(answers.SameBytes().mismatch(self.FIND, "t", self.FIND))
        self.assertIn("part after 5", answers.SameBytes().mismatch(b"t\0t/a\nt/b\0", "t", self.FIND))

    def test_paths_may_come_in_any_order(self):
        self.assertIsNone(answers.SamePaths().mismatch(b"t/b\0t\0t/a\0", "t", self.FIND))

    def test_a_path_too_few_too_many_twice_or_cut_is_a_complaint(self):
        wrong = (b"t\0t/a\0", self.FIND + b"t/c\0", self.FIND + b"t/b\0", b"t\0t/a\0t/b", b"")
        for output in wrong:
            with self.subTest(output):
                self.assertIsNotNone(answers.SamePaths().mismatch(output, "t", self.FIND))

    def test_only_who_is_known_to_may_leave_out_the_root_or_end_directories(self):
        output = b"t/b/\0t/a\0"
        self.assertIsNone(answers.SamePaths(ends_directories=True, omits_root=True).mismatch(output, "t", self.FIND))
        self.assertIsNotNone(answers.SamePaths(omits_root=True).mismatch(output, "t", self.FIND))
        self.assertIsNotNone(answers.SamePaths(ends_directories=True).mismatch(output, "t", self.FIND))

    def test_the_summary_does_not_depend_on_the_order(self):
        self.assertEqual(answers.SamePaths().summary(self.FIND), answers.SamePaths().summary(b"t/b\0t\0t/a\0"))


class Ratios(unittest.TestCase):
    def test_pairs_cancel_what_a_whole_block_suffers(self):
        ratio = stats.ratio_of({0: 2, 1: 20, 2: 200}, {0: 1, 1: 10, 2: 100}, random.Random(1))
        self.assertAlmostEqual(ratio.value, 2)
        self.assertAlmostEqual(ratio.low, 2)
        self.assertAlmostEqual(ratio.high, 2)

    def test_only_common_blocks_count(self):
        many, few = dict(enumerate((3, 3, 9, 9, 9))), {0: 1, 1: 1}
        self.assertEqual(stats.ratio_of(many, few, random.Random(1)).pairs, 2)
        self.assertIsNone(stats.ratio_of(many, {}, random.Random(1)))

    def test_the_interval_holds_the_median_and_widens_with_noise(self):
        ratio = stats.ratio_of(dict(enumerate((1, 2, 3, 4, 5))), dict.fromkeys(range(5), 1), random.Random(1))
        self.assertAlmostEqual(ratio.value, 3)
        self.assertTrue(1 <= ratio.low < 3 < ratio.high <= 5)


def arms_of(*groups):
    return [cases.Arm(group, group, (group, "TREE"), answers.SameBytes()) for group in groups]


class Files(unittest.TestCase):
    """The file of a case for `fathom bench run`."""

    def test_a_file_has_the_commands_and_what_is_required_of_them(self):
        names = {"TREE": "a \"tree\"", "OUT": "/scratch/o u t"}
        needs = (cases.faster(2, "baseline"), cases.memory(16), cases.at_most(0.5, "fathom"))
        case = cases.Case("c", "a case", "real", arms_of("fathom", "baseline"), needs, cold=True, blocks_factor=0.5)
        found = tomllib.loads(run.Prepared(case, Path("/corpora"), names).text(10))["case"]
        self.assertEqual(len(found), 1)
        baseline, ours = found[0].pop("command")
        self.assertEqual(ours["run"], ["fathom", 'a "tree"'])
        self.assertEqual((baseline["optional"], ours["optional"]), (False, True))
        self.assertEqual(ours["prepare"], "rm -rf '/scratch/o u t'")
        required = [
            {"command": "fathom", "time": 0.5, "than": "baseline"},
            {"command": "fathom", "memory-bytes": 16 << 20},
            {"command": "fathom", "seconds": 0.5},
        ]
        self.assertEqual(found[0].pop("require"), required)
        rest = {"name": "c", "directory": "/corpora", "blocks": 5, "cold": True, "output": "null", "same-output": "any"}
        rest["timeout-seconds"] = run.TIMEOUT_S
        self.assertEqual(found[0], rest)

    def test_requirements_go_with_their_arms(self):
        needs = (cases.faster(2, "baseline"), cases.within(1.1, "floor"))
        case = cases.Case("c", "a case", "real", arms_of("baseline", "fathom", "floor"), needs)
        self.assertEqual(cases.only(case, None, "floor").requirements, needs[:1])
        self.assertEqual(cases.only(case, "floor", None).requirements, ())


class Losses(unittest.TestCase):
    def test_a_loss_is_listed_unless_it_keeps_no_order(self):
        case = cases.Case("c", "a case", "real", arms_of("baseline", "fixed", "fathom", "ordered", "rival"))
        seconds = {"baseline": 1, "fixed": 1, "fathom": 2, "ordered": 3, "rival": 4}
        arms = [{"cell": "c", "method": name, "runs": 3, "seconds": {"median": time}} for name, time in seconds.items()]
        lost = report.losses([run.Prepared(case, Path("/"), {})], {"arms": arms})
        expected = [
            "- a case: baseline, 2.00 times as fast as fathom",
            "- a case: fixed, 2.00 times as fast as fathom",
            "- a case: baseline, 3.00 times as fast as ordered",
        ]
        self.assertEqual(lost, expected)


class Admission(unittest.TestCase):
    """Uses programs that exist everywhere, whose output is their last argument."""

    def verify(self, *printed, expected=None):
        whole = answers.SameBytes()
        made = [cases.Arm(f"{group} {text}", group, ("printf", text), whole) for group, text in printed]
        needs = (cases.at_most(1, "fathom"), cases.at_most(1, "rival"))
        case = cases.Case("case", "a case", "real", made, needs, expected=expected)
        prepared = run.Prepared(case, Path("/"), {"TREE": "t", "OUT": "/nonexistent/out"})
        run.Preparer(None, self, lambda text: None).verify(prepared)
        return [arm.name for arm in prepared.case.arms], prepared

    def corpus(self, name):
        return f"/{name}"

    def test_all_are_compared_with_the_baseline(self):
        present, prepared = self.verify(("fathom", "aa"), ("rival", "b"), ("baseline", "aa"))
        self.assertEqual(present, ["baseline aa", "fathom aa"])
        self.assertIn("2 bytes", prepared.answer)
        self.assertIn("rival b", prepared.excluded)
        self.assertEqual([one.ours for one in prepared.unmet], ["rival"])

    def test_without_a_baseline_nobody_can_be_compared(self):
        with self.assertRaisesRegex(run.Failure, "the baseline has no answer"):
            self.verify(("fathom", "aa"))

    def test_what_is_known_of_the_tree_comes_before_the_baseline(self):
        with self.assertRaisesRegex(run.Failure, "its 2 bytes are not the baseline's 5"):
            self.verify(("fathom", "/real"), ("baseline", "aa"), expected=str.encode)
        present, _ = self.verify(("fathom", "aa"), ("baseline", "/real"), expected=str.encode)
        self.assertEqual(present, ["baseline /real"])

    def test_another_command_may_be_checked(self):
        arm = cases.Arm("a", "rival", ("x", "TREE"), None, checked=("x", "-0", "TREE"))
        self.assertEqual(arm.argv({"TREE": "t"}), ["x", "t"])
        self.assertEqual(arm.argv({"TREE": "t"}, checking=True), ["x", "-0", "t"])


class CommandLine(unittest.TestCase):
    def test_no_directory_of_this_machine_is_written_down(self):
        words = ["--gnu=/opt/new/du -x", "--fathom", "/home/me/fathom", "--cases", "fuse,pipe"]
        self.assertEqual(main.scrubbed(words), ["--gnu=du -x", "--fathom", "fathom", "--cases", "fuse,pipe"])


if __name__ == "__main__":
    unittest.main()
