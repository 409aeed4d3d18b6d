"""Tests of verification, ratios and verdicts. They measure nothing.

Run them with `python3 -m unittest discover benches`.
"""

import os
import random
import shutil
import unittest

from runner import answers, cases, main, report, run, stats


def samples(arm, *seconds, maxrss_kib=1024):
    return {block: run.Sample("case", arm, block, s, 0, 0, maxrss_kib) for block, s in enumerate(seconds)}


def result_of(requirements, **seconds):
    """Returns a result with arms named after their groups."""
    made = [cases.Arm(group, group, ("TREE",), answers.SameBytes()) for group in seconds]
    result = run.Result(cases.Case("case", "a case", "real", made, requirements), entries=1000, blocks=3)
    result.samples = {group: samples(group, *times) for group, times in seconds.items()}
    return result


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
        slow, fast = samples("a", 2, 20, 200), samples("b", 1, 10, 100)
        ratio = stats.ratio(slow, fast, random.Random(1))
        self.assertAlmostEqual(ratio.value, 2)
        self.assertAlmostEqual(ratio.low, 2)
        self.assertAlmostEqual(ratio.high, 2)

    def test_only_common_blocks_count(self):
        many, few = samples("a", 3, 3, 9, 9, 9), samples("b", 1, 1)
        self.assertEqual(stats.ratio(many, few, random.Random(1)).pairs, 2)
        self.assertIsNone(stats.ratio(many, {}, random.Random(1)))

    def test_the_interval_holds_the_median_and_widens_with_noise(self):
        ratio = stats.ratio(samples("a", 1, 2, 3, 4, 5), samples("b", 1, 1, 1, 1, 1), random.Random(1))
        self.assertAlmostEqual(ratio.value, 3)
        self.assertTrue(1 <= ratio.low < 3 < ratio.high <= 5)


class Verdicts(unittest.TestCase):
    def outcome(self, requirement, **seconds):
        return report.Report([result_of((requirement,), **seconds)], random.Random(1)).verdicts[0].outcome

    def test_faster_means_at_least_the_limit(self):
        requirement = cases.faster(1.9, "baseline", "it")
        self.assertEqual(self.outcome(requirement, baseline=[2, 2, 2], fathom=[1, 1, 1]), "PASS")
        self.assertEqual(self.outcome(requirement, baseline=[1.8, 1.8, 1.8], fathom=[1, 1, 1]), "FAIL")

    def test_within_means_at_most_the_limit(self):
        requirement = cases.within(1.12, "floor", "it")
        self.assertEqual(self.outcome(requirement, floor=[1, 1, 1], fathom=[1.1, 1.1, 1.1]), "PASS")
        self.assertEqual(self.outcome(requirement, floor=[1, 1, 1], fathom=[1.2, 1.2, 1.2]), "FAIL")

    def test_an_interval_across_the_limit_is_said(self):
        outcome = self.outcome(cases.within(1.12, "floor", "it"), floor=[1, 1, 1], fathom=[1.0, 1.1, 1.3])
        self.assertEqual(outcome, "PASS (interval crosses)")

    def test_without_fathom_nothing_passes(self):
        self.assertEqual(self.outcome(cases.faster(1.9, "baseline", "it"), baseline=[1, 1, 1]), "not measured")

    def test_an_excluded_arm_is_nobody_s_best(self):
        result = result_of((cases.faster(1.25, "rival", "it"),), rival=[0.1, 0.1, 0.1], fathom=[1, 1, 1])
        result.excluded["rival"] = "wrong total"
        self.assertEqual(report.Report([result], random.Random(1)).verdicts[0].outcome, "not measured")

    def test_memory_is_compared_with_the_leanest_rival(self):
        result = result_of((cases.memory_below("rival", "it"),), rival=[1], fathom=[1])
        result.samples["fathom"] = samples("fathom", 1, maxrss_kib=2048)
        self.assertEqual(report.Report([result], random.Random(1)).verdicts[0].outcome, "FAIL")

    def test_a_need_may_name_one_arm_and_another_group_of_ours(self):
        requirement = cases.within(1.3, "fathom", "it", ours="ordered")
        self.assertEqual(self.outcome(requirement, fathom=[1, 1, 1], ordered=[1.2, 1.2, 1.2]), "PASS")
        result = result_of((cases.faster(2, "bfs", "it"),), rival=[1, 1, 1], bfs=[3, 3, 3], fathom=[1, 1, 1])
        self.assertEqual(report.Report([result], random.Random(1)).verdicts[0].outcome, "PASS")

    def test_a_published_figure_passes_nothing(self):
        figure = cases.Figure(0.5, entries=2000, baseline_s=0.25)
        result = result_of((cases.published(4, "it", figure),), baseline=[0.2] * 3, fathom=[0.1] * 3)
        verdict = report.Report([result], random.Random(1)).verdicts[0]
        self.assertEqual((verdict.requirement, verdict.outcome), ("4 times faster than it's published 500 ms", "information"))
        said = "5.00 as it is, 2.50 an entry, 4.00 by the time of baseline, 250.0 ms there (100.0 ms here)"
        self.assertEqual(verdict.measured, said)

    def test_a_loss_is_listed(self):
        lost = report.Report([result_of((), baseline=[1, 1, 1], fathom=[2, 2, 2])], random.Random(1)).losses()
        self.assertEqual(lost, ["- a case: baseline, 2.00 [2.00, 2.00] times as fast as fathom"])

    def test_what_keeps_an_order_is_not_measured_against_what_keeps_none(self):
        result = result_of((), rival=[2, 2, 2], fixed=[1, 1, 1], fathom=[1, 1, 1], ordered=[3, 3, 3])
        lost = report.Report([result], random.Random(1)).losses()
        self.assertEqual(lost, ["- a case: rival, 1.50 [1.50, 1.50] times as fast as ordered"])


class Blocks(unittest.TestCase):
    def test_only_a_long_and_much_slower_arm_is_cut_short(self):
        for theirs, ours, slow in ((1, 5, True), (1, 3, False), (0.01, 0.5, False)):
            result = result_of((), baseline=[theirs], fathom=[ours])
            self.assertEqual(result.slow(result.case.arms[1]), slow)


class Admission(unittest.TestCase):
    """Uses programs that exist everywhere, whose output is their last argument."""

    def verified_arms(self, *printed, expected=None):
        runner = run.Runner(None, self, random.Random(1), lambda text: None)
        whole = answers.SameBytes()
        made = [cases.Arm(f"{group} {text}", group, ("printf", text), whole) for group, text in printed]
        result = run.Result(cases.Case("case", "a case", "real", made, expected=expected))
        return [arm.name for arm in runner.verified_arms(result, ("/", "t"))], result

    def corpus(self, name):
        return f"/{name}"

    def test_all_are_compared_with_the_baseline(self):
        present, result = self.verified_arms(("fathom", "aa"), ("rival", "b"), ("baseline", "aa"))
        self.assertEqual(present, ["baseline aa", "fathom aa"])
        self.assertEqual(result.printed["fathom aa"], 2)
        self.assertIn("2 bytes", result.answer)
        self.assertIn("rival b", result.excluded)

    def test_without_a_baseline_nobody_can_be_compared(self):
        present, result = self.verified_arms(("fathom", "aa"))
        self.assertEqual(present, [])
        self.assertIn("baseline", result.excluded["fathom aa"])

    def test_what_is_known_of_the_tree_comes_before_the_baseline(self):
        present, _ = self.verified_arms(("fathom", "/real"), ("baseline", "aa"), expected=str.encode)
        self.assertEqual(present, ["fathom /real"])

    def test_another_command_may_be_checked(self):
        arm = cases.Arm("a", "rival", ("x", "TREE"), None, checked=("x", "-0", "TREE"))
        self.assertEqual(arm.argv({"TREE": "t"}), ["x", "t"])
        self.assertEqual(arm.argv({"TREE": "t"}, checking=True), ["x", "-0", "t"])


class Cold(unittest.TestCase):
    def test_the_libraries_of_a_program_are_files(self):
        for path in run.libraries(shutil.which("env")):
            self.assertTrue(os.path.isfile(path), path)

    def test_what_loads_nothing_has_none(self):
        self.assertEqual(run.libraries("/dev/null"), ())


class CommandLine(unittest.TestCase):
    def test_no_directory_of_this_machine_is_written_down(self):
        words = ["--gnu=/opt/new/du -x", "--fathom", "/home/me/fathom", "--cases", "fuse,pipe"]
        self.assertEqual(main.scrubbed(words), ["--gnu=du -x", "--fathom", "fathom", "--cases", "fuse,pipe"])


if __name__ == "__main__":
    unittest.main()
