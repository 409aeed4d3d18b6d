"""LazyFrames of trees, against Polars' own filters on all rows."""

import os
import random
import types
import unittest
import warnings
from datetime import datetime, timedelta, timezone
from unittest import mock

import fathomfs as ff
from fathomfs import _fathomfs
from test_fathomfs import TemporaryTree, expected_rows, grow

try:
    import polars as pl

    from fathomfs import polars as ffp
except ImportError:
    raise unittest.SkipTest("needs polars")

UTC = timezone.utc
COLUMNS = ["path", "path_raw", "type", "size", "mtime", "ctime", "mode", "uid", "depth"]


def random_predicate(pick, row, depth=2):
    """A random expression, of forms that can be pushed and of others."""
    col = pl.col
    if depth and pick.randrange(2):
        one, other = random_predicate(pick, row, depth - 1), random_predicate(pick, row, depth - 1)
        return pick.choice([one & other, one & other, one | other, ~one])
    path, size, mtime = row["path"], row["size"], row["mtime"]
    comparison = pick.choice(["__gt__", "__ge__", "__lt__", "__le__", "__eq__", "__ne__"])
    return pick.choice(
        [
            lambda: getattr(col("size"), comparison)(size),
            lambda: getattr(pl.lit(size), comparison)(col("size")),
            lambda: getattr(col("size"), comparison)(size + 0.5),
            lambda: getattr(col("mtime"), comparison)(mtime),
            lambda: getattr(col("ctime"), comparison)(row["ctime"] + timedelta(microseconds=pick.randrange(-1, 2))),
            lambda: getattr(col("type"), comparison)(row["type"]),
            lambda: getattr(col("path"), comparison)(path),
            lambda: getattr(col("mtime").dt.cast_time_unit("ns"), comparison)(mtime),
            lambda: col("path").str.starts_with(path[: pick.randrange(len(path) + 1)]),
            lambda: col("path").str.ends_with(path[-2:]),
            lambda: col("type").is_in([row["type"], "regular", "no type"]),
            lambda: col("size").is_between(0, size, closed=pick.choice(["both", "left", "right", "none"])),
            lambda: col("mtime").is_between(mtime - timedelta(days=1), mtime),
            lambda: col("size") > col("mode"),
            lambda: col("uid") == 0,
            lambda: col("depth") == row["depth"],
        ]
    )()


class ScanTree(TemporaryTree):
    def setUp(self):
        super().setUp()
        grow(self.root, 41, 400)
        self.tree = ffp.scan_tree(self.root)
        self.all = self.tree.select(COLUMNS).collect()

    def test_the_schema_is_that_of_the_list(self):
        frame = pl.DataFrame(ff.list(self.root, columns=[*ffp.SCHEMA]))
        self.assertEqual(dict(frame.schema), ffp.SCHEMA)
        self.assertEqual(self.tree.collect_schema(), frame.schema)
        self.assertEqual(self.tree.collect().columns, frame.columns)
        self.assertEqual(sorted(self.all["path_raw"].to_list()), sorted(expected_rows(self.root)))

    def test_random_predicates_leave_what_polars_leaves(self):
        pick = random.Random(41)
        pushed = 0
        for turn in range(200):
            predicate = random_predicate(pick, pick.choice(self.all.rows(named=True)))
            expected = self.all.filter(predicate).sort("path_raw")
            engine = "streaming" if turn % 4 == 0 else "auto"
            found = self.tree.select(COLUMNS).filter(predicate).collect(engine=engine).sort("path_raw")
            self.assertTrue(found.equals(expected), predicate)
            found = self.tree.filter(predicate).select("path_raw").collect().sort("path_raw")
            self.assertTrue(found.equals(expected.select("path_raw")), predicate)
            where, is_exact = ffp.where_of(predicate)
            pushed += where != ff.Where()
            if is_exact:
                with ff.list(self.root, columns=["path_raw"], where=where) as entries:
                    paths = sorted(path for batch in entries for path in batch.column("path_raw"))
                self.assertEqual(paths, expected["path_raw"].to_list(), predicate)
        self.assertGreater(pushed, 50)

    def test_conditions_are_added_to_those_of_the_caller(self):
        where = ff.Where(path_prefix=self.root + "/", size_min=2, mtime_max=4_000_000_000, types={"regular", "symlink"})
        found = ffp.where_of(
            (pl.col("size") >= 1)
            & (pl.col("size") < 100)
            & (pl.col("type") != "symlink")
            & pl.col("path").str.starts_with(self.root)
            & (pl.col("mtime") <= datetime(2000, 1, 1, tzinfo=UTC)),
            where,
        )
        expected = ff.Where(
            path_prefix=self.root + "/",
            size_min=2,
            size_max=99,
            mtime_max=datetime(2000, 1, 1, tzinfo=UTC),
            types=frozenset({"regular"}),
        )
        self.assertEqual((found[0].conditions(), found[1]), (expected.conditions(), True))
        tree = ffp.scan_tree(self.root, where=ff.Where(types={"regular"}))
        found = tree.filter(pl.col("size") > 0).select("path_raw").collect()["path_raw"].to_list()
        expected = self.all.filter(pl.col("size") > 0, pl.col("type") == "regular")["path_raw"].to_list()
        self.assertEqual(sorted(found), sorted(expected))

    def test_conditions_that_cannot_be_pushed_are_not(self):
        for predicate in (
            pl.col("uid") == 0,
            pl.col("size") > pl.col("mode"),
            pl.col("path").map_elements(len, return_dtype=pl.Int64) > 3,
            pl.lit(True),
            pl.col("size") > pl.len(),
            pl.col("size") > pl.lit(None, pl.Int64),
            pl.col("mtime") > pl.lit(datetime(2020, 1, 1, tzinfo=UTC)).dt.cast_time_unit("ns"),
        ):
            self.assertEqual(ffp.where_of(predicate), (ff.Where(), False), predicate)
        where, is_exact = ffp.where_of(pl.col("path").str.starts_with("a\N{REPLACEMENT CHARACTER}b"))
        self.assertEqual((where.conditions()[0], is_exact), (b"a", False))

    def test_only_the_columns_of_the_query_are_read(self):
        read = []

        def record(path, columns, *options):
            read.append(columns)
            return _fathomfs.list(path, columns, *options)

        patch = mock.patch.object(ffp, "_fathomfs", types.SimpleNamespace(list=record))
        patch.start()
        self.addCleanup(patch.stop)
        self.tree.select("path").collect()
        self.tree.select(pl.len()).collect()
        self.tree.filter(pl.col("type") == "regular").select("name").collect()
        self.tree.filter(pl.col("uid") == 0).select("name").collect()
        self.assertEqual([read[0], *read[2:]], [["path"], ["name", "type"], ["name", "uid"]])
        self.assertLessEqual(set(read[1]), {"path", "path_raw", "name", "name_raw", "type", "depth"})

    def test_head_ends_the_walk_and_counts_before_a_later_filter(self):
        for engine in ("auto", "streaming"):
            self.assertEqual(self.tree.head(7).collect(engine=engine).height, 7)
            self.assertEqual(self.tree.head(0).collect(engine=engine).height, 0)
            large = self.tree.filter(pl.col("size") > 0).head(3).collect(engine=engine)
            self.assertEqual((large.height, large["size"].min() > 0), (3, True))
            # Of seven entries, those below another path are none.
            self.assertEqual(self.tree.head(7).filter(pl.col("path") == "none").collect(engine=engine).height, 0)
            few = self.tree.head(1).filter(pl.col("type").is_in(["regular", "directory", "symlink", "fifo"]))
            self.assertLessEqual(few.collect(engine=engine).height, 1)

    def test_head_takes_no_more_batches_than_it_needs(self):
        wide = os.path.join(self.temp, "wide")
        os.mkdir(wide)
        for number in range(4000):
            os.symlink("x", os.path.join(wide, str(number)))
        taken = []

        class Counted:
            """A stream that records the length of each batch that is taken, and its end."""

            def __init__(self, stream):
                self.stream = stream

            def __getattr__(self, name):
                return getattr(self.stream, name)

            def __enter__(self):
                return self

            def __exit__(self, *exception):
                self.stream.close()

            def close(self):
                taken.append("closed")
                self.stream.close()

            def __iter__(self):
                for batch in self.stream:
                    taken.append(len(batch))
                    yield batch

        module = types.SimpleNamespace(list=lambda *options: Counted(_fathomfs.list(*options)))
        with mock.patch.object(ffp, "_fathomfs", module):
            tree = ffp.scan_tree(wide, threads=1)
            self.assertEqual(tree.select("path").collect().height, 4000)
            self.assertGreater(len(taken), 3)
            del taken[:]
            self.assertEqual(tree.head(7).select("path").collect().height, 7)
        self.assertEqual((len(taken), taken[-1]), (2, "closed"))
        self.assertGreaterEqual(taken[0], 7)

    def test_an_empty_tree_has_no_rows(self):
        empty = os.path.join(self.temp, "empty")
        os.mkdir(empty)
        frame = ffp.scan_tree(empty).select("path", "size").collect()
        self.assertEqual((frame.height, frame.columns), (0, ["path", "size"]))
        self.assertEqual(ffp.scan_tree(empty).select(pl.len()).collect().item(), 0)
        self.assertEqual(ffp.scan_tree(empty).filter(pl.col("size") > 3).collect().height, 0)

    def test_missing_rows_are_a_warning_or_an_error(self):
        missing = os.path.join(self.root, "missing")
        with self.assertWarnsRegex(ffp.IncompleteWarning, "cannot access '.*missing': No such file"):
            ffp.scan_tree(missing).collect()
        with self.assertRaisesRegex(Exception, "cannot access '.*missing': No such file"):
            ffp.scan_tree(missing, strict=True).collect()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.tree.collect()

    def test_a_list_is_a_lazy_frame_once(self):
        frame = ff.list(self.root, columns=["path_raw", "size"]).lazy()
        found = frame.filter(pl.col("size") > 0).select("path_raw").collect()["path_raw"].to_list()
        self.assertEqual(sorted(found), sorted(self.all.filter(pl.col("size") > 0)["path_raw"].to_list()))
        with self.assertRaisesRegex(Exception, "already taken"):
            frame.collect()


if __name__ == "__main__":
    unittest.main()
