"""Tests of the cases of `explore.py`, and of the terminal that explorers run in."""

import subprocess
import sys
import unittest
from pathlib import Path

import explore
from runner import build

HERE = Path(__file__).resolve().parent
TOOLS = build.Tools(
    baseline=("du",),
    fathom="target/release/fathom",
    earlier=None,
    floor="floor",
    slowfs=None,
    rivals={name: {"path": name} for name in explore.EXPLORERS},
    missing={},
)


class Cases(unittest.TestCase):
    def test_every_case_has_a_name_that_can_be_asked_for(self):
        self.assertEqual({case.name for case in explore.all_cases(TOOLS)}, set(explore.DEFAULT))

    def test_what_a_need_compares_with_is_in_its_case(self):
        for each in explore.all_cases(TOOLS):
            known = {word for arm in each.arms for word in (arm.name, arm.group)}
            for requirement in each.requirements:
                with self.subTest(case=each.name, requirement=requirement):
                    self.assertLessEqual({requirement.ours, requirement.than} - {""}, known)

    def test_each_case_has_a_baseline(self):
        for each in explore.all_cases(TOOLS):
            self.assertIn("baseline", {arm.group for arm in each.arms}, each.name)

    def test_names_of_arms_are_distinct(self):
        for each in explore.all_cases(TOOLS):
            self.assertEqual(len(each.arms), len({arm.name for arm in each.arms}))


class Terminal(unittest.TestCase):
    def run_in_terminal(self, script):
        command = [sys.executable, str(HERE / "in_terminal.py"), "sh", "-c", script]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def test_an_explorer_is_quit_once_it_is_quiet(self):
        script = "stty -icanon; printf drawn; test \"$(head -c 1)\" = q"
        self.assertEqual(self.run_in_terminal(script).returncode, 0)

    def test_a_program_that_draws_nothing_is_an_error(self):
        ended = self.run_in_terminal("stty -icanon -echo; head -c 1 >/dev/null")
        self.assertIn("drew nothing", ended.stderr)


class Frame(unittest.TestCase):
    def run_until(self, text, script):
        command = [build.compile_c("frame"), text, "sh", "-c", script]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def test_a_program_is_killed_once_it_has_drawn_the_text(self):
        ended = self.run_until("00/", "stty -icanon -echo; printf '\\033[6n'; head -c 6 >/dev/null; printf 'row 00/'; cat")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "drawn 00/\n", ""))

    def test_a_program_that_ends_before_is_an_error(self):
        ended = self.run_until("00/", "printf 'row 01/'")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("had not drawn '00/'", ended.stderr)


if __name__ == "__main__":
    unittest.main()
