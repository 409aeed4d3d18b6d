"""``scandir`` against ``os.scandir``, with CPython's own tests of it."""

import functools
import gc
import importlib
import os
import queue
import threading
import unittest
import warnings
from unittest import mock

import fathomfs as ff
from test_fathomfs import TemporaryTree, expected_rows, grow


def cpython_module():
    """The module of CPython that tests ``os``; ``None`` where it is not installed (Debian packages it apart)."""
    for name in ("test.test_os.test_os", "test.test_os"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if hasattr(module, "TestScandir"):
            return module
    return None


class OtherOs:
    """The module ``os`` with some names of its own."""

    def __init__(self, **names):
        self.__dict__.update(names)

    def __getattr__(self, name):
        return getattr(os, name)


def outcome(call, **arguments):
    """The result of a call, or the class of its error."""
    try:
        return call(**arguments)
    except OSError as error:
        return type(error)


class Scandir(TemporaryTree):
    def run_cpython_tests(self, left_out=(), **names):
        module = cpython_module()
        if module is None:
            self.skipTest("CPython's tests are not installed")
        chosen = [name for name in dir(module.TestScandir) if name.startswith("test_") and name not in left_out]
        result = unittest.TestResult()
        with mock.patch.object(module, "os", OtherOs(**names)):
            unittest.TestSuite(map(module.TestScandir, chosen)).run(result)
        problems = [f"{case}: {text}" for case, text in result.failures + result.errors]
        self.assertEqual((problems, result.testsRun), ([], len(chosen)))
        # Those of Windows alone.
        self.assertLess(len(result.skipped), 5, result.skipped)
        self.assertGreater(len(chosen), 15)

    def test_cpython_s_own_tests_pass(self):
        self.run_cpython_tests(scandir=ff.scandir, supports_fd={ff.scandir})

    def test_cpython_s_own_tests_pass_for_trees(self):
        # A tree is opened by its path, of the types that are not deprecated.
        scandir = functools.partial(ff.scandir, recursive=True)
        self.run_cpython_tests(["test_bytes_like", "test_fd"], scandir=scandir, DirEntry=ff.DirEntry)

    def test_a_tree_has_the_entries_of_its_directories(self):
        grow(self.root, 10, 100)
        os.symlink(self.root, os.path.join(self.root, "loop"))
        for root in (self.root, os.fsencode(self.root)):
            with ff.scandir(root, recursive=True) as entries:
                found = {entry.path: entry for entry in entries}
            self.assertEqual({os.fsencode(path) for path in found}, set(expected_rows(self.root)))
            self.assertEqual({type(path) for path in found}, {type(root)})
            directories = [root, *(entry.path for entry in found.values() if entry.is_dir(follow_symlinks=False))]
            for expected in (entry for path in directories for entry in os.scandir(path)):
                entry = found[expected.path]
                for name in ("is_dir", "is_file", "stat"):
                    for follow in (False, True):
                        if name == "stat" and follow and entry.is_symlink():
                            continue
                        values = [outcome(getattr(one, name), follow_symlinks=follow) for one in (entry, expected)]
                        self.assertEqual(*values, (name, follow, expected.path))
                facts = lambda one: (one.name, one.is_symlink(), one.inode(), repr(one), os.fspath(one))
                self.assertEqual(facts(entry), facts(expected))
        self.assertTrue(found[os.path.join(root, b"loop")].is_dir())

    def test_the_iterator_ends_the_walk_and_has_its_errors(self):
        grow(self.root, 11, 300)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResourceWarning)
            entries = ff.scandir(self.root, recursive=True)
            next(entries)
            entries.close()
            self.assertRaises(StopIteration, next, entries)
            self.assertEqual(len(list(ff.scandir(self.root, recursive=True))), len(expected_rows(self.root)))
            del entries
            gc.collect()
            self.assertEqual([str(warning.message) for warning in caught], [])
        entries = ff.scandir(self.root, recursive=True)
        with self.assertWarns(ResourceWarning):
            del entries
            gc.collect()
        # A link is followed as the path itself, as os.scandir does.
        link = os.path.join(self.temp, "link")
        os.symlink(self.root, link)
        with ff.scandir(link, recursive=True) as entries:
            self.assertEqual(len(list(entries)), len(expected_rows(self.root)))
        gone = os.path.join(self.root, "gone")
        os.mkdir(gone)
        with mock.patch.object(ff._scandir._fathomfs, "list", side_effect=ZeroDivisionError):
            self.assertRaises(ZeroDivisionError, ff.scandir, gone, recursive=True)
        self.assertRaises(FileNotFoundError, ff.scandir, os.path.join(self.root, "none"), recursive=True)
        self.assertRaises(NotADirectoryError, ff.scandir, "/dev/null", recursive=True)
        found = queue.SimpleQueue()
        with ff.scandir(self.root, recursive=True) as entries:
            read = lambda: found.put([entry.path for entry in entries])
            threads = [threading.Thread(target=read) for _ in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        self.assertEqual(len({path for _ in threads for path in found.get_nowait()}), len(expected_rows(self.root)))
        self.assertRaisesRegex(ValueError, "recursive", ff.scandir, self.root, threads=2)


if __name__ == "__main__":
    unittest.main()
