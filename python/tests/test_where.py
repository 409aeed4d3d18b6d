"""Conditions of lists, against the same conditions on the rows of a whole list."""

import os
import random
import shutil
import subprocess
import sys
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path

import fathomfs as ff
from fathomfs._where import TYPES
from test_fathomfs import TemporaryTree, grow

COLUMNS = ["path_raw", "type", "size", "mtime", "atime", "ctime"]


def rows(root, columns=COLUMNS, **options):
    with ff.list(root, columns=columns, **options) as entries:
        found = [row for batch in entries for row in zip(*map(batch.column, columns))]
        assert entries.complete, entries.errors
    return sorted(found)


def matches(where, row):
    """Whether a row meets the conditions, decided in Python."""
    prefix, types, ranges = where.conditions()
    values = dict(zip(COLUMNS, row))
    inside = all(
        (low is None or values[name] >= low) and (high is None or values[name] <= high) for name, low, high in ranges
    )
    return (prefix is None or row[0].startswith(prefix)) and (types is None or values["type"] in types) and inside


def random_where(pick, all_rows):
    """Random conditions, most of which some row meets."""
    row = dict(zip(COLUMNS, pick.choice(all_rows)))
    path = row["path_raw"]
    time = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=row["mtime"])
    choices = {
        "path_prefix": [path, path[: pick.randrange(len(path) + 1)], path + b"/", path + b"x", b"/", b""],
        "size_min": [row["size"], row["size"] + 1, 0],
        "size_max": [row["size"], row["size"] - 1, 1 << 70],
        "mtime_min": [time, time + timedelta(microseconds=1), 0],
        "mtime_max": [time, time - timedelta(microseconds=1), time.replace(tzinfo=None) + timedelta(days=2)],
        "atime_min": [row["atime"] // 1_000_000],
        "ctime_max": [row["ctime"] // 1_000_000 + 1, 0.5],
        "types": [{row["type"]}, {"directory"}, ["regular", "symlink"], (), set(TYPES)],
    }
    names = pick.sample(sorted(choices), pick.randrange(4))
    return ff.Where(**{name: pick.choice(choices[name]) for name in names})


class Filters(TemporaryTree):
    def test_random_conditions_leave_the_rows_that_meet_them(self):
        grow(self.root, 21, 500)
        for path, _ in rows(self.root, ["path_raw", "type"], where=ff.Where(types={"directory"})):
            # A later time than that of the last change is left as it is when the directory is read.
            os.utime(path, (4_000_000_000, 1_600_000_000.5))
        os.utime(self.root, (4_000_000_000, 4_000_000_000))
        all_rows = rows(self.root)
        pick = random.Random(21)
        kept = 0
        for _ in range(400):
            where = random_where(pick, all_rows)
            expected = [row for row in all_rows if matches(where, row)]
            self.assertEqual(rows(self.root, where=where), expected, where)
            self.assertEqual(rows(self.root, ["path_raw"], where=where), [row[:1] for row in expected], where)
            kept += len(expected)
        self.assertGreater(kept, 1000)

    def test_the_root_may_end_with_a_slash_and_may_be_a_file(self):
        os.makedirs(os.path.join(self.root, "a/b"))
        file = os.path.join(self.root, "file")
        Path(file).write_bytes(b"12")
        below = ff.Where(path_prefix=f"{self.root}/a")
        expected = [(os.fsencode(f"{self.root}/{name}"),) for name in ("a", "a/b")]
        for root in (self.root, self.root + "/"):
            self.assertEqual(rows(root, ["path_raw"], where=below), expected)
        self.assertEqual(rows(file, ["path_raw"], where=below), [])
        self.assertEqual(rows(file, ["size"], where=ff.Where(size_max=2, types={"regular"})), [(2,)])
        self.assertEqual(rows(file, ["size"], where=ff.Where(size_max=1)), [])
        self.assertEqual(rows(self.root, ["size"], where=ff.Where(path_prefix=self.root + "x")), [])

    def test_times_are_rounded_to_microseconds_as_columns_are(self):
        file = os.path.join(self.root, "file")
        Path(file).touch()
        os.utime(file, ns=(0, 1_500_000_000_123_456_789))
        time = datetime(2017, 7, 14, 2, 40, 0, 123_456, tzinfo=timezone.utc)
        for where in (ff.Where(mtime_min=time, mtime_max=time), ff.Where(mtime_max=time.timestamp())):
            self.assertEqual(len(rows(self.root, ["path_raw"], where=where)), 1)
        self.assertEqual(rows(self.root, ["path_raw"], where=ff.Where(mtime_min=1_500_000_001)), [])

    def test_equal_conditions_are_equal(self):
        one, other = ff.Where(types=["fifo", "regular"], size_min=1), ff.Where(types={"regular", "fifo"}, size_min=1)
        self.assertEqual((one, hash(one)), (other, hash(other)))

    def test_wrong_conditions_are_errors(self):
        with self.assertRaisesRegex(ValueError, "unknown type 'pipe': the types are regular, "):
            ff.Where(types={"pipe"})
        with self.assertRaisesRegex(TypeError, "a set of names"):
            ff.Where(types="regular")
        with self.assertRaises(TypeError):
            ff.Where(path_prefix=7)
        with self.assertRaises(ValueError):
            ff.Where(mtime_min=float("nan"))


class Calls(TemporaryTree):
    """The system calls that a walk makes for a condition."""

    def calls(self, names, program):
        if not shutil.which("strace"):
            self.skipTest("needs strace")
        trace = os.path.join(self.temp, "trace")
        command = ["strace", "-f", "-e", f"trace={names}", "-o", trace, sys.executable, "-c", program]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        return int(out), Path(trace).read_text().splitlines()

    def program(self, where, columns):
        listed = f"ff.list({self.root!r}, columns={columns!r}, where=ff.Where({where}))"
        return f"import fathomfs as ff; print(sum(map(len, {listed})))"

    def test_directories_outside_the_prefix_are_not_entered(self):
        for name in ("wanted/deep", "unwanted/deeper", "want"):
            os.makedirs(os.path.join(self.root, name))
        prefix = f"path_prefix={self.root + '/wanted/'!r}"
        count, lines = self.calls("openat", self.program(prefix, ["path"]))
        self.assertEqual(count, 1)
        self.assertTrue([line for line in lines if '"wanted"' in line])
        self.assertEqual([line for line in lines if "unwanted" in line or '"want"' in line], [])

    def test_only_entries_that_may_be_rows_have_their_metadata_read(self):
        for name in ("one-file", "two-file"):
            Path(self.root, name).touch()
        os.makedirs(os.path.join(self.root, "one-dir"))
        stats = "statx,newfstatat,lstat,stat"
        read = lambda lines: [line for line in lines if "-file" in line or "one-dir" in line]
        count, lines = self.calls(stats, self.program("types={'regular'}", ["path"]))
        self.assertEqual((count, read(lines)), (2, []))
        where = f"types={{'regular'}}, path_prefix={self.root + '/one-'!r}, size_max=0"
        count, lines = self.calls(stats, self.program(where, ["path"]))
        self.assertEqual((count, len(read(lines))), (1, 1))
        self.assertIn("one-file", read(lines)[0])


if __name__ == "__main__":
    unittest.main()
