"""The package against the standard library and GNU du, on generated trees."""

import errno
import gc
import os
import pickle
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import fathomfs as ff

# Before coreutils 9.2, du's apparent sizes included directories.
GNU_DU = os.environ.get("FATHOM_GNU_DU")


def grow(root, seed, entries=200):
    """Makes a random tree: names of any bytes, holes, links of both kinds, a fifo, a socket."""
    pick = random.Random(seed)
    dirs, files = [os.fsencode(root)], []
    for number in range(entries):
        name = b"%d-" % number + bytes(pick.choice(b"ab \n\xff\xc3\xa9.%") for _ in range(pick.randrange(8)))
        path = os.path.join(pick.choice(dirs), name)
        kind = pick.randrange(10)
        if kind < 2:
            os.mkdir(path)
            dirs.append(path)
        elif kind == 2 and files:
            os.link(pick.choice(files), path)
        elif kind == 3:
            os.symlink(pick.choice([b"..", b"missing", path]), path)
        elif kind == 4:
            os.mkfifo(path)
        else:
            with open(path, "wb") as file:
                file.write(b"x" * pick.choice([0, 1, 4095, 4096, 70_000]))
                if kind == 5:
                    file.truncate(pick.choice([1 << 20, 10]))
            files.append(path)


def expected_rows(root):
    """The entries below ``root`` with os.lstat."""
    rows = {}
    for parent, dirs, files in os.walk(os.fsencode(root)):
        for name in dirs + files:
            path = os.path.join(parent, name)
            rows[path] = os.lstat(path)
    return rows


class TemporaryTree(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.temp)
        self.root = os.path.join(self.temp, "tree")
        os.mkdir(self.root)


class Du(TemporaryTree):
    @unittest.skipUnless(GNU_DU, "needs the newest GNU du in FATHOM_GNU_DU")
    def test_counts_what_du_counts(self):
        for seed in range(8):
            root = os.path.join(self.root, str(seed))
            os.mkdir(root)
            grow(root, seed)
            usage = ff.du(root)
            for options, found in [(["-B1"], usage.bytes), (["--apparent-size", "-B1"], usage.apparent)]:
                out = subprocess.run([GNU_DU, "-s", *options, root], check=True, stdout=subprocess.PIPE).stdout
                self.assertEqual(found, int(out.split()[0]), (seed, options))
            inodes = {(meta.st_dev, meta.st_ino): meta for meta in expected_rows(root).values()}
            dirs = sum(stat.S_ISDIR(meta.st_mode) for meta in inodes.values())
            self.assertEqual((usage.dirs, usage.files), (dirs + 1, len(inodes) - dirs))
            self.assertTrue(usage.complete)
            self.assertEqual(usage.errors, ())

    def test_excludes_by_pattern(self):
        Path(self.root, "a.o").write_bytes(b"x" * 5000)
        Path(self.root, "b.c").write_bytes(b"x" * 10)
        for exclude in (["*.o"], "*.o", b"*.o"):
            self.assertEqual(ff.du(self.root, exclude=exclude).apparent, 10)

    def test_a_missing_path_is_a_problem_and_an_exception_if_strict(self):
        missing = os.path.join(self.root, "miss\udcffing")
        usage = ff.du(missing)
        self.assertFalse(usage.complete)
        problem = usage.errors[0]
        self.assertEqual((problem.errno, problem.path, problem.operation), (errno.ENOENT, missing, "access"))
        self.assertEqual(problem.path_raw, os.fsencode(missing))
        with self.assertRaises(ff.FathomError) as caught:
            ff.du(missing, strict=True)
        self.assertIsInstance(caught.exception, OSError)
        self.assertEqual((caught.exception.errno, caught.exception.filename), (errno.ENOENT, missing))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.errno, again.operation, str(again)), (errno.ENOENT, "access", str(caught.exception)))

    @unittest.skipIf(os.geteuid() == 0, "root reads every directory")
    def test_an_unreadable_directory_is_a_problem(self):
        shut = os.path.join(self.root, "shut")
        os.mkdir(shut, 0)
        self.addCleanup(os.chmod, shut, 0o700)
        usage = ff.du(self.root)
        self.assertEqual([problem.errno for problem in usage.errors], [errno.EACCES])
        self.assertEqual(usage.dirs, 2)

    def test_wrong_values_are_errors(self):
        with self.assertRaisesRegex(ValueError, "unknown I/O model .*valid models are sync"):
            ff.du(self.root, io="zfs")
        with self.assertRaisesRegex(ValueError, "null byte"):
            ff.du("a\0b")
        with self.assertRaises(TypeError):
            ff.du(7)
        out = os.path.join(self.root, "x.inv")
        for wrong in (lambda: ff.du(self.root, threads=0), lambda: ff.list(self.root, threads=0), lambda: ff.scan(self.root, out, rate=0)):
            with self.assertRaisesRegex(ValueError, " 0: expected 1 or more"):
                wrong()
        with self.assertRaisesRegex(ValueError, "expected at least one path"):
            ff.scan([], out)
        self.assertEqual(os.listdir(self.root), [])

    def test_progress_is_reported_at_least_once_and_its_error_ends_the_call(self):
        grow(self.root, 1)
        seen = []
        usage = ff.du(self.root, progress=seen.append)
        # Names are counted as they are read, and the root is none.
        self.assertEqual(seen[-1].entries, len(expected_rows(self.root)))
        self.assertLessEqual(usage.files + usage.dirs, len(expected_rows(self.root)) + 1)

        def refuse(progress):
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            ff.du(self.root, progress=refuse)


class Interrupts(TemporaryTree):
    def test_control_c_ends_a_call(self):
        # A tree that takes long: the child says when it has begun, and loops until it is interrupted.
        program = (
            "import sys, fathomfs as ff\n"
            "try:\n"
            "    while True:\n"
            "        ff.du(sys.argv[1], progress=lambda progress: print('on', flush=True))\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', flush=True)\n"
        )
        grow(self.root, 3)
        child = subprocess.Popen(
            ["env", "--default-signal=INT", sys.executable, "-c", program, self.root], stdout=subprocess.PIPE, text=True
        )
        with child:
            self.assertEqual(child.stdout.readline(), "on\n")
            child.send_signal(signal.SIGINT)
            lines = child.stdout.read().split()
        self.assertEqual((lines[-1], child.returncode), ("interrupted", 0))


class List(TemporaryTree):
    def test_has_what_lstat_has(self):
        columns = ["path_raw", "type", "depth", "size", "allocated", "mode", "nlink", "uid", "gid", "ino", "dev", "mtime"]
        grow(self.root, 5, 600)
        with ff.list(self.root, columns=columns) as entries:
            self.assertEqual(entries.columns, columns)
            rows = [row for batch in entries for row in zip(*map(batch.column, columns))]
            self.assertTrue(entries.complete)
            self.assertEqual(entries.errors, [])
        expected = expected_rows(self.root)
        self.assertEqual(sorted(row[0] for row in rows), sorted(expected))
        for path, kind, depth, size, allocated, mode, nlink, uid, gid, ino, dev, mtime in rows:
            meta = expected[path]
            self.assertEqual(
                (size, allocated, mode, nlink, uid, gid, ino, dev, mtime),
                (
                    meta.st_size,
                    meta.st_blocks * 512,
                    meta.st_mode,
                    meta.st_nlink,
                    meta.st_uid,
                    meta.st_gid,
                    meta.st_ino,
                    meta.st_dev,
                    meta.st_mtime_ns // 1000,
                ),
            )
            self.assertEqual(depth, path.count(b"/") - os.fsencode(self.root).count(b"/"))
            self.assertEqual(kind == "directory", stat.S_ISDIR(meta.st_mode))

    def test_names_alone_need_no_metadata(self):
        grow(self.root, 6)
        trace = os.path.join(self.temp, "trace")
        program = f"import fathomfs as ff; print(sum(map(len, ff.list({self.root!r}, columns=['path']))))"
        if not shutil.which("strace"):
            self.skipTest("needs strace")
        calls = "statx,newfstatat,lstat,stat"
        command = ["strace", "-f", "-e", f"trace={calls}", "-o", trace, sys.executable, "-c", program]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(int(out), len(expected_rows(self.root)))
        name = b"0-"
        lines = [line for line in Path(trace).read_bytes().splitlines() if b'"' + name in line]
        self.assertEqual(lines, [])

    def test_a_file_is_its_own_list(self):
        path = os.path.join(self.root, "file")
        Path(path).write_bytes(b"123")
        (batch,) = ff.list(path, columns=["path", "name", "depth", "size"])
        self.assertEqual([batch.column(name) for name in ("path", "name", "depth", "size")], [[path], ["file"], [0], [3]])

    def test_depth_and_exclusions(self):
        os.makedirs(os.path.join(self.root, "a/b/c"))
        names = lambda **options: sorted(
            name for batch in ff.list(self.root, columns=["name"], **options) for name in batch.column("name")
        )
        self.assertEqual(names(), ["a", "b", "c"])
        self.assertEqual(names(max_depth=2), ["a", "b"])
        self.assertEqual(names(exclude=["b"]), ["a"])
        self.assertEqual(names(exclude="b"), ["a"])
        self.assertEqual(ff.list(self.root, columns="path").columns, ["path"])
        with self.assertRaisesRegex(ValueError, "unknown column .colour.: the columns are path, "):
            ff.list(self.root, columns=["colour"])

    def test_a_stream_is_taken_once(self):
        stream = ff.list(self.root)
        self.assertEqual(list(stream), [])
        with self.assertRaisesRegex(ValueError, "already taken"):
            stream.__arrow_c_stream__()

    def test_arrow_readers_get_the_same_rows(self):
        grow(self.root, 7, 400)
        expected = sorted(meta.st_size for meta in expected_rows(self.root).values())
        readers = {
            "pyarrow": lambda module, stream: module.table(stream)["size"].to_pylist(),
            "polars": lambda module, stream: module.DataFrame(stream)["size"].to_list(),
            "duckdb": lambda module, stream: [size for (size,) in module.sql("SELECT size FROM stream").fetchall()],
            "pandas": lambda module, stream: module.DataFrame.from_arrow(stream)["size"].tolist(),
        }
        for name, read in readers.items():
            with self.subTest(reader=name):
                try:
                    module = __import__(name)
                except ImportError:
                    self.skipTest(f"needs {name}")
                stream = ff.list(self.root, columns=["path", "size", "mtime", "btime", "path_raw"])
                self.assertEqual(sorted(read(module, stream)), expected)

    def test_a_stream_that_is_dropped_ends_its_walk(self):
        grow(self.root, 8, 2000)
        count = lambda: (len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")))
        before = count()
        for _ in range(200):
            next(iter(ff.list(self.root)))
        gc.collect()
        # The threads end on their own.
        for _ in range(6000):
            if count() <= before:
                break
            threading.Event().wait(0.01)
        self.assertLessEqual(count(), before)


class Inventories(TemporaryTree):
    def test_a_scan_answers_as_the_tree_does(self):
        grow(self.root, 11, 300)
        out = os.path.join(self.temp, "x.inv")
        seen = []
        inventory = ff.scan(self.root, out, progress=seen.append)
        self.assertTrue(inventory.complete and seen)
        self.assertEqual(len(inventory), len(expected_rows(self.root)) + 1)
        usage = ff.du(self.root)
        self.assertEqual(inventory.du()["bytes"], usage.bytes)
        opened = ff.open(out)
        opened.verify()
        self.assertEqual(opened.top(by="type"), inventory.top(by="type"))
        self.assertTrue(all(os.path.exists(path) for path in opened.files("entries")))
        with self.assertRaisesRegex(ff.InventoryError, "no such directory"):
            opened.top(below="nowhere")
        with self.assertRaises(ff.InventoryError) as caught:
            ff.scan(self.root, out)
        self.assertEqual(caught.exception.errno, errno.EEXIST)
        with self.assertRaises(ff.InventoryError) as caught:
            ff.open(os.path.join(self.temp, "missing.inv"))
        self.assertEqual(caught.exception.errno, errno.ENOENT)

    def test_a_scan_that_a_deadline_ends_can_be_resumed(self):
        grow(self.root, 12, 300)
        out = os.path.join(self.temp, "x.inv")
        self.assertFalse(ff.scan(self.root, out, deadline=0).complete)
        inventory = ff.scan(self.root, out, resume=True)
        self.assertTrue(inventory.complete)
        self.assertEqual(len(inventory), len(expected_rows(self.root)) + 1)

    def test_unchanged_directories_are_copied(self):
        grow(self.root, 13, 300)
        first = ff.scan(self.root, os.path.join(self.temp, "a.inv"))
        second = ff.scan(self.root, os.path.join(self.temp, "b.inv"), since=first.path)
        self.assertEqual(len(second), len(first))


class Concurrency(TemporaryTree):
    def test_calls_from_many_threads_and_many_calls_leak_nothing(self):
        grow(self.root, 14, 60)
        expected = ff.du(self.root).bytes
        results = []

        def work():
            for _ in range(50):
                results.append(ff.du(self.root, threads=2).bytes)
                results.append(sum(sum(batch.column("size")) for batch in ff.list(self.root, columns=["size"])))

        work()
        before = len(os.listdir("/proc/self/fd")), peak()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results.count(expected), 9 * 50)
        self.assertEqual(len(set(results)), 2)
        self.assertLessEqual(len(os.listdir("/proc/self/fd")), before[0])
        self.assertLess(peak() - before[1], 64 << 20)


def peak():
    """The resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    unittest.main()
