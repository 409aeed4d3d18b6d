"""Tests of the arms and requirements of `list.py`."""

import os
import shutil
import subprocess
import tempfile
import types
import unittest
from pathlib import Path

import list as listing
import list_arms as arms
import rivals
from runner import build

TOOLS = build.Tools(
    baseline=("find",),
    fathom="fathom",
    earlier=None,
    floor="names",
    slowfs=None,
    rivals={"bfs": {"path": "bfs"}, "fd": {"path": "fd"}, "fdf": {"path": "fdf"}},
    missing={},
)


def case(name, tools=TOOLS):
    return next(case for case in listing.all_cases(tools) if case.name == name)


def names(case):
    return [arm.name for arm in case.arms]


class Cases(unittest.TestCase):
    def test_every_case_has_a_name_that_can_be_asked_for(self):
        self.assertEqual({case.name for case in listing.all_cases(TOOLS)}, set(listing.NAMES))

    def test_what_a_need_compares_with_is_in_its_case(self):
        for each in listing.all_cases(TOOLS):
            known = {word for arm in each.arms for word in (arm.name, arm.group)}
            for requirement in each.requirements:
                with self.subTest(case=each.name, requirement=requirement):
                    self.assertLessEqual({requirement.ours, requirement.than}, known)

    def test_names_of_arms_are_distinct(self):
        for each in listing.all_cases(TOOLS):
            self.assertEqual(len(names(each)), len(set(names(each))))

    def test_many_threads_meet_slow_storage_alone(self):
        self.assertIn("bfs -j64", names(case("fuse")))
        self.assertNotIn("bfs -j64", names(case("real-warm")))
        self.assertNotIn("floor 1 thr", names(case("fuse-all")))

    def test_a_bfs_without_threads_is_not_given_any(self):
        old = build.Tools(**{**vars(TOOLS), "missing": {"bfs -j": "one thread"}})
        self.assertIn("bfs", names(case("fuse", old)))
        self.assertNotIn("bfs -j64", names(case("fuse", old)))

    def test_without_rivals_the_others_are_measured(self):
        bare = build.Tools(**{**vars(TOOLS), "rivals": {}, "missing": {"bfs": "none", "fd": "none", "fdf": "none"}})
        self.assertEqual(names(case("real-warm", bare))[:2], ["find", arms.ANY])


class Rivals(unittest.TestCase):
    def test_one_that_is_not_there_is_said_with_its_package(self):
        found, missing = rivals.find_listers({name: f"/nonexistent/{name}" for name in ("bfs", "fd", "fdf")})
        self.assertEqual(found, {})
        self.assertEqual(missing["bfs"], "no program bfs: apt-get install bfs")
        self.assertEqual(missing["fd"], "no program fd: cargo install fd-find")
        self.assertEqual(missing["fdf"], "no program fdf: cargo install fdf")

    def test_one_can_be_named(self):
        options = types.SimpleNamespace(bfs="/nonexistent/bfs", fd="env", fdf="/nonexistent/fdf")
        found, missing = listing.installed(options)
        self.assertTrue(found["fd"]["path"].endswith("/env"))
        self.assertEqual(found["fd"]["source"], "named")
        self.assertIn("bfs", missing)


@unittest.skipUnless(shutil.which(os.environ.get("CC", "cc")), "no C compiler")
class Floor(unittest.TestCase):
    def test_it_prints_what_find_prints(self):
        with tempfile.TemporaryDirectory() as scratch:
            floor = build.compile_c("names", scratch)
            root = Path(scratch) / "tree"
            (root / "a/.b/c").mkdir(parents=True)
            (root / "a/loop").symlink_to(root)
            (root / "one\nname").touch()
            for number in range(3000):
                (root / f"a/.b/{'long' * 20}{number}").touch()
            expected = self.output(scratch, arms.find(("find",)))
            for threads in (1, 3):
                arm = arms.floor(floor, threads)
                self.assertIsNone(arm.answer.mismatch(self.output(scratch, arm), "tree", expected))

    def output(self, directory, arm):
        command = arm.argv({"TREE": "tree"}, checking=True)
        return subprocess.run(command, cwd=directory, check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    unittest.main()
