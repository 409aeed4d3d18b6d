"""Our filesystem against fsspec's own, on random trees."""

import os
import random
import tempfile
import unittest
from pathlib import Path

from test_fathomfs import TemporaryTree, grow

try:
    import fsspec
    from fsspec.implementations.local import LocalFileSystem as Reference

    from fathomfs.fsspec import LocalFileSystem
except ImportError:
    raise unittest.SkipTest("needs fsspec")


def outcome(function):
    """The result, or the exception."""
    try:
        return function()
    except Exception as error:
        return type(error), getattr(error, "errno", None), getattr(error, "filename", None), str(error)


def add_links(root, pick, dirs):
    """Adds links to files, to directories, to nothing and to themselves."""
    for number, target in enumerate(["/etc/passwd", root, "missing", f"link{3}", ".", "link0", "/proc/1/mem"]):
        os.symlink(target, os.path.join(pick.choice(dirs), f"link{number}"))


def make_tree(root, seed):
    """A random tree with links; some directories are closed in different ways."""
    pick = random.Random(seed)
    grow(root, seed, 150)
    dirs = [path for path, _, _ in os.walk(root)]
    add_links(root, pick, dirs)
    modes = [0o700] * 6 + [0o000, 0o400, 0o100]
    for path in sorted(dirs[1:], key=len, reverse=True):
        os.chmod(path, pick.choice(modes))


def open_again(root):
    """Lets the tree be removed."""
    os.chmod(root, 0o700)
    for entry in os.scandir(root):
        if entry.is_dir(follow_symlinks=False):
            open_again(entry.path)


class Same(TemporaryTree):
    def setUp(self):
        super().setUp()
        self.addCleanup(open_again, self.temp)
        self.ours, self.reference = LocalFileSystem(), Reference()
        self.roots = []
        for seed in range(6):
            root = os.path.join(self.root, str(seed))
            os.mkdir(root)
            make_tree(root, seed)
            self.roots.append(root)

    def both(self, call, *arguments, **options):
        """Calls a method of both filesystems and returns what ours gives, which must be the same."""
        results = [
            outcome(lambda: list(found) if hasattr(found := getattr(fs, call)(*arguments, **options), "send") else found)
            for fs in (self.reference, self.ours)
        ]
        self.assertEqual(results[1], results[0], (call, arguments, options))
        if isinstance(results[0], dict):
            self.assertEqual(list(results[1]), list(results[0]))
        return results[1]

    def tops(self):
        """Roots, and other things that a path may name."""
        found = [*self.roots, self.roots[0] + "/", f"file://{self.roots[1]}", os.path.relpath(self.roots[2])]
        for name in ("missing", "file", "fifo", "to-file", "to-dir", "dangling"):
            found.append(os.path.join(self.temp, name))
        Path(self.temp, "file").write_bytes(b"123")
        os.mkfifo(os.path.join(self.temp, "fifo"))
        for name, target in (("to-file", "file"), ("to-dir", self.roots[3]), ("dangling", "nothing")):
            os.symlink(target, os.path.join(self.temp, name))
        os.mkdir(os.path.join(self.temp, "shut"), 0)
        os.mkdir(os.path.join(self.temp, "shut-file"), 0o600)
        return [*found, os.path.join(self.temp, "shut"), os.path.join(self.temp, "shut-file")]

    def test_find(self):
        rows = 0
        for top in self.tops():
            for maxdepth in (None, 1, 2, 3, 0):
                for withdirs in (False, True):
                    for detail in (False, True):
                        options = {"maxdepth": maxdepth, "withdirs": withdirs, "detail": detail}
                        rows += len(self.both("find", top, **options))
            self.both("find", top, on_error="raise")
            self.both("find", top, topdown=False, detail=True)
        self.assertGreater(rows, 1000)

    def test_du(self):
        for top in self.tops():
            for maxdepth in (None, 1, 2, 0):
                for withdirs in (False, True):
                    for total in (False, True):
                        self.both("du", top, total=total, maxdepth=maxdepth, withdirs=withdirs)

    def test_du_of_a_tree_whose_links_have_targets(self):
        for root in self.roots:
            for parent, dirs, files in os.walk(root):
                for name in dirs + files:
                    path = os.path.join(parent, name)
                    if os.path.islink(path) and not os.path.exists(path):
                        os.remove(path)
            self.assertGreater(self.both("du", root), 0)
            for options in ({"withdirs": True}, {"total": False}, {"total": False, "withdirs": True}, {"maxdepth": 1}):
                self.both("du", root, **options)

    def test_walk(self):
        triples = 0
        for top in self.tops():
            for maxdepth in (None, 1, 2, 0):
                for topdown in (True, False):
                    for detail in (False, True):
                        options = {"maxdepth": maxdepth, "topdown": topdown, "detail": detail}
                        triples += len(self.both("walk", top, **options))
        self.assertGreater(triples, 500)

    def test_walk_can_be_pruned_and_reordered(self):
        def changed(fs, seed, detail):
            pick = random.Random(seed)
            for path, dirs, files in fs.walk(self.roots[seed], detail=detail):
                for name in [name for name in dirs if not pick.randrange(3)]:
                    del dirs[name if detail else dirs.index(name)]
                if not detail:
                    pick.shuffle(dirs)
                yield path, dict(dirs) if detail else list(dirs), files

        for seed in range(len(self.roots)):
            for detail in (False, True):
                expected = list(changed(self.reference, seed, detail))
                self.assertEqual(list(changed(self.ours, seed, detail)), expected)
        for fs in (self.reference, self.ours):
            with self.assertRaises(KeyError):
                for _, dirs, _ in fs.walk(self.roots[0]):
                    dirs.append("added")

    def test_errors_of_walk(self):
        for top in self.tops():
            self.both("walk", top, on_error="raise")
            seen = []
            for fs in (self.reference, self.ours):
                errors = []
                walked = list(fs.walk(top, on_error=errors.append))
                seen.append((walked, [(type(error), error.errno, error.filename) for error in errors]))
            self.assertEqual(seen[1], seen[0], top)

    def test_ls_and_info(self):
        for top in [*self.tops(), *(path for root in self.roots for path, _, _ in os.walk(root))]:
            for detail in (False, True):
                self.both("ls", top, detail=detail)
            self.both("info", top)
            self.both("exists", top)

    def test_glob(self):
        rows = 0
        for root in self.roots:
            for pattern in ("*", "**", "*/", "**/", "*/*", "**/*-*", "1*", "*[0-4]-*", "?-", "*/?*-/**", "missing*", "a"):
                for options in ({}, {"maxdepth": 1}, {"maxdepth": 2, "detail": True}, {"withdirs": False}):
                    rows += len(self.both("glob", f"{root}/{pattern}", **options))
        self.assertGreater(rows, 1000)
        self.both("glob", f"{self.root}/*/1*/**")
        self.both("expand_path", f"{self.root}/0*", recursive=True)

    def test_other_methods_are_fsspecs_own(self):
        path = os.path.join(self.temp, "new", "file")
        fs = LocalFileSystem(auto_mkdir=True)
        with fs.open(path, "wb") as file:
            file.write(b"abc")
        self.assertEqual(fs.cat(path), b"abc")
        self.assertEqual(fs.sizes([path]), [3])
        self.assertEqual(fs.find(os.path.dirname(path)), [path])


class Dask(TemporaryTree):
    """Dask's readers, for which the filesystem finds the files."""

    def setUp(self):
        super().setUp()
        fsspec.register_implementation("file", LocalFileSystem, clobber=True)
        self.addCleanup(fsspec.register_implementation, "file", Reference, clobber=True)

    def test_read_text(self):
        try:
            import dask.bag
        except ImportError:
            self.skipTest("needs dask")
        for number in range(5):
            path = Path(self.root, f"part={number}", "lines.txt")
            path.parent.mkdir()
            path.write_text(f"{number}\n")
        bag = dask.bag.read_text(f"file://{self.root}/*/*.txt", include_path=True)
        found = sorted(bag.compute(scheduler="synchronous"))
        self.assertEqual([line for line, _ in found], [f"{number}\n" for number in range(5)])

    def test_read_parquet(self):
        try:
            import dask.dataframe
            import pandas
        except ImportError:
            self.skipTest("needs dask.dataframe and pandas")
        for number in range(3):
            directory = Path(self.root, f"part={number}")
            directory.mkdir()
            pandas.DataFrame({"value": [number, number + 10]}).to_parquet(directory / "x.parquet")
        fs = LocalFileSystem()
        for paths in (f"{self.root}/*/*.parquet", self.root):
            frame = dask.dataframe.read_parquet(paths, filesystem=fs)
            self.assertEqual(sorted(frame["value"].compute(scheduler="synchronous")), [0, 1, 2, 10, 11, 12])


if __name__ == "__main__":
    unittest.main()
