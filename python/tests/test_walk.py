"""``walk`` against ``os.walk``."""

import errno
import os
import random
import threading
import unittest
from pathlib import Path

import fathomfs as ff
from fathomfs import _fathomfs
from test_async import walk_threads
from test_fathomfs import TemporaryTree, grow


def in_order(walked):
    """What ``os.walk`` yields, with sorted names."""
    return [(path, sorted(dirs), sorted(files)) for path, dirs, files in walked]


def sorted_walk(top, topdown=True, **options):
    """``os.walk`` in the order of the names."""
    if topdown:
        for path, dirs, files in os.walk(top, **options):
            dirs.sort()
            yield path, dirs, sorted(files)
        return
    # Bottom up, the order of os.walk is that of scandir.
    below = {path: (sorted(dirs), sorted(files)) for path, dirs, files in os.walk(top, **options)}

    def visit(path):
        for name in below[path][0]:
            child = os.path.join(path, name)
            if not os.path.islink(child):
                yield from visit(child)
        yield path, *below[path]

    yield from visit(top)


class Walk(TemporaryTree):
    def setUp(self):
        super().setUp()
        grow(self.root, 9, 500)
        os.symlink(self.root, os.path.join(self.root, "loop"))
        os.symlink("missing", os.path.join(self.root, "dangling"))

    def test_the_same_triples_as_os_walk(self):
        for top in (self.root, self.root + "/", os.fsencode(self.root), Path(self.root)):
            self.assertEqual(list(ff.walk(top)), list(sorted_walk(top)), top)
        self.assertEqual(list(ff.walk(self.root, topdown=False)), list(sorted_walk(self.root, topdown=False)))
        self.assertEqual(list(ff.walk(self.root, False)), list(sorted_walk(self.root, False)))
        missing = os.path.join(self.root, "missing")
        file = os.path.join(self.root, "file")
        Path(file).touch()
        self.assertEqual([*ff.walk(missing), *ff.walk(file)], [])

    def test_links_are_followed_if_asked(self):
        outside = os.path.join(self.temp, "outside")
        os.makedirs(os.path.join(outside, "below"))
        os.remove(os.path.join(self.root, "loop"))
        os.symlink(outside, os.path.join(self.root, "link"))
        for directory in [path for path, _, _ in os.walk(self.root)]:
            for name in os.listdir(directory):
                path = os.path.join(directory, name)
                if os.path.islink(path) and os.readlink(path) == "..":
                    os.remove(path)
        expected = list(sorted_walk(self.root, followlinks=True))
        self.assertIn(os.path.join(self.root, "link", "below"), [path for path, _, _ in expected])
        self.assertEqual(list(ff.walk(self.root, followlinks=True)), expected)

    def test_names_can_be_removed_added_and_reordered(self):
        def change(walked, pick):
            for path, dirs, files in walked:
                dirs.sort()
                dirs[:] = [name for name in dirs if pick.randrange(3)]
                pick.shuffle(dirs)
                if path == self.root:
                    os.makedirs(os.path.join(path, "new", "below"), exist_ok=True)
                    dirs.extend(name for name in ("new", "loop") if name not in dirs)
                yield path, list(dirs), sorted(files)

        os.makedirs(os.path.join(self.root, "new", "below"))
        for seed in range(10):
            expected = list(change(os.walk(self.root), random.Random(seed)))
            self.assertEqual(list(change(ff.walk(self.root), random.Random(seed))), expected)
            self.assertIn(os.path.join(self.root, "new"), [path for path, _, _ in expected])

    def test_directories_are_read_when_they_are_reached(self):
        root = os.path.join(self.temp, "late")
        os.makedirs(os.path.join(root, "a", "b"))
        walked = ff.walk(root, threads=0)
        self.assertEqual(next(walked), (root, ["a"], []))
        Path(root, "a", "b", "file").touch()
        os.mkdir(os.path.join(root, "a", "c"))
        below = os.path.join(root, "a")
        self.assertEqual(next(walked), (below, ["b", "c"], []))
        self.assertEqual(next(walked), (os.path.join(below, "b"), [], ["file"]))

    def test_errors_go_to_onerror(self):
        errors = []
        missing = os.path.join(self.root, "missing")
        self.assertEqual(list(ff.walk(missing, onerror=errors.append)), [])
        self.assertEqual([(type(error), error.errno, error.filename) for error in errors], [(FileNotFoundError, errno.ENOENT, missing)])

        def refuse(error):
            raise error

        with self.assertRaises(NotADirectoryError):
            Path(self.root, "file").touch()
            list(ff.walk(os.path.join(self.root, "file"), onerror=refuse))

    @unittest.skipIf(os.geteuid() == 0, "root reads every directory")
    def test_an_unreadable_directory_is_left_out(self):
        shut = os.path.join(self.root, "shut")
        os.mkdir(shut, 0)
        self.addCleanup(os.chmod, shut, 0o700)
        errors, expected = [], []
        self.assertEqual(list(ff.walk(self.root, onerror=errors.append)), list(sorted_walk(self.root, onerror=expected.append)))
        self.assertEqual([error.filename for error in errors], [error.filename for error in expected])

    def test_threads_that_read_ahead_keep_the_order(self):
        for number in range(60):
            os.makedirs(os.path.join(self.root, f"x{number}", "y", "z"))
        expected = list(sorted_walk(self.root))
        for threads in (0, 1, 3, 3, 3, 16):
            self.assertEqual(list(ff.walk(self.root, threads=threads)), expected)
        # A walk that is left early ends its threads.
        for _ in range(50):
            next(ff.walk(self.root, threads=8))
        for _ in range(6000):
            if not walk_threads():
                break
            threading.Event().wait(0.01)
        self.assertEqual(walk_threads(), 0)


class Reader(TemporaryTree):
    def test_directories_are_read_from_the_top_of_the_stack(self):
        for name in ("a/b", "c/d"):
            os.makedirs(os.path.join(self.root, name))
        reader = _fathomfs.DirectoryReader(["name"], None)
        reader.push([os.fsencode(os.path.join(self.root, name)) for name in ("a", "c")])
        read = lambda: [name for batch in reader.pop() for name in batch.column("name")]
        self.assertEqual([read(), read()], [["d"], ["b"]])
        with self.assertRaisesRegex(IndexError, "no directories are left"):
            reader.pop()
        reader.push([b"/nonexistent"])
        with self.assertRaises(FileNotFoundError):
            reader.pop()
        with self.assertRaisesRegex(ValueError, "unknown column"):
            _fathomfs.DirectoryReader(["colour"], None)


if __name__ == "__main__":
    unittest.main()
