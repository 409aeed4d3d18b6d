"""``fathomfs.bench.advise``: its result against the command's document, its end by Ctrl-C, its errors."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import fathomfs as ff
from fathomfs import bench

#: Upper bound of the time until the command has begun, and until it has ended: a guard, on any load.
WAIT_S_MAX = 120


class Advise(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory()
        self.addCleanup(temp.cleanup)
        self.root = temp.name

    def test_the_result_has_what_the_document_has(self):
        try:
            advice = bench.advise(self.root, time=2, seed=7)
        except ff.FathomError as error:
            # On a machine in use, the samples of the only question may be all noise.
            self.assertIn("no question was answered", str(error))
            return
        document = advice.document
        self.assertEqual(document["run"]["seed"], 7)
        self.assertEqual(str(advice), document["sentence"])
        self.assertTrue(advice.sentence.endswith("."))
        self.assertEqual([cell.name for cell in advice.cells], [verdict["cell"] for verdict in document["verdicts"]])
        self.assertEqual([item.cell for item in advice.left_out], [item["cell"] for item in document["left_out"]])
        self.assertTrue(advice.cells or advice.left_out)
        for cell, verdict in zip(advice.cells, document["verdicts"], strict=True):
            self.assertEqual((cell.method, cell.threads, cell.depth), tuple(map(verdict.get, ("method", "threads", "depth"))))
            self.assertIn(cell.method, [candidate.method for candidate in cell.candidates])
            for interval, found in [(cell.ratio, verdict["ratio"]), (cell.ratio_to_best, verdict["ratio_to_best"])]:
                self.assertEqual(None if interval is None else vars(interval), found)
        self.assertEqual(os.listdir(self.root), [])

    def test_an_interval_is_read(self):
        verdict = {
            "cell": "stat, warm", "workload": "stat", "cache": "warm", "method": "threads=2", "model": "threads",
            "threads": 2, "depth": 1, "ratio": {"median": 0.5, "low": 0.4, "high": 0.6}, "ratio_to_best": None,
            "among_best": ["threads=2"], "matters": True,
            "candidates": [{"method": "threads=2", "predicted_us": 1.5, "measured_us": None}],
        }  # fmt: skip
        cell = bench._read_cell(verdict)
        self.assertEqual(cell.ratio, bench.Interval(0.5, 0.4, 0.6))
        self.assertIsNone(cell.ratio_to_best)
        self.assertEqual(cell.candidates, (bench.Candidate("threads=2", 1.5, None),))

    def test_the_message_of_the_command_is_raised(self):
        missing = os.path.join(self.root, "missing")
        with self.assertRaisesRegex(ff.FathomError, "missing': No such file or directory") as caught:
            bench.advise(missing, quick=True)
        self.assertEqual((caught.exception.operation, caught.exception.filename), ("measure", missing))
        with self.assertRaisesRegex(ff.FathomError, "invalid time"):
            bench.advise(self.root, quick=True, time=0)

    def test_ctrl_c_ends_it_and_leaves_no_files(self):
        code = "import sys, fathomfs.bench; fathomfs.bench.advise(sys.argv[1])"
        child = subprocess.Popen([sys.executable, "-c", code, self.root], stderr=subprocess.PIPE)
        end = time.monotonic() + WAIT_S_MAX
        while not os.listdir(self.root):
            self.assertIsNone(child.poll(), "it ended before it was interrupted")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=WAIT_S_MAX)
        self.assertIn(b"KeyboardInterrupt", errors)
        self.assertEqual(os.listdir(self.root), [])


if __name__ == "__main__":
    unittest.main()
