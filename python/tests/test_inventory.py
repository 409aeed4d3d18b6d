"""Inventories: their rows against lists of the same tree, changes, queries, and the readers of Arrow streams."""

import gc
import os
import random
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from unittest import mock

import fathomfs as ff
from test_fathomfs import TemporaryTree, expected_rows, grow
from test_where import matches, random_where

COLUMNS = ["path_raw", "type", "size", "mtime", "atime", "ctime"]
#: Reading directories changes their atime, so the comparisons with the live tree leave it out.
STABLE = ["path_raw", "name_raw", "type", "depth", "size", "allocated", "mtime", "ctime", "btime", "mode", "nlink", "uid", "gid", "ino", "dev", "st_mtime"]


def rows(stream, columns):
    with stream:
        return [row for batch in stream for row in zip(*map(batch.column, columns))]


class Inventories(TemporaryTree):
    def scanned(self, seed, entries=300, name="x.inv"):
        grow(self.root, seed, entries)
        return ff.scan(self.root, os.path.join(self.temp, name))


class Entries(Inventories):
    def test_are_those_of_a_list_and_the_root(self):
        inventory = self.scanned(1, 500)
        found = rows(inventory.entries(columns=STABLE), STABLE)
        self.assertEqual(len(found), len(inventory))
        self.assertEqual(found[0][0], os.fsencode(self.root))
        with ff.list(self.root, columns=STABLE) as entries:
            listed = [row for batch in entries for row in zip(*map(batch.column, STABLE))]
        self.assertEqual(sorted(found[1:]), sorted(listed))

    def test_directories_come_before_their_entries(self):
        inventory, seen = self.scanned(2), set()
        for path, kind in rows(inventory.entries(columns=["path_raw", "type"]), ["path_raw", "type"]):
            self.assertTrue(path == os.fsencode(self.root) or os.path.dirname(path) in seen, path)
            if kind == "directory":
                seen.add(path)

    def test_conditions_select_the_rows_that_meet_them(self):
        inventory = self.scanned(3, 400)
        everything = rows(inventory.entries(columns=COLUMNS), COLUMNS)
        pick = random.Random(3)
        found_any = 0
        for _ in range(150):
            where = random_where(pick, everything)
            found = rows(inventory.entries(columns=COLUMNS, where=where), COLUMNS)
            self.assertEqual(found, [row for row in everything if matches(where, row)], where)
            # Fewer columns need not change the rows.
            self.assertEqual([path for (path,) in rows(inventory.entries(columns=["path_raw"], where=where), ["path_raw"])], [row[0] for row in found])
            found_any += bool(found)
        self.assertGreater(found_any, 20)

    def test_below_a_directory(self):
        inventory = self.scanned(4)
        everything = rows(inventory.entries(columns=["path_raw", "type"]), ["path_raw", "type"])
        dirs = [path for path, kind in everything if kind == "directory"]
        for top in dirs:
            expected = [path for path, _ in everything if path == top or path.startswith(top + b"/")]
            self.assertEqual([path for (path,) in rows(inventory.entries(columns=["path_raw"], below=top), ["path_raw"])], expected)
            self.assertEqual([row[0] for row in rows(inventory.dirs(columns=["name"], below=top), ["name"])].__len__(), sum(path in dirs for path in expected))
        with self.assertRaisesRegex(ff.InventoryError, "no such directory"):
            inventory.entries(below=os.path.join(self.root, "missing"))
        file = next(path for path, kind in everything if kind == "regular")
        with self.assertRaisesRegex(ff.InventoryError, "no such directory"):
            inventory.entries(below=file)

    def test_roots_that_are_files_have_a_row(self):
        path = os.path.join(self.root, "fi\udcffle")
        Path(path).write_bytes(b"123")
        os.mkdir(os.path.join(self.root, "dir"))
        inventory = ff.scan([path, os.path.join(self.root, "dir")], os.path.join(self.temp, "x.inv"))
        names = ["path_raw", "name_raw", "depth", "type"]
        expected = [(os.fsencode(path), b"fi\xffle", 0, "regular"), (os.fsencode(self.root) + b"/dir", b"dir", 0, "directory")]
        self.assertEqual(sorted(rows(inventory.entries(columns=names), names), reverse=True), expected)
        found = rows(inventory.entries(columns=names, where=ff.Where(path_prefix=path)), names)
        self.assertEqual(found, expected[:1])

    def test_only_the_columns_that_are_needed_are_read(self):
        out = self.scanned(5, 800).path

        def read(**options):
            inventory = ff.open(out)
            before = inventory._inner.bytes_read
            found = rows(inventory.entries(**options), options["columns"])
            return len(found), inventory._inner.bytes_read - before

        (all_rows, all_bytes), (_, path_bytes) = read(columns=STABLE), read(columns=["path"])
        self.assertLess(path_bytes, all_bytes * 2 / 3)
        # Rows that no condition lets pass cost the columns that are compared, about a third of all, and not the others.
        none, none_bytes = read(columns=STABLE, where=ff.Where(size_min=1 << 50, types={"regular"}))
        self.assertEqual(none, 0)
        self.assertLess(none_bytes, all_bytes / 2)
        # Without a directory that the prefix reaches, entries cost the numbers of their directories.
        none, none_bytes = read(columns=["path"], where=ff.Where(path_prefix="/nowhere"))
        self.assertEqual(none, 0)
        self.assertLess(none_bytes, path_bytes)
        (_, dirs_all), = [self.read_dirs(out, None)]
        self.assertLess(self.read_dirs(out, ["t_size"])[1], dirs_all / 5)

    def read_dirs(self, out, columns):
        inventory = ff.open(out)
        return sum(map(len, inventory.dirs(columns=columns))), inventory._inner.bytes_read

    def test_wrong_columns_are_errors(self):
        inventory = self.scanned(6, 10)
        for call in (inventory.entries, inventory.dirs, inventory.errors):
            with self.assertRaisesRegex(ValueError, "unknown column .colour.: the columns are "):
                call(columns=["colour"])
        with self.assertRaisesRegex(ValueError, "unknown column .colour.: the columns are change, path"):
            inventory.diff(inventory, columns=["colour"])

    def test_a_damaged_file_is_an_error(self):
        out = self.scanned(7).path
        path = ff.open(out).files("entries")[0]
        data = bytearray(Path(path).read_bytes())
        data[len(data) // 2] ^= 255
        Path(path).write_bytes(data)
        with self.assertRaisesRegex(ff.InventoryError, "differs from the recorded"):
            rows(ff.open(out).entries(columns=["path"]), ["path"])

    def test_a_stream_that_is_dropped_ends_its_thread(self):
        inventory = self.scanned(8, 3000)
        next(inventory.entries())
        count = lambda: len(os.listdir("/proc/self/task")) + len(os.listdir("/proc/self/fd"))
        gc.collect()
        # A leak would leave 100 of a kind. Packages of other tests may start a few threads meanwhile.
        most = count() + 50
        for _ in range(100):
            next(inventory.entries())
            inventory.dirs().close()
        gc.collect()
        for _ in range(6000):
            if count() <= most:
                break
            threading.Event().wait(0.01)
        self.assertLessEqual(count(), most)


class Tables(Inventories):
    def test_directories_have_the_sums_of_their_trees(self):
        inventory = self.scanned(9)
        columns = ["path", "path_raw", "t_files", "t_dirs", "t_other", "state"]
        found = {raw or path.encode(): values for path, raw, *values in rows(inventory.dirs(columns=columns), columns)}
        live = expected_rows(self.root)
        dirs = [os.fsencode(self.root), *(path for path, meta in live.items() if meta.st_mode & 0o170000 == 0o040000)]
        self.assertEqual(sorted(found), sorted(dirs))
        for top, (files, subdirs, others, state) in found.items():
            modes = [meta.st_mode & 0o170000 for path, meta in live.items() if path.startswith(top + b"/")]
            regular, directories = modes.count(0o100000), modes.count(0o040000)
            self.assertEqual((files, subdirs, others, state), (regular, directories, len(modes) - regular - directories, "complete"))

    def test_errors_are_rows(self):
        missing = os.path.join(self.root, "missing")
        inventory = ff.scan([self.root, missing], os.path.join(self.temp, "x.inv"))
        self.assertFalse(inventory.complete)
        self.assertEqual(rows(inventory.errors(columns=["path", "errno"]), ["path", "errno"]), [(missing, 2)])
        with inventory.entries() as entries:
            list(entries)
            self.assertIs(entries.complete, False)

    def test_arrow_readers_get_the_same_rows(self):
        inventory = self.scanned(10)
        expected = sorted(row[0] for row in rows(inventory.entries(columns=["size"]), ["size"]))
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
                self.assertEqual(sorted(read(module, inventory.entries(columns=["path", "size", "btime"]))), expected)
                if name == "pyarrow":
                    self.assertEqual(module.table(inventory.dirs()).num_rows, sum(map(len, inventory.dirs(columns=["name"]))))


class Changes(Inventories):
    def test_between_two_scans(self):
        for name in ("gone", "kept", "moved"):
            Path(self.root, name).write_bytes(name.encode() * 5000)
        os.mkdir(os.path.join(self.root, "dir"))
        old = ff.scan(self.root, os.path.join(self.temp, "a.inv"))
        os.remove(os.path.join(self.root, "gone"))
        os.rename(os.path.join(self.root, "moved"), os.path.join(self.root, "dir", "there"))
        Path(self.root, "kept").write_bytes(b"x" * 100_000)
        Path(self.root, "new\udcff").write_bytes(b"")
        new = ff.scan(self.root, os.path.join(self.temp, "b.inv"))
        columns = ["change", "path_raw", "old_path_raw", "old_size", "new_size", "new_type"]
        root = os.fsencode(self.root)
        self.assertEqual(
            sorted(rows(old.diff(new, columns=columns), columns), key=lambda row: row[1]),
            sorted(
                [
                    ("removed", root + b"/gone", None, 20_000, None, None),
                    ("renamed", root + b"/dir/there", root + b"/moved", 25_000, 25_000, "f"),
                    ("modified", root + b"/kept", None, 20_000, 100_000, "f"),
                    ("created", root + b"/new\xff", None, None, 0, "f"),
                ],
                key=lambda row: row[1],
            ),
        )
        self.assertEqual(rows(old.diff(old), columns), [])
        below = rows(old.diff(new, below=os.path.join(self.root, "dir")), ["change", "fields"])
        self.assertEqual([change for change, _ in below], ["renamed"])
        grown = old.growth(new)
        self.assertEqual(grown[0]["path"], self.root)
        self.assertEqual(grown[0]["bytes"], new.du()["bytes"] - old.du()["bytes"])
        self.assertEqual(len(old.growth(new, count=1)), 1)
        with self.assertRaisesRegex(ff.InventoryError, "no such directory"):
            rows(old.diff(new, below="missing"), ["change"])


class Queries(Inventories):
    def setUp(self):
        super().setUp()
        try:
            import duckdb
        except ImportError:
            self.skipTest("needs duckdb")
        self.duckdb = duckdb

    def test_views_have_the_entries(self):
        inventory = self.scanned(11)
        found = inventory.query("SELECT coalesce(path_raw, encode(path)), size FROM entries WHERE type != 'd'").fetchall()
        expected = rows(inventory.entries(columns=["path_raw", "size", "type"]), ["path_raw", "size", "type"])
        self.assertEqual(sorted(found), sorted((path, size) for path, size, kind in expected if kind != "directory"))
        for view in ("files", "dirs", "errors", "links", "users", "groups"):
            inventory.query(f"SELECT count(*) FROM {view}").fetchall()

    def test_can_read_only_the_inventory_and_write_nothing(self):
        inventory = self.scanned(12, 20)
        secret = os.path.join(self.temp, "secret.csv")
        Path(secret).write_text("a\n1\n")
        secret_rows = [1]
        for sql in (f"SELECT * FROM read_csv('{secret}')", f"FROM '{secret}'", "FROM secret_rows", "FROM inventory"):
            with self.assertRaises(self.duckdb.Error, msg=sql):
                inventory.query(sql).fetchall()
        for sql in (f"COPY dirs TO '{self.temp}/out.csv'", "SET threads = 1", "SELECT 1; SELECT 2", ""):
            with self.assertRaises((ValueError, self.duckdb.Error), msg=sql):
                inventory.query(sql).fetchall()
        self.assertFalse(os.path.exists(f"{self.temp}/out.csv"))

    def test_names_that_need_quotes(self):
        grow(self.root, 13, 20)
        # DuckDB would take a part of a path like the last one for a column.
        place = os.path.join(self.temp, "it's", "dir_id=5")
        os.makedirs(place)
        inventory = ff.scan(self.root, os.path.join(place, "x.inv"))
        self.assertEqual(inventory.query("SELECT count(*) FROM entries").fetchall(), [(len(inventory),)])

    def test_refuses_directories_that_duckdb_cannot_name(self):
        grow(self.root, 13, 20)
        for name, why in (("x[1].inv", "as a pattern"), ("x\udcff.inv", "is not UTF-8")):
            inventory = ff.scan(self.root, os.path.join(self.temp, name))
            with self.assertRaisesRegex(ff.InventoryError, why):
                inventory.query("SELECT 1")

    def test_says_that_duckdb_is_missing(self):
        inventory = self.scanned(14, 5)
        with mock.patch.dict(sys.modules, {"duckdb": None}):
            with self.assertRaisesRegex(ImportError, "pip install duckdb"):
                inventory.query("SELECT 1")


class Interrupts(Inventories):
    def test_control_c_ends_a_reading(self):
        program = (
            "import sys, fathomfs as ff\n"
            "inventory = ff.open(sys.argv[1])\n"
            "try:\n"
            "    print('on', flush=True)\n"
            "    while True:\n"
            "        sum(map(len, inventory.entries())), inventory.growth(inventory)\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', flush=True)\n"
        )
        out = self.scanned(15).path
        command = ["env", "--default-signal=INT", sys.executable, "-c", program, out]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            self.assertEqual(child.stdout.readline(), "on\n")
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.stdout.read(), "interrupted\n")
        self.assertEqual(child.returncode, 0)


class Polars(Inventories):
    def setUp(self):
        super().setUp()
        try:
            import polars
        except ImportError:
            self.skipTest("needs polars")
        self.pl = polars

    def test_a_lazy_frame_pushes_columns_and_conditions_down(self):
        from fathomfs.polars import SCHEMA, scan_inventory

        pl, inventory = self.pl, self.scanned(16, 500)
        whole = scan_inventory(inventory).collect()
        self.assertEqual((whole.columns, len(whole)), ([*SCHEMA], len(inventory)))
        for predicate in (
            pl.col("size") > 4000,
            (pl.col("type") == "regular") & pl.col("size").is_between(1, 4096),
            pl.col("path").str.starts_with(self.root + "/1"),
            (pl.col("mode") % 7 == 1) | (pl.col("size") == 0),
        ):
            expected = whole.filter(predicate).select("path_raw", "size")
            found = scan_inventory(inventory.path).filter(predicate).select("path_raw", "size").collect()
            self.assertTrue(found.equals(expected), str(predicate))
        self.assertTrue(scan_inventory(inventory).head(7).collect().equals(whole.head(7)))
        self.assertTrue(scan_inventory(inventory, where=ff.Where(types={"fifo"})).collect().equals(whole.filter(pl.col("type") == "fifo")))

        def cost(query):
            opened = ff.open(inventory.path)
            query(scan_inventory(opened)).collect()
            return opened._inner.bytes_read

        everything = cost(lambda frame: frame)
        self.assertLess(cost(lambda frame: frame.select("path")), everything * 2 / 3)
        self.assertLess(cost(lambda frame: frame.filter(pl.col("size") > 1 << 50, pl.col("type") == "regular")), everything / 3)


class Fsspec(Inventories):
    def setUp(self):
        super().setUp()
        try:
            import fsspec
        except ImportError:
            self.skipTest("needs fsspec")
        from fsspec.implementations.local import LocalFileSystem

        self.fsspec, self.local = fsspec, LocalFileSystem()

    def outcome(self, function):
        try:
            return function()
        except Exception as error:
            return type(error)

    def stable(self, info):
        """The facts that do not depend on the targets of links."""
        left_out = {"destination"} | ({"size"} if info.get("islink") else set())
        return {key: value for key, value in info.items() if key not in left_out}

    def test_answers_as_the_live_tree(self):
        for seed in range(4):
            root = os.path.join(self.root, str(seed))
            os.mkdir(root)
            grow(root, seed, 120)
            fs = self.fsspec_of(ff.scan(root, os.path.join(self.temp, f"{seed}.inv")))
            paths = [root, *map(os.fsdecode, expected_rows(root)), root + "/missing"]
            # fsspec's walk calls ls, whose order is that of the directory.
            sort = lambda triples: {path: (sorted(dirs), sorted(files)) for path, dirs, files in triples}
            for path in paths:
                self.assertEqual((fs.exists(path), fs.isfile(path)), (os.path.lexists(path), os.path.isfile(path) and not os.path.islink(path)), path)
                if os.path.islink(path):
                    continue
                for name in ("isdir", "exists"):
                    self.assertEqual(getattr(fs, name)(path), getattr(self.local, name)(path), (name, path))
                info = lambda fs: self.stable(fs.info(path))
                self.assertEqual(self.outcome(lambda: info(fs)), self.outcome(lambda: info(self.local)), path)
                for options in ({}, {"maxdepth": 2}, {"withdirs": True}):
                    self.assertEqual(fs.find(path, **options), self.local.find(path, **options), (path, options))
                ls = lambda fs: sorted(fs.ls(path, detail=False))
                self.assertEqual(self.outcome(lambda: ls(fs)), self.outcome(lambda: ls(self.local)), path)
                for options in ({}, {"maxdepth": 1}, {"topdown": False}):
                    self.assertEqual(sort(fs.walk(path, **options)), sort(self.local.walk(path, **options)), (path, options))
            for pattern in ("*", "**", "*/*a*", "[0-4]*", "**/*b"):
                self.assertEqual(sorted(fs.glob(f"{root}/{pattern}")), sorted(self.local.glob(f"{root}/{pattern}")), pattern)
            files = {path: os.lstat(path).st_size for path in fs.find(root)}
            self.assertEqual((fs.du(root), fs.du(root, total=False)), (sum(files.values()), files))

    def fsspec_of(self, inventory):
        from fathomfs.fsspec import InventoryFileSystem

        return InventoryFileSystem(inventory)

    def test_reads_unchanged_files_and_writes_nothing(self):
        path, other = os.path.join(self.root, "a"), os.path.join(self.root, "b")
        Path(path).write_bytes(b"one")
        Path(other).write_bytes(b"two")
        fs = self.fsspec_of(ff.scan(self.root, os.path.join(self.temp, "x.inv")))
        self.assertEqual(fs.cat_file(path), b"one")
        Path(path).write_bytes(b"longer")
        os.remove(other)
        with self.assertRaisesRegex(OSError, "has changed since the inventory was made"):
            fs.open(path)
        with self.assertRaises(FileNotFoundError):
            fs.open(other)
        self.assertTrue(fs.isfile(other))
        with self.assertRaisesRegex(OSError, "read-only"):
            fs.open(path, "wb")
        self.assertAlmostEqual(fs.modified(other).timestamp(), fs.info(other)["mtime"], places=5)


if __name__ == "__main__":
    unittest.main()
