"""Distributed scans with worker processes: each entry once, whatever is killed, stopped or refused.

The units are those of fake_unit.py, and the native ones where the rows are compared.
"""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tracemalloc
import unittest
from collections import Counter
from pathlib import Path
from unittest import mock

import fathomfs as ff
from fathomfs import _fathomfs, distributed
from fathomfs.distributed import _commit, _coordinator, _driver
from fathomfs.distributed._coordinator import Unit
from fathomfs.distributed._engines import End
from fathomfs.distributed._ramp import Ramp, filesystem
from fathomfs.distributed._worker import Outcome, native, run_unit

TESTS = os.path.dirname(os.path.abspath(__file__))
POINTS = ("before-write", "write", "after-write", "before-link", "after-link")


def grow(root, directories, seed=1):
    """Makes a random tree of directories with a few files each; returns the paths of all entries."""
    pick, made = random.Random(seed), [root]
    os.mkdir(root)
    paths = [root]
    for number in range(directories):
        path = os.path.join(pick.choice(made), f"{number}")
        os.mkdir(path)
        made.append(path)
        paths.append(path)
        for file in range(pick.randrange(4)):
            Path(path, f"f{file}").touch()
            paths.append(os.path.join(path, f"f{file}"))
    return sorted(paths)


class ClusterTest(unittest.TestCase):
    """A tree, an inventory to be, and tokens for faults."""

    directories = 120

    def setUp(self):
        self.temp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.temp, ignore_errors=True)
        self.root, self.out = os.path.join(self.temp, "tree"), os.path.join(self.temp, "x.inv")
        self.part = self.out + ".part"
        self.paths = grow(self.root, self.directories)
        self.tokens = os.path.join(self.temp, "faults")
        os.mkdir(self.tokens)
        python_path = os.pathsep.join([TESTS, os.path.dirname(os.path.dirname(ff.__file__)), os.environ.get("PYTHONPATH", "")])
        self.environment = {
            "FATHOMFS_FAULTS": self.tokens,
            "FATHOMFS_NATIVE": "fake_unit",
            "FAKE_BUDGET": "25",
            "PYTHONPATH": python_path,
        }
        patched = mock.patch.dict(os.environ, self.environment)
        patched.start()
        self.addCleanup(patched.stop)
        if TESTS not in sys.path:
            sys.path.insert(0, TESTS)

    def fault(self, point, action, argument="self", after=0):
        """Has the process that reaches ``point`` for the ``after + 1``-th time take a fault."""
        number = len(os.listdir(self.tokens))
        for _ in range(after):
            Path(self.tokens, f"{point}.{number:04}.pass").touch()
            number += 1
        Path(self.tokens, f"{point}.{number:04}.{action}").write_text(argument)

    def tokens_left(self):
        return os.listdir(self.tokens)

    def scan(self, **options):
        options.setdefault("workers", 2)
        return distributed.scan(self.root, self.out, **options)

    def begin(self):
        cluster = native().begin_cluster_scan([os.fsencode(self.root)], os.fsencode(self.out), False, None, False, "auto")
        self.addCleanup(cluster.close)
        return cluster

    def paths_of(self, out=None):
        lines = Path(out or self.out, "paths").read_text().splitlines()
        return sorted(json.loads(line) for line in lines)

    def assert_each_once(self):
        found = self.paths_of()
        self.assertEqual([path for path, count in Counter(found).items() if count > 1], [])
        self.assertEqual(found, self.paths)

    def command(self, *arguments, **options):
        """Runs the command in a process of its own."""
        command = [sys.executable, "-m", "fathomfs.distributed", *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300, **options)


class Scans(ClusterTest):
    def test_each_entry_is_in_one_unit(self):
        seen = []
        inventory = self.scan(progress=seen.append)
        self.assertTrue(inventory.complete)
        self.assert_each_once()
        self.assertFalse(os.path.exists(self.part))
        self.assertEqual((seen[-1].entries, seen[-1].units_running), (len(self.paths), 0))
        self.assertGreater(seen[-1].units_done, 2)

    def test_operands_may_be_several_and_relative(self):
        other = os.path.join(self.temp, "other")
        self.paths = sorted(self.paths + grow(other, 5))
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.temp)
        distributed.scan(["tree", "./other"], "x.inv", workers=2)
        self.assert_each_once()

    def test_a_deadline_leaves_what_can_be_resumed(self):
        self.assertFalse(self.scan(deadline=0).complete)
        self.assertTrue(os.path.exists(self.part))
        with self.assertRaisesRegex(ff.InventoryError, "incomplete"):
            self.scan(deadline=0, resume=True, strict=True)
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_the_second_driver_is_refused(self):
        cluster = self.begin()
        with self.assertRaisesRegex(ff.InventoryError, "another process"):
            self.scan(resume=True)
        cluster.close()
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_a_failing_callback_ends_the_scan_and_keeps_what_is_done(self):
        def refuse(progress):
            if progress.units_done:
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            self.scan(progress=refuse)
        self.assertTrue(os.listdir(os.path.join(self.part, "done")))
        self.scan(resume=True)
        self.assert_each_once()

    def test_wrong_values_are_errors(self):
        with self.assertRaisesRegex(ValueError, "workers 0"):
            self.scan(workers=0)
        with self.assertRaisesRegex(ValueError, "unknown executor 'beowulf'.*local.*slurm"):
            self.scan(executor="beowulf")
        with self.assertRaisesRegex(ValueError, "max_deaths 0"):
            self.scan(max_deaths=0)
        with self.assertRaisesRegex(ValueError, "expected at least one path"):
            distributed.scan([], self.out)
        self.assertFalse(os.path.exists(self.part), "nothing is left of a call that was wrong")

    def test_an_engine_that_cannot_start_leaves_nothing(self):
        with mock.patch.object(sys, "executable", "/bin/false"):
            with self.assertRaisesRegex(distributed.EngineError, "cannot start a worker"):
                self.scan()
        self.assertFalse(os.path.exists(self.part))
        # What was there before stays: it belongs to the incomplete inventory.
        self.assertFalse(self.scan(deadline=0).complete)
        with mock.patch.object(sys, "executable", "/bin/false"):
            with self.assertRaisesRegex(distributed.EngineError, "cannot start a worker"):
                self.scan(resume=True)
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()


class Faults(ClusterTest):
    def test_a_worker_may_die_anywhere(self):
        for point in POINTS:
            with self.subTest(point=point):
                self.fault(point, "kill", after=2)
                self.assertTrue(self.scan().complete)
                self.assertEqual(self.tokens_left(), [])
                self.assert_each_once()
                shutil.rmtree(self.out)

    def test_the_driver_may_die_anywhere(self):
        for point in (*POINTS, "driver-send", "driver-collect"):
            with self.subTest(point=point):
                # The parent of a worker process is the driver.
                self.fault(point, "kill", "self" if point.startswith("driver") else "parent", after=2)
                arguments = ["--processes", "2", "-o", self.out]
                self.assertEqual(self.command(*arguments, self.root).returncode, -signal.SIGKILL)
                self.assertEqual(self.tokens_left(), [])
                done = self.command(*arguments, "--resume", self.root)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assert_each_once()
                shutil.rmtree(self.out)

    def test_workers_end_with_their_driver(self):
        go_on = os.path.join(self.temp, "never")
        # The driver dies at the begin of the second unit, which then has no end.
        self.fault("before-write", "kill", "parent", after=1)
        self.fault("write", "wait", go_on, after=1)
        # Standard error ends with the last process that has it.
        done = self.command("--processes", "1", "-o", self.out, self.root)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGKILL, ""))

    @unittest.skipUnless(sys.platform == "linux", "needs prctl(2)")
    def test_a_fault_does_not_kill_what_adopts_an_orphan(self):
        self.fault("here", "kill", "parent")
        # Adopts the orphan of a process that ends at once.
        adopter = """
import ctypes, os, subprocess, sys
PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
subprocess.run([sys.executable, "-c", sys.argv[1], str(os.getpid())], env=os.environ | {"FATHOMFS_FAULTS": sys.argv[2]})
_, status = os.wait()
sys.exit(os.waitstatus_to_exitcode(status))
"""
        orphan = """
import os, sys, time
from fathomfs.distributed import _faults
if os.fork():
    os._exit(0)
while os.getppid() != int(sys.argv[1]):
    time.sleep(0.01)
_faults.point("here")
os._exit(7)
"""
        environment = {name: value for name, value in os.environ.items() if name != "FATHOMFS_FAULTS"}
        command = [sys.executable, "-c", adopter, orphan, self.tokens]
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (7, ""))
        self.assertEqual(self.tokens_left(), [])

    def test_random_kills(self):
        """Kills at seeded points. FATHOMFS_KILL_ROUNDS makes it longer: a round takes two seconds."""
        for seed in range(int(os.environ.get("FATHOMFS_KILL_ROUNDS", "30"))):
            with self.subTest(seed=seed):
                pick = random.Random(seed)
                # A driver gives up a unit that three workers have died of; the next one counts anew.
                for victim in pick.sample(["self"] * 2 + ["parent self"] * 4, 6):
                    self.fault(pick.choice(POINTS), "kill", victim, after=pick.randrange(4))
                status = None
                for _ in range(20):
                    done = self.command("--processes", "2", "-o", self.out, "--resume", self.root)
                    status = done.returncode
                    if status == 0:
                        break
                    self.assertEqual((status, done.stderr), (-signal.SIGKILL, ""))
                self.assertEqual(status, 0)
                self.assert_each_once()
                shutil.rmtree(self.out)
                for token in self.tokens_left():
                    os.unlink(os.path.join(self.tokens, token))

    def test_a_directory_that_kills_is_left_out_and_said(self):
        deadly = max((path for path in self.paths if os.path.isdir(path)), key=lambda path: path.count("/"))
        warnings = []
        with mock.patch.dict(os.environ, {"FAKE_DEADLY": deadly}):
            inventory = self.scan(warn=warnings.append)
        self.assertFalse(inventory.complete)
        self.assertRegex(warnings[-1], "cannot scan unit '[0-9a-f]+': worker process .* ended with status -9")
        self.assertEqual(len(warnings), 1)
        below = os.path.join(deadly, "")
        everything = self.paths
        self.paths = [path for path in self.paths if path != deadly and not path.startswith(below)]
        self.assert_each_once()
        # What has killed the workers may be gone.
        self.paths = everything
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_the_number_of_deaths_can_be_chosen(self):
        deaths = []
        for max_deaths in (1, 5):
            deadly = max((path for path in self.paths if os.path.isdir(path)), key=lambda path: path.count("/"))
            warnings = []
            with mock.patch.dict(os.environ, {"FAKE_DEADLY": deadly}):
                with mock.patch.object(_coordinator.Coordinator, "lost", autospec=True, side_effect=_coordinator.Coordinator.lost) as lost:
                    self.assertFalse(self.scan(max_deaths=max_deaths, warn=warnings.append).complete)
            deaths.append(lost.call_count)
            self.assertEqual(len(warnings), 1)
            shutil.rmtree(self.out)
            shutil.rmtree(self.part)
        self.assertLess(deaths[0], deaths[1])
        self.assertGreaterEqual(deaths[1], 5)

    def test_an_exception_at_every_attempt_ends_the_scan_and_fails_no_directory(self):
        for _ in range(10):
            self.fault("before-write", "error", str(errno.EMFILE))
        with self.assertRaisesRegex(OSError, "Too many open files"):
            self.scan()
        for token in self.tokens_left():
            os.unlink(os.path.join(self.tokens, token))
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_an_exception_now_and_then_is_repeated(self):
        for after in (3, 2, 4):
            self.fault("before-write", "error", str(errno.EMFILE), after=after)
        self.assertTrue(self.scan().complete)
        self.assertEqual(self.tokens_left(), [])
        self.assert_each_once()

    def test_a_stopped_worker_is_overtaken(self):
        self.fault("before-write", "stop", after=3)
        with mock.patch.object(_coordinator, "STRAGGLER_S", 1.0):
            self.assertTrue(self.scan().complete)
        self.assertEqual(self.tokens_left(), [])
        self.assert_each_once()

    def test_an_attempt_that_comes_late_is_removed(self):
        self.begin().close()
        task = {"part": self.part, "unit": "root", "parent": "", "start": 0, "end": 1, "budget_s": 60.0, "pieces": 4, "slices": 4}
        task |= {"rate": None, "in_flight": None, "threads": None, "io": "auto"}
        self.assertEqual(run_unit({**task, "attempt": 7})["kind"], "won")
        self.assertEqual(run_unit({**task, "attempt": 8})["kind"], "beaten")
        self.assertEqual(os.listdir(os.path.join(self.part, "parts")), ["root.7"])
        # The engine has started an attempt that was begun before.
        self.assertEqual(run_unit({**task, "attempt": 7})["kind"], "lost")
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_a_link_whose_reply_was_lost_has_won(self):
        self.begin().close()
        task = {"part": self.part, "unit": "root", "parent": "", "start": 0, "end": 1, "budget_s": 60.0, "pieces": 4, "slices": 4}
        task |= {"rate": None, "in_flight": None, "threads": None, "io": "auto", "attempt": 1}
        link = os.link

        def link_twice(old, new):
            link(old, new)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)

        with mock.patch("os.link", link_twice):
            self.assertEqual(run_unit(task)["kind"], "won")
        with mock.patch("os.link", side_effect=OSError(errno.EIO, os.strerror(errno.EIO))):
            self.assertEqual(run_unit({**task, "attempt": 2})["kind"], "error")
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_a_worker_that_sees_another_mount_is_left_out(self):
        refuse = os.path.join(self.temp, "refuse")
        os.mkdir(refuse)
        warnings = []
        with mock.patch.dict(os.environ, {"FAKE_REFUSE": refuse}):
            self.assertTrue(self.scan(warn=warnings.append).complete)
        self.assertEqual(len(warnings), 1)
        self.assertRegex(warnings[0], "cannot use the worker on '.*': .*another file system mounted")
        self.assert_each_once()

    def test_no_worker_that_sees_the_mount_is_an_error(self):
        refuse = os.path.join(self.temp, "refuse")
        os.mkdir(refuse)
        with mock.patch.dict(os.environ, {"FAKE_REFUSE": refuse}):
            with self.assertRaisesRegex(distributed.EngineError, "no worker sees .*another file system mounted"):
                self.scan(workers=1)
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_a_full_disk_is_said_and_the_rest_is_kept(self):
        self.fault("write", "error", str(errno.ENOSPC), after=3)
        done = self.command("--processes", "2", "-o", self.out, self.root)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^fathom-scan-cluster: cannot write '.*': No space left on device\n$")
        self.assertGreaterEqual(len(os.listdir(os.path.join(self.part, "done"))), 1)
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_signals_leave_what_can_be_resumed(self):
        for name, status in [("int", 130), ("term", 143), ("hup", 129)]:
            with self.subTest(signal=name):
                self.fault("driver-collect", name, after=1)
                done = self.command("--processes", "2", "-o", self.out, self.root)
                self.assertEqual(done.returncode, status)
                self.assertRegex(done.stderr, "^fathom-scan-cluster: '.*' is incomplete: interrupted; --resume .*\n$")
                # Nothing was lost: each unit that had been sent has returned what it had.
                records = os.listdir(os.path.join(self.part, "done"))
                self.assertEqual(len([name for name in os.listdir(os.path.join(self.part, "parts"))]), len(records))
                self.assertEqual(self.command("-o", self.out, "--resume").returncode, 0)
                self.assert_each_once()
                shutil.rmtree(self.out)


class Command(ClusterTest):
    def test_status_and_errors(self):
        done = self.command("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--dask", "--ray", "--mpi", "--slurm", "--processes", "--max-in-flight", "examples:"):
            self.assertIn(word, done.stdout)
        for arguments, error in [
            (["-o", self.out], "missing operand: PATH to scan"),
            (["-o", self.out, "--max-deaths", "0", self.root], "argument --max-deaths: invalid number '0'"),
            ([self.root], "the following arguments are required: -o/--output"),
            (["-o", self.out, "--rate", "0", self.root], "argument --rate: invalid number '0'"),
            (["-o", self.out, "--deadline", "9", self.root], "argument --deadline: invalid time '9'"),
            (["-o", self.out, "--ray", "--mpi", self.root], "not allowed with argument"),
        ]:
            done = self.command(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(done.stderr.startswith("fathom-scan-cluster: "), done.stderr)
            self.assertIn(error, done.stderr)
        done = self.command("-o", self.out, "--deadline", "0s", self.root)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^fathom-scan-cluster: '.*' is incomplete: ")
        done = self.command("-o", self.out, self.root)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "^fathom-scan-cluster: cannot create '.*': .*\n$")


class VirtualEngine:
    """Workers without files: a unit reads 400 of its references and leaves the others."""

    spare = 0

    def __init__(self, workers, references):
        self.workers, self.references, self.tasks, self.peak = workers, references, [], 0

    def slots(self):
        return self.workers

    def submit(self, task):
        self.tasks.append(task)

    def poll(self, timeout):
        tasks, self.tasks = self.tasks, []
        self.peak = max(self.peak, len(tasks))
        return [End.of(task, Outcome(kind="won", record=self._record(task))) for task in tasks]

    def _record(self, task):
        count = task["end"] - task["start"]
        left = self.references if task["unit"] == "root" else max(0, count - 400)
        pieces = min(task["pieces"], left)
        bounds = [left * piece // pieces for piece in range(pieces + 1)] if pieces else []
        entries = 1 if task["unit"] == "root" else min(count, 400)
        return {"kind": "scanned", "pieces": [*zip(bounds, bounds[1:])], "entries": entries, "dirs": 1, "errors": 0, "latency_us": 9.0}


class Policy(ClusterTest):
    directories = 0

    def test_memory_does_not_grow_with_references(self):
        peaks = []
        for references in (10_000, 1_000_000):
            engine = VirtualEngine(16, references)
            driver = _driver.Driver(self.begin(), engine, _driver.Options())
            tracemalloc.start()
            self.assertIsNone(driver.run())
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            self.assertEqual(driver.totals.entries, references + 1)
            shutil.rmtree(self.part)
        self.assertLess(peaks[1], 4 << 20, peaks)

    def test_limits_are_shared_by_all_that_runs(self):
        cluster = self.begin()
        engine = VirtualEngine(1, 100_000)
        options = _driver.Options(rate=1000, in_flight=10)
        driver = _driver.Driver(cluster, engine, options)
        poll, running, seen = engine.poll, {}, []

        def poll_one(timeout):
            """Ends one unit at a time, and adds workers meanwhile."""
            for task in engine.tasks:
                running[(task["unit"], task["attempt"])] = task
            seen.append((sum(task["rate"] for task in running.values()), sum(task["in_flight"] for task in running.values())))
            later, engine.tasks = engine.tasks[1:], engine.tasks[:1]
            ends = poll(timeout)
            engine.tasks = later
            for end in ends:
                del running[(end.unit, end.attempt)]
            engine.workers = min(64, engine.workers + 1)
            return ends

        engine.poll = poll_one
        self.assertIsNone(driver.run())
        self.assertLessEqual(max(rate for rate, _ in seen), 1000)
        self.assertLessEqual(max(in_flight for _, in_flight in seen), 10)
        # No more units than the limit has calls, and most of the limit is used.
        self.assertEqual(max(in_flight for _, in_flight in seen), 10)

    def test_a_scan_without_workers_says_so_once_and_waits(self):
        engine, warnings, polls = VirtualEngine(0, 100), [], []
        poll = engine.poll

        def poll_later(timeout):
            polls.append(timeout)
            # A worker comes late, goes when it has work left, and comes back.
            engine.workers = int(len(polls) in (3, 4) or len(polls) > 8)
            return poll(timeout)

        engine.poll = poll_later
        with mock.patch.object(_driver, "NO_WORKER_S", 0.0):
            self.assertIsNone(_driver.Driver(self.begin(), engine, _driver.Options(warn=warnings.append)).run())
        self.assertEqual(warnings, ["no worker for 0 s: the scan waits for one"] * 2)

    def test_deaths_without_another_worker_give_nothing_up_at_first(self):
        for workers, deaths in ((1, _driver.LONE_DEATHS_MAX), (2, 2)):
            with self.subTest(workers=workers):
                engine, warnings, left = VirtualEngine(workers, 100), [], [deaths]
                poll = engine.poll

                def die(timeout, engine=engine, poll=poll, left=left):
                    if left[0] > 0 and engine.tasks:
                        left[0] -= 1
                        return [End.lost(engine.tasks.pop(), "killed")]
                    return poll(timeout)

                engine.poll = die
                cluster = self.begin()
                driver = _driver.Driver(cluster, engine, _driver.Options(warn=warnings.append))
                self.assertIsNone(driver.run())
                self.assertEqual((warnings, driver.totals.failed, driver.totals.entries, left), ([], 0, 101, [0]))
                shutil.rmtree(self.part)

    def test_one_worker_that_dies_for_ever_ends(self):
        engine, warnings = VirtualEngine(1, 100), []
        engine.poll = lambda timeout: [End.lost(engine.tasks.pop(), "killed")]
        driver = _driver.Driver(self.begin(), engine, _driver.Options(warn=warnings.append))
        self.assertIsNone(driver.run())
        self.assertEqual((len(warnings), driver.totals.failed), (1, 1))

    def test_attempts_of_later_drivers_have_later_numbers(self):
        cluster = self.begin()
        self.assertEqual([_commit.next_driver(cluster.part) for _ in range(3)], [0, 1, 2])

    def test_pending_units_are_those_without_a_record(self):
        cluster = self.begin()
        cluster.record_split("root", "", 0, 1, [(0, 2), (2, 3)])
        _commit.publish(cluster.part, "root", -1)
        state = _commit.read_state(cluster.part, Unit("root", "", 0, 1))
        self.assertEqual(sorted((unit.parent, unit.start, unit.end) for unit in state.pending), [("root", 0, 2), ("root", 2, 3)])
        self.assertEqual(state.totals.units, 1)

    def test_network_filesystems_are_known(self):
        self.assertEqual(filesystem(b"/proc/self"), "proc")
        table = os.path.join(self.temp, "mountinfo")
        device = os.stat(self.root).st_dev
        line = f"36 35 {os.major(device)}:{os.minor(device)} / /mnt rw shared:1 - nfs4 server:/x rw\n"
        Path(table).write_text(line)
        self.assertEqual(filesystem(os.fsencode(self.root), table), "nfs4")
        self.assertIsNone(filesystem(b"/nonexistent"))

    def test_workers_are_doubled_while_latency_holds(self):
        engine = VirtualEngine(64, 100_000)
        ramp = Ramp(2)
        driver = _driver.Driver(self.begin(), engine, _driver.Options(ramp=ramp))
        with mock.patch.object(_driver, "ENTRIES_MIN", 1):
            driver.run()
        self.assertGreaterEqual(ramp.limit, 64)
        self.assertEqual(engine.peak, 64)


#: Columns that two scans of one tree may differ in: numbers of directories, and what reading them changes.
VARYING = ("dir_id", "parent_id", "pre", "post", "scanned", "atime", "atime_ns")


def rows(inventory):
    """The rows of the tables, sorted, with the paths of directories instead of their numbers."""
    import pyarrow.parquet as parquet

    def table(name):
        return [row for path in inventory.files(name) for row in parquet.read_table(path).to_pylist()]

    dirs = {row["dir_id"]: row for row in table("dirs")}
    # Rows of `links` name the first directory where a file was found, which is any of several.
    found = {name: [] for name in ("dirs", "entries", "errors", "users", "groups")}
    for name in found:
        for row in table(name):
            parent = dirs.get(row.get("dir_id"), {}).get("path")
            facts = {column: repr(value) for column, value in row.items() if column not in VARYING}
            found[name].append(sorted({**facts, "directory": repr(parent)}.items()))
        found[name].sort()
    ordered = sorted(dirs.values(), key=lambda row: row["dir_id"])
    found["subtrees"] = sorted((row["path"], row["post"] - row["pre"]) for row in ordered)
    found["links"] = sorted((row["dev"], row["ino"], row["nlink"], row["size"]) for row in table("links"))
    return found


class Native(ClusterTest):
    """The native units, against the scan of one machine."""

    directories = 300

    @classmethod
    def setUpClass(cls):
        if not hasattr(_fathomfs, "scan_unit"):
            raise unittest.SkipTest("the native module has no scan_unit")

    def setUp(self):
        super().setUp()
        del os.environ["FATHOMFS_NATIVE"]
        os.link(next(path for path in self.paths if path.endswith("f0")), os.path.join(self.root, "second name"))
        os.symlink("missing", os.path.join(self.root, "link"))
        os.mkdir(os.path.join(os.fsencode(self.root), b"\xff"))

    def assert_like_one_machine(self, inventory, **options):
        expected = ff.scan(self.root, os.path.join(self.temp, "one.inv"), **options)
        one, many = rows(expected), rows(inventory)
        for table in one:
            self.assertEqual(many[table], one[table], table)
        self.assertEqual(inventory.du(), expected.du())
        self.assertEqual(inventory.top(by="type"), expected.top(by="type"))
        inventory.verify()
        return expected

    def test_the_same_rows(self):
        # Without a budget each unit reads one directory and leaves the others.
        for budget in (0.0, 60.0):
            with self.subTest(budget=budget):
                seen = []
                inventory = self.scan(budget=budget, progress=seen.append)
                self.assertTrue(inventory.complete)
                expected = self.assert_like_one_machine(inventory)
                self.assertEqual(seen[-1].entries, len(inventory))
                if budget == 0.0:
                    self.assertGreater(seen[-1].units_done, 100)
                shutil.rmtree(expected.path)
                shutil.rmtree(self.out)

    def test_the_same_rows_after_kills(self):
        native_points = [point for point in POINTS if point != "write"]
        for victim in ("self", "parent self"):
            for point in native_points:
                self.fault(point, "kill", victim, after=4)
        for _ in range(20):
            done = self.command("--processes", "2", "--budget", "0s", "-o", self.out, "--resume", self.root)
            if done.returncode == 0:
                break
            self.assertEqual((done.returncode, done.stderr), (-signal.SIGKILL, ""))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.tokens_left(), [])
        self.assert_like_one_machine(ff.open(self.out))

    def test_a_deadline_and_a_resumption_without_operands(self):
        self.assertFalse(self.scan(deadline=0).complete)
        done = self.command("--processes", "2", "-o", self.out, "--resume")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_like_one_machine(ff.open(self.out))

    def test_unchanged_directories_are_copied(self):
        earlier = ff.scan(self.root, os.path.join(self.temp, "earlier.inv"))
        Path(self.root, "new").touch()
        seen = []
        inventory = self.scan(since=earlier.path, budget=0.0, progress=seen.append)
        self.assertEqual(seen[-1].entries_expected, len(earlier))
        self.assert_like_one_machine(inventory, since=earlier.path)

    def test_a_driver_that_died_before_it_removed_the_units_has_finished(self):
        kept = os.path.join(self.temp, "kept")
        # The last step before the tables are put together.
        with mock.patch.object(_commit, "remove_orphans", lambda part: shutil.copytree(part, kept)):
            self.scan()
        shutil.copytree(kept, self.part)
        done = self.command("-o", self.out, "--resume")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(os.path.exists(self.part))
        self.assert_like_one_machine(ff.open(self.out))

    def test_nothing_to_resume_is_an_error(self):
        done = self.command("-o", self.out, "--resume")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nothing to continue: give a PATH to start a scan", done.stderr)
        self.assertEqual(sorted(os.listdir(self.temp)), ["faults", "tree"])

    def test_an_unknown_model_is_an_error_of_the_caller(self):
        done = self.command("--io", "wrong", "-o", self.out, self.root)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown I/O model", done.stderr)
        self.assertFalse(os.path.exists(self.part))

    @unittest.skipUnless(os.geteuid() == 0, "needs root for a mount")
    def test_a_worker_that_lacks_or_has_another_mount_below_is_refused(self):
        below = next(path for path in self.paths if os.path.isdir(path) and path != self.root)
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", below]).returncode:
            self.skipTest("cannot mount a tmpfs")
        self.begin().close()
        task = {"part": self.part, "unit": "root", "parent": "", "start": 0, "end": 1, "attempt": 0, "budget_s": 60.0}
        task |= {"pieces": 4, "slices": 4, "rate": None, "in_flight": None, "threads": None, "io": "auto"}
        run = "import json, sys; from fathomfs.distributed import _worker; print(json.dumps(_worker.run_unit(json.loads(sys.argv[1]))))"
        worker = [sys.executable, "-c", run, json.dumps(task)]
        for script in ('mount -t tmpfs tmpfs "$1"', ":"):
            command = ["unshare", "-m", "sh", "-c", f'{script} && shift && exec "$@"', "sh", below, *worker]
            outcome = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
            if script == ":":
                self.assertEqual(outcome["kind"], "won", "another namespace with the same mounts")
            else:
                self.assertEqual(outcome["kind"], "refused")
                self.assertRegex(outcome["message"], f"'{below}': it differs from what .* has there: is another file system mounted")

    def test_another_mount_is_refused(self):
        self.begin().close()
        shutil.rmtree(self.root)
        os.mkdir(self.root)
        with self.assertRaisesRegex(distributed.EngineError, "no worker sees .*another file system mounted"):
            self.scan(resume=True)

    @unittest.skipUnless(os.geteuid() == 0, "needs root for a small filesystem")
    def test_a_full_filesystem_is_said_and_the_rest_is_kept(self):
        small = os.path.join(self.temp, "small")
        os.mkdir(small)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", small]).returncode:
            self.skipTest("cannot mount a tmpfs")
        self.addCleanup(subprocess.run, ["umount", small])
        self.out = os.path.join(small, "x.inv")
        command = ["--processes", "2", "--budget", "0s", "-o", self.out, self.root]
        done = self.command(*command)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "fathom-scan-cluster: .*No space left on device")
        records = os.listdir(os.path.join(self.out + ".part", "done"))
        self.assertTrue([name for name in records if name.endswith(".json")])
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        done = self.command(*command, "--resume")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_like_one_machine(ff.open(self.out))


if __name__ == "__main__":
    unittest.main()
