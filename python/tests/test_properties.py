"""Random trees through Python, through the command, and through os.walk and os.lstat are the same."""

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import unittest
from pathlib import Path

import fathomfs as ff
from test_fathomfs import TemporaryTree, expected_rows, grow, peak

FATHOM = os.environ.get("FATHOM") or shutil.which("fathom")
#: A user who may not read what is closed.
NOBODY = 65534
CLOSED = [0o000, 0o400, 0o100, 0o700]


def run(*arguments, status=(0,)):
    done = subprocess.run([FATHOM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in status:
        raise AssertionError((arguments, done))
    return done.stdout


def rows(stream, columns):
    with stream:
        return sorted(row for batch in stream for row in zip(*map(batch.column, columns)))


def facts(meta):
    return meta.st_size, meta.st_blocks * 512, meta.st_mode, meta.st_nlink, meta.st_uid, meta.st_gid, meta.st_ino, meta.st_mtime_ns // 1000


COLUMNS = ["path_raw", "size", "allocated", "mode", "nlink", "uid", "gid", "ino", "mtime"]


class Trees(TemporaryTree):
    def trees(self):
        for seed in range(100, 106):
            root = os.path.join(self.root, str(seed))
            os.mkdir(root)
            grow(root, seed, 150)
            yield seed, root

    def scanned(self, root, name):
        return ff.scan(root, os.path.join(self.temp, name))


class Python(Trees):
    def test_lists_and_inventories_have_what_lstat_has(self):
        for seed, root in self.trees():
            expected = sorted((path, *facts(meta)) for path, meta in expected_rows(root).items())
            self.assertEqual(rows(ff.list(root, columns=COLUMNS), COLUMNS), expected, seed)
            inventory = self.scanned(root, f"{seed}.inv")
            top = (os.fsencode(root), *facts(os.lstat(root)))
            self.assertEqual(rows(inventory.entries(columns=COLUMNS), COLUMNS), sorted([top, *expected]), seed)

    def test_sums_are_those_of_lstat(self):
        for seed, root in self.trees():
            metas = [os.lstat(root), *expected_rows(root).values()]
            inodes = {(meta.st_dev, meta.st_ino): meta for meta in metas}.values()
            allocated = sum(meta.st_blocks * 512 for meta in inodes)
            files = [meta for meta in inodes if not stat.S_ISDIR(meta.st_mode)]
            usage, inventory = ff.du(root), self.scanned(root, f"{seed}.inv")
            self.assertEqual((usage.bytes, usage.files, usage.dirs), (allocated, len(files), len(inodes) - len(files)), seed)
            self.assertEqual(inventory.du()["bytes"], allocated, seed)
            self.assertEqual(sum(row["bytes"] for row in inventory.top(by="type", count=99)), allocated, seed)


@unittest.skipUnless(FATHOM, "needs the command, in FATHOM or in the path")
class Command(Trees):
    def test_du(self):
        for seed, root in self.trees():
            usage = ff.du(root)
            for options, found in ((["-B1"], usage.bytes), (["-B1", "--apparent-size"], usage.apparent)):
                self.assertEqual(int(run("du", "-s", *options, root).split()[0]), found, (seed, options))

    def test_list(self):
        for seed, root in self.trees():
            listed = run("list", "-0", root).split(b"\0")[:-1]
            found = [path for (path,) in rows(ff.list(root, columns=["path_raw"]), ["path_raw"])]
            # The command lists the root, too.
            self.assertEqual(sorted(listed), sorted([os.fsencode(root), *found]), seed)

    def test_scan_and_top(self):
        for seed, root in self.trees():
            ours, theirs = self.scanned(root, f"{seed}.inv"), os.path.join(self.temp, f"{seed}.command.inv")
            run("scan", "-o", theirs, root)
            opened = ff.open(theirs)
            self.assertEqual(rows(ours.entries(columns=COLUMNS), COLUMNS), rows(opened.entries(columns=COLUMNS), COLUMNS), seed)
            self.assertEqual([*ours.diff(opened)], [], seed)
            for by in ("dir", "file", "user", "ext", "type", "depth"):
                lines = [json.loads(line) for line in run("top", "--json", "-n", "99", "--by", by, ours.path).splitlines()]
                expected = [(row["bytes"], row["apparent"], row["entries"]) for row in lines if "total" not in row]
                found = [(row["bytes"], row["apparent"], row["entries"]) for row in opened.top(by=by, count=99)]
                self.assertEqual(found, expected, (seed, by))


class Unreadable(Trees):
    def test_closed_directories_are_problems_of_the_same_kind(self):
        # The child is nobody, so this is a test for root, too.
        os.chmod(self.temp, 0o755)
        os.chmod(self.root, 0o755)
        pick = random.Random(7)
        expected_any = 0
        for seed, root in self.trees():
            dirs = [os.path.join(path, name) for path, dirs, _ in os.walk(os.fsencode(root)) for name in dirs]
            dirs = [os.fsencode(root), *(path for path in dirs if not os.path.islink(path))]
            closed = [path for path in dirs[1:] if pick.random() < 0.4]
            for path in reversed(dirs):
                if os.geteuid() == 0:
                    os.lchown(path, NOBODY, NOBODY)
                os.chmod(path, pick.choice(CLOSED) if path in closed else 0o700)
            try:
                answer = self.as_nobody(root)
            finally:
                for path in dirs:
                    os.chmod(path, 0o700)
            self.assertEqual(answer["list"], answer["lstat"], seed)
            self.assertEqual(answer["inventory"], answer["lstat"], seed)
            # Names without metadata are problems of single entries.
            self.assertEqual(sorted({*answer["problems"]}), answer["closed"], seed)
            self.assertEqual(answer["errors"], answer["problem_count"], seed)
            self.assertEqual(answer["complete"], [not answer["closed"]] * 3, seed)
            expected_any += len(answer["closed"])
        self.assertGreater(expected_any, 5)

    def as_nobody(self, root):
        """What the child finds in the tree. It is nobody, unless this process is not root."""
        out = os.path.join(tempfile.mkdtemp(dir=self.temp), "x.inv")
        os.chmod(os.path.dirname(out), 0o777)
        paths = [os.path.dirname(os.path.dirname(ff.__file__)), os.path.dirname(__file__)]
        program = (
            "import importlib, json, os, sys\n"
            f"sys.path[:0] = {paths!r}\n"
            # Before the user changes, who may not read all modules.
            "import test_properties\n"
            "if os.geteuid() == 0:\n"
            f"    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
            "json.dump(test_properties.findings(*sys.argv[1:]), sys.stdout)\n"
        )
        done = subprocess.run([sys.executable, "-B", "-c", program, root, out], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)


def findings(root, out):
    """What lists, inventories and os.lstat have of a tree of which a part is closed."""
    top = os.fsencode(root)
    known, closed = [], []
    stack = [top]
    while stack:
        here = stack.pop()
        try:
            names = os.listdir(here)
        except OSError:
            closed.append(here.hex())
            continue
        for path in (os.path.join(here, name) for name in names):
            try:
                meta = os.lstat(path)
            except OSError:
                closed.append(path.hex())
                continue
            known.append([path.hex(), meta.st_size, meta.st_mode])
            if stat.S_ISDIR(meta.st_mode):
                stack.append(path)
    columns = ["path_raw", "size", "mode"]
    entries = ff.list(root, columns=columns)
    listed = [[path.hex(), size, mode] for path, size, mode in rows(entries, columns)]
    inventory = ff.scan(root, out)
    recorded = [row for batch in inventory.entries(columns=columns) for row in zip(*map(batch.column, columns))]
    usage = ff.du(root)
    problems = entries.errors
    return {
        "lstat": sorted(known),
        "closed": sorted(closed),
        "list": listed,
        "inventory": sorted([path.hex(), size, mode] for path, size, mode in recorded if path != top and mode is not None),
        "problems": sorted(problem.path_raw.hex() for problem in problems),
        "problem_count": len(problems),
        "errors": sum(map(len, inventory.errors(columns=["errno"]))),
        "complete": [entries.complete, inventory.complete, usage.complete],
    }


class Leaks(Trees):
    def test_a_thousand_calls_leave_no_descriptor_and_no_memory(self):
        grow(self.root, 120, 60)
        inventory = self.scanned(self.root, "x.inv")

        def work(count):
            for _ in range(count):
                ff.du(self.root, threads=1)
                sum(map(len, ff.list(self.root, threads=1)))
                sum(map(len, inventory.entries(where=ff.Where(size_min=1))))
                next(ff.open(inventory.path).entries(), None)

        work(50)
        # A leak would leave one a call. Packages of other tests may open a few meanwhile.
        descriptors = len(os.listdir("/proc/self/fd")) + 50
        first = peak()
        work(125)
        half = peak()
        work(125)
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), descriptors)
        # A leak grows as much in the second half as in the first.
        growth = peak() - half
        self.assertLess(growth, max(half - first, 0) + (16 << 20))


class Threads(Trees):
    def answers(self, root, inventory):
        return (
            ff.du(root, threads=2).bytes,
            rows(ff.list(root, columns=COLUMNS), COLUMNS),
            rows(inventory.entries(columns=COLUMNS), COLUMNS),
            inventory.top(by="type"),
            rows(inventory.dirs(columns=["name", "t_size"]), ["name", "t_size"]),
        )

    def test_eight_threads_get_the_same_answers(self):
        grow(self.root, 130, 100)
        inventory = self.scanned(self.root, "x.inv")
        expected, found, start = self.answers(self.root, inventory), [], threading.Barrier(8)

        def work():
            start.wait(60)
            for _ in range(10):
                found.append(self.answers(self.root, inventory) == expected)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [True] * 80)

    def test_a_stream_that_threads_share_gives_each_row_once(self):
        grow(self.root, 131, 2500)
        inventory, found, start = self.scanned(self.root, "x.inv"), [], threading.Barrier(8)
        stream = inventory.entries(columns=["path_raw"])

        def work():
            start.wait(60)
            while (batch := next(stream, None)) is not None:
                found.extend(batch.column("path_raw"))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(found), sorted(path for (path,) in rows(inventory.entries(columns=["path_raw"]), ["path_raw"])))

    def test_the_interpreter_without_a_lock_keeps_it_off(self):
        if not sysconfig.get_config_var("Py_GIL_DISABLED"):
            self.skipTest("needs a free-threaded interpreter")
        self.assertFalse(sys._is_gil_enabled())


if __name__ == "__main__":
    unittest.main()
