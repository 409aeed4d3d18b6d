"""Tests of the arms of `inventory.py`, and of the handling of files that arms create."""

import contextlib
import tempfile
import types
import unittest
from pathlib import Path

import inventory
from runner import answers, build, cases, main, report, run

TOOLS = build.Tools(("find",), "fathom", None, "names", None, {}, {})


class Cases(unittest.TestCase):
    def test_every_case_can_be_asked_for_and_compares_with_what_is_in_it(self):
        known = inventory.all_cases(TOOLS)
        self.assertEqual([case.name for case in known], list(inventory.DEFAULT))
        for case in known:
            words = {word for arm in case.arms for word in (arm.name, arm.group)}
            self.assertEqual(len(case.arms), len({arm.name for arm in case.arms}))
            for requirement in case.requirements:
                with self.subTest(case=case.name, requirement=requirement):
                    self.assertLessEqual({requirement.ours, requirement.than} - {""}, words)


class Answers(unittest.TestCase):
    def test_a_total_is_the_last_one_rounded_up(self):
        answer = answers.SameTotal(rb'"bytes":(\d+)')
        output = b'{"bytes":7}\n{"total":{"bytes":2049}}\n'
        self.assertIsNone(answer.mismatch(output, "t", b"3\tt\n"))
        self.assertIn("its total is 3 KiB, expected 2", answer.mismatch(output, "t", b"2\tt\n"))
        self.assertIn("no total", answer.mismatch(b"{}", "t", b"2\tt\n"))

    def test_silence_is_no_answer(self):
        self.assertIsNotNone(answers.AnyOutput().mismatch(b"", "t", b""))


class Earlier(unittest.TestCase):
    """Every arm of fathom is paired with the program of --earlier, on data that that program
    prepared.
    """

    def setUp(self):
        tools = build.Tools(("find",), "/new/fathom", "/old/fathom", "names", None, {}, {})
        self.cases = {case.name: case for case in main.all_cases(inventory.COMPARISON, tools)}

    def test_an_arm_and_a_need_are_added_for_each_of_ours(self):
        case = self.cases["ask-five"]
        ours = {arm.name for arm in case.arms if arm.group in cases.OURS}
        earlier = {arm.name for arm in case.arms if arm.group == "earlier"}
        self.assertEqual(earlier, {f"{name} (earlier)" for name in ours})
        added = [one for one in case.requirements if one.than.endswith("(earlier)")]
        for kind in ("time", "memory"):
            pairs = {one.ours: one.than for one in added if one.kind == kind and one.limit == cases.EARLIER_LIMIT}
            self.assertEqual(pairs, {name: f"{name} (earlier)" for name in ours})

    def test_the_earlier_program_reads_and_checks_by_itself(self):
        case = self.cases["ask-five"]
        self.assertEqual(case.prepare["MADE (earlier)"][0], "/old/fathom")
        self.assertEqual(case.prepare["MADE (earlier)"][3], "MADE (earlier)")
        asked = next(arm for arm in case.arms if arm.name == f"{inventory.FROM} (earlier)")
        self.assertEqual(asked.command, ("/old/fathom", "du", "-s", "--from", "MADE (earlier)"))
        scan = next(arm for arm in self.cases["scan-small"].arms if arm.group == "earlier")
        self.assertIn("/old/fathom", scan.checked)
        self.assertNotIn("/new/fathom", (*scan.command, *scan.checked))

    def test_without_one_no_case_changes(self):
        for case in main.all_cases(inventory.COMPARISON, TOOLS):
            self.assertEqual([arm for arm in case.arms if arm.group == "earlier"], [])


class Made(unittest.TestCase):
    def test_what_arms_make_is_measured_and_gone_before_the_next_run(self):
        make = ("sh", "-c", 'test ! -e "$0" && mkdir "$0" && cat "$2" >"$0/copy" && ls "$1"', "OUT", "TREE", "MADE")
        arms = [cases.Arm("it", "baseline", make, answers.SameBytes()), cases.Arm("maker", "fathom", make, answers.SameBytes())]
        prepare = {"MADE": ("sh", "-c", 'printf 12345678 >"$0"', "MADE")}
        with tempfile.TemporaryDirectory() as root, contextlib.ExitStack() as stack:
            tree = Path(root) / "tree"
            tree.mkdir()
            (tree / "file").touch()
            corpora = types.SimpleNamespace(
                ROOT=root, corpus=lambda name: Path(root) / name, facts_of=lambda name: {"entries": 2}
            )
            for most, outcome in ((4, "met"), (3, "missed")):
                case = cases.Case("case", "a case", "tree", arms, prepare=prepare, entry_bytes_max=most)
                prepared = run.Preparer(TOOLS, corpora, lambda text: None).prepare(case, stack)
                self.assertEqual((prepared.excluded, prepared.made), ({}, {"it": 8, "maker": 8}))
                row = [outcome, "case", f"maker writes at most {most} bytes an entry", "4.0"]
                self.assertEqual(report.sizes([prepared]), [row])
                self.assertIn(f"rm -rf {prepared.names['OUT']}", prepared.text(1))


if __name__ == "__main__":
    unittest.main()
