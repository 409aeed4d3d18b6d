"""Values, streams and errors as Python has them: equal, hashed, pickled, shared by threads, and after a fork."""

import errno
import os
import pickle
import queue
import threading
import unittest

import fathomfs as ff
from test_fathomfs import TemporaryTree, grow

COLUMNS = ["path", "path_raw", "type", "depth", "d_ino", "size", "allocated", "mtime", "btime", "st_mtime", "mode"]


def copied(value):
    return pickle.loads(pickle.dumps(value))


class Values(TemporaryTree):
    def test_usage_problems_and_progress_compare_hash_and_pickle(self):
        grow(self.root, 21, 50)
        seen = []
        usage = ff.du(self.root, progress=seen.append)
        missing = ff.du(os.path.join(self.root, "missing"))
        problem = missing.errors[0]
        for value, other in ((usage, missing), (problem, ff.du(os.fsencode(self.root) + b"/\xff").errors[0])):
            self.assertEqual(copied(value), value)
            self.assertEqual(hash(copied(value)), hash(value))
            self.assertNotEqual(value, other)
        self.assertEqual(ff.du(self.root), usage)
        self.assertTrue(all(copied(progress) == progress for progress in seen) and seen)
        self.assertRegex(repr(usage), r"^Usage\(bytes=\d+, apparent=\d+, files=\d+, dirs=\d+, error_count=0, complete=True\)$")
        self.assertIn("cannot access", str(problem))
        self.assertEqual((problem.path, problem.errno), (os.path.join(self.root, "missing"), errno.ENOENT))

    def test_batches_compare_and_pickle_with_every_type(self):
        grow(self.root, 22, 50)
        batch = next(ff.list(self.root, columns=COLUMNS))
        again = copied(batch)
        self.assertEqual(again, batch)
        for name in COLUMNS:
            self.assertEqual(again.column(name), batch.column(name), name)
        other = next(ff.list(self.root, columns=["path"]))
        self.assertNotEqual(batch, other)
        self.assertRaises(TypeError, hash, batch)
        self.assertEqual(repr(other), f"<EntryBatch: {len(other)} rows, columns path>")
        self.assertEqual(repr(ff.list(self.root, columns=["path", "size"])), "<EntryStream: columns path, size>")
        self.assertRaises(ValueError, ff.EntryBatch, [("a", "no type", False, [])], 0)
        self.assertRaises(ValueError, ff.EntryBatch, [("a", "int64", False, [1])], 2)

    def test_no_columns_keep_the_number_of_rows(self):
        grow(self.root, 23, 700)
        expected = sum(map(len, ff.list(self.root)))
        self.assertEqual(sum(map(len, ff.list(self.root, columns=[]))), expected)
        [batch, *_] = ff.list(self.root, columns=[])
        self.assertEqual((len(copied(batch)), copied(batch)), (len(batch), batch))
        inventory = ff.scan(self.root, os.path.join(self.temp, "x.inv"))
        self.assertEqual(sum(map(len, inventory.entries(columns=[]))), expected + 1)
        try:
            import pyarrow
        except ImportError:
            return
        self.assertEqual(pyarrow.table(ff.list(self.root, columns=[])).num_rows, expected)

    def test_inventories_compare_hash_and_pickle(self):
        grow(self.root, 24, 50)
        one, other = (ff.scan(self.root, os.path.join(self.temp, name)) for name in ("one.inv", "other.inv"))
        self.assertEqual((copied(one), hash(copied(one))), (one, hash(one)))
        self.assertEqual(copied(one).top(by="type"), one.top(by="type"))
        self.assertNotEqual(one, other)
        self.assertNotEqual(one, one.path)
        before, pickled = hash(one), pickle.dumps(one)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.temp)
        relative = ff.open("one.inv")
        os.chdir("/")
        self.assertEqual((hash(one), pickle.loads(pickled), copied(relative)), (before, relative, one))

    def test_errors_are_those_of_their_errno(self):
        missing = os.path.join(self.root, "missing")
        for call in (lambda: ff.open(missing), lambda: ff.du(missing, strict=True)):
            with self.assertRaises(FileNotFoundError) as caught:
                call()
            error = caught.exception
            self.assertIsInstance(error, ff.FathomError)
            again = copied(error)
            facts = lambda one: (type(one), one.args, one.errno, one.filename, one.operation, str(one))
            self.assertEqual(facts(again), facts(error))
        with self.assertRaises(FileExistsError) as caught:
            ff.scan(self.root, self.root)
        self.assertIsInstance(caught.exception, ff.InventoryError)
        named = ff.FathomError(errno.EACCES, "Permission denied", operation="open")
        self.assertEqual((type(named).__mro__[2], named.operation), (PermissionError, "open"))
        plain = ff.FathomError(0, "words")
        self.assertEqual((type(plain), str(plain)), (ff.FathomError, "words"))
        self.assertEqual(type(copied(plain)), ff.FathomError)

    def test_wrong_types_name_their_argument(self):
        inventory = ff.scan(self.root, os.path.join(self.temp, "x.inv"))
        for argument, call in (
            ("path", lambda: ff.du(3)),
            ("path", lambda: ff.list(None)),
            ("path", lambda: ff.open(3.5)),
            ("roots", lambda: ff.scan([3], "x")),
            ("roots", lambda: ff.scan(3, "x")),
            ("size_min", lambda: ff.Where(size_min="3")),
            ("mtime_max", lambda: ff.Where(mtime_max="today")),
            ("path_prefix", lambda: ff.Where(path_prefix=3)),
            ("new", lambda: inventory.diff(inventory.path)),
            ("host", lambda: ff.serve(self.root, host=3)),
            ("path", lambda: ff.bench.advise(3)),
            ("out", lambda: ff.scan(self.root, 3)),
            ("since", lambda: ff.scan(self.root, "x", since=3)),
            ("below", lambda: inventory.top(below=3)),
            ("exclude", lambda: ff.du(self.root, exclude=3)),
            ("exclude", lambda: ff.du(self.root, exclude=[3])),
            ("columns", lambda: ff.list(self.root, columns=3)),
            ("columns", lambda: inventory.entries(columns=[3])),
            ("where", lambda: ff.list(self.root, where="size > 3")),
            ("where", lambda: inventory.entries(where=3)),
            ("threads", lambda: ff.du(self.root, threads="3")),
            ("rate", lambda: ff.scan(self.root, "x", rate="3")),
            ("progress", lambda: ff.du(self.root, progress=True)),
            ("progress", lambda: ff.scan(self.root, "x", progress=3)),
            ("io", lambda: ff.du(self.root, io=3)),
            ("max_depth", lambda: ff.list(self.root, max_depth="3")),
            ("options", lambda: ff.serve(self.root, options=3)),
            ("directory", lambda: ff.serve(3)),
        ):
            with self.subTest(argument):
                self.assertRaisesRegex(TypeError, rf"\b{argument}\b", call)


class Streams(TemporaryTree):
    def test_two_threads_have_all_batches_of_a_stream(self):
        grow(self.root, 25, 3000)
        expected = sum(map(len, ff.list(self.root)))
        for _ in range(20):
            stream, found = ff.list(self.root), queue.SimpleQueue()
            threads = [threading.Thread(target=lambda: found.put(sum(map(len, stream)))) for _ in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            self.assertEqual(sum(found.get_nowait() for _ in threads), expected)
            self.assertTrue(stream.complete)

    def test_what_was_taken_is_refused(self):
        try:
            import pyarrow
        except ImportError:
            self.skipTest("pyarrow is not installed")
        stream = ff.list(self.root)
        reader = pyarrow.RecordBatchReader.from_stream(stream)
        for call in (lambda: next(stream), lambda: pyarrow.table(stream)):
            self.assertRaisesRegex(ValueError, "already taken", call)
        reader.read_all()
        stream.close()
        self.assertRaises(StopIteration, next, stream)

    def test_a_stream_of_a_process_before_a_fork_is_refused(self):
        grow(self.root, 26, 3000)
        stream, walk = ff.list(self.root), ff.walk(self.root, threads=2)
        rows = len(next(stream))
        next(walk)
        process = os.fork()
        if process == 0:
            status = 9
            try:
                # In the child, everything ends at once: an assertion there would be lost.
                refused = []
                for call in (lambda: next(stream), lambda: stream.__arrow_c_stream__(), lambda: next(walk)):
                    try:
                        call()
                    except RuntimeError as error:
                        refused.append("fork" in str(error))
                stream.close()
                status = 0 if refused == [True] * 3 else 1
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 0)
        self.assertEqual(rows + sum(map(len, stream)), sum(map(len, ff.list(self.root))))
        self.assertEqual(len(list(walk)) + 1, len(list(os.walk(self.root))))


if __name__ == "__main__":
    unittest.main()
