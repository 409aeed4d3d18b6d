"""Distributed scans on Dask, Ray, MPI and Slurm: each entry once, whatever is killed."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fathomfs import distributed
from test_distributed import POINTS, ClusterTest


def has(module):
    return importlib.util.find_spec(module) is not None


class DaskProcesses:
    """A scheduler and workers with nannies, each a process that can be killed."""

    def __init__(self, directory):
        self.directory, self.started, self.processes = directory, 0, []
        self.file = os.path.join(directory, "scheduler.json")
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", self.file)
        from distributed import Client

        self.client = Client(scheduler_file=self.file, timeout="120s")
        self.address = self.client.scheduler.address

    def _start(self, role, *arguments):
        self.started += 1
        log = os.path.join(self.directory, f"{role}-{self.started}.log")
        command = [sys.executable, "-m", "dask", role, "--host", "127.0.0.1", *arguments]
        with open(log, "wb") as stream:
            process = subprocess.Popen(command, stdout=stream, stderr=stream, cwd=self.directory, start_new_session=True)
        self.processes.append(process)
        return process

    def add_worker(self):
        workers = len(self.client.nthreads())
        options = ["--nworkers", "1", "--nthreads", "1", "--no-dashboard", "--local-directory", self.directory]
        self._start("worker", *options, self.address)
        self.client.wait_for_workers(workers + 1, timeout=120)

    def close(self):
        self.client.close()
        for process in self.processes:
            process.kill()
            process.wait()


@unittest.skipUnless(has("distributed"), "needs Dask")
class Dask(ClusterTest):
    def start(self):
        directory = os.path.join(self.temp, "dask")
        os.makedirs(directory, exist_ok=True)
        cluster = DaskProcesses(directory)
        self.addCleanup(cluster.close)
        return cluster

    def test_workers_and_nannies_may_die_anywhere(self):
        cluster = self.start()
        for victim in ("self", "parent self"):
            for point in POINTS:
                with self.subTest(victim=victim, point=point):
                    while len(cluster.client.nthreads()) < 2:
                        cluster.add_worker()
                    self.fault(point, "kill", victim, after=2)
                    self.assertTrue(self.scan(executor=cluster.client, workers=None).complete)
                    self.assertEqual(self.tokens_left(), [])
                    self.assert_each_once()
                    shutil.rmtree(self.out)

    def test_the_scheduler_and_the_driver_may_die_anywhere(self):
        cluster = self.start()
        cluster.add_worker()
        for point in POINTS[1:]:
            with self.subTest(point=point):
                arguments = ["--dask", cluster.address, "-o", self.out, self.root]
                driver = subprocess.Popen([sys.executable, "-m", "fathomfs.distributed", *arguments], stderr=subprocess.PIPE)
                self.fault(point, "kill", str(driver.pid), after=2)
                driver.communicate(timeout=300)
                self.assertEqual(driver.returncode, -signal.SIGKILL)
                done = self.command(*arguments, "--resume")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assert_each_once()
                shutil.rmtree(self.out)
        self.fault("before-link", "kill", str(cluster.scheduler.pid), after=2)
        done = self.command(*arguments)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "fathom-scan-cluster: lost the connection to the Dask scheduler")
        self.assertEqual(self.tokens_left(), [])
        self.assertTrue(self.scan(resume=True).complete)
        self.assert_each_once()

    def test_an_adaptive_cluster_grows_and_shrinks(self):
        from distributed import Client, LocalCluster

        go_on, seen = [os.path.join(self.temp, "go on")], set()
        # The first unit after the root waits until there is another worker.
        self.fault("before-write", "wait", go_on[0], after=1)
        cluster = LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None)
        self.addCleanup(cluster.close)
        client = Client(cluster)
        self.addCleanup(client.close)
        # Idle for two seconds: a cluster that ends workers which are about to start may lose count of them.
        cluster.adapt(minimum=0, maximum=2, interval="100ms", target_duration="1ms", wait_count=20)

        def watch(progress):
            seen.add(progress.workers)
            if progress.workers == 2:
                Path(go_on[-1]).touch()
            elif progress.units_done == 0 and not self.tokens_left():
                # The cluster has ended the root's worker, and the root's second attempt waits: alone, it gets no other.
                go_on.append(f"{go_on[0]} {len(go_on)}")
                self.fault("before-write", "wait", go_on[-1])
                Path(go_on[-2]).touch()

        self.assertTrue(self.scan(executor=client, workers=None, progress=watch).complete)
        self.assertIn(2, seen)
        self.assert_each_once()
        self.assertIn("fathom_scan", client.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.task_prefixes]))
        for _ in range(6000):
            if not client.nthreads():
                break
            threading.Event().wait(0.01)
        # The client is still of use, and the cluster without workers.
        self.assertEqual((client.status, client.nthreads()), ("running", {}))

    def test_a_local_cluster_is_made_and_ended(self):
        done = self.command("--dask", "local", "--workers", "2", "-o", self.out, self.root)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_each_once()


@unittest.skipUnless(has("ray"), "needs Ray")
class Ray(ClusterTest):
    def test_two_nodes_whose_workers_die(self):
        import ray
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        self.addCleanup(cluster.shutdown)
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        self.addCleanup(ray.shutdown)
        # No more than two deaths: a unit that three workers have died of is given up.
        for point in ("after-write", "after-link"):
            self.fault(point, "kill", after=2)
        seen = set()
        inventory = self.scan(executor="ray", workers=None, progress=lambda progress: seen.add(progress.workers))
        self.assertTrue(inventory.complete, inventory.manifest["completeness"])
        self.assertEqual((self.tokens_left(), max(seen)), ([], 2))
        self.assert_each_once()


@unittest.skipUnless(has("mpi4py") and shutil.which("mpiexec"), "needs mpi4py and mpiexec")
class Mpi(ClusterTest):
    def mpi(self, *arguments):
        options = ["-n", "3"]
        if b"Open" in subprocess.run(["mpiexec", "--version"], stdout=subprocess.PIPE).stdout:
            options += ["--oversubscribe", "--allow-run-as-root"]
        command = ["mpiexec", *options, sys.executable, "-m", "mpi4py.futures", "-m", "fathomfs.distributed", "--mpi"]
        return subprocess.run(
            [*command, "-o", self.out, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300
        )

    def test_ranks_do_units(self):
        done = self.mpi(self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_each_once()

    def test_a_dead_rank_ends_the_job_which_is_resumed(self):
        self.fault("after-link", "kill", after=2)
        self.assertNotEqual(self.mpi(self.root).returncode, 0)
        self.assertEqual(self.tokens_left(), [])
        done = self.mpi("--resume", self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_each_once()


FAKE_SLURM = '''#!{python}
"""sbatch, squeue and scancel of a cluster that is this machine. A file JOB_INDEX is a task that runs."""
import os, subprocess, sys
queue, name, arguments = {queue!r}, os.path.basename(sys.argv[0]), sys.argv[1:]
if name == "sbatch":
    with open(os.path.join(queue, "calls"), "a") as calls:
        calls.write(" ".join(arguments) + "\\n")
    job = str(sum(1 for _ in open(os.path.join(queue, "calls"))))
    (array,) = [argument for argument in arguments if argument.startswith("--array=0-")]
    script = next(index for index, argument in enumerate(arguments) if not argument.startswith("-"))
    for index in range(int(array[10:]) + 1):
        task = os.path.join(queue, job + "_" + str(index))
        open(task, "w").close()
        shell = "sh " + " ".join(map(repr, arguments[script:])) + "; rm " + repr(task)
        environment = dict(os.environ, SLURM_ARRAY_TASK_ID=str(index))
        subprocess.Popen(["sh", "-c", shell], env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    print(job + ";cluster")
elif name == "squeue":
    print("\\n".join(name for name in os.listdir(queue) if name != "calls"))
'''


class Slurm(ClusterTest):
    def setUp(self):
        super().setUp()
        self.bin, self.queue = os.path.join(self.temp, "bin"), os.path.join(self.temp, "queue")
        os.mkdir(self.bin)
        os.mkdir(self.queue)
        for name in ("sbatch", "squeue", "scancel"):
            path = Path(self.bin, name)
            path.write_text(FAKE_SLURM.format(python=sys.executable, queue=self.queue))
            path.chmod(0o755)
        os.environ["PATH"] = os.pathsep.join([self.bin, os.environ["PATH"]])
        os.environ["FATHOMFS_SLURM_LOOK_S"] = "0.2"

    def test_waves_of_units_whose_tasks_die(self):
        for point in ("write", "after-link"):
            self.fault(point, "kill", after=2)
        done = self.command("--slurm", "--workers", "4", "--sbatch=--partition=io", "--threads", "3", "-o", self.out, self.root)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.tokens_left(), [])
        self.assert_each_once()
        calls = Path(self.queue, "calls").read_text().splitlines()
        self.assertGreater(len(calls), 2)
        self.assertIn("--array=0-3", "".join(calls))
        self.assertTrue(all("--cpus-per-task=3" in call and "--partition=io" in call for call in calls))

    def test_no_slurm_is_an_error(self):
        # A login node of a cluster has the real one in another directory.
        os.environ["PATH"] = os.path.join(self.temp, "nothing")
        done = self.command("--slurm", "-o", self.out, self.root)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "fathom-scan-cluster: cannot run 'sbatch': No such file or directory\n")
        self.assertTrue(self.scan(resume=True).complete)


class Executors(ClusterTest):
    def test_any_executor_does(self):
        with ThreadPoolExecutor(2) as executor:
            self.assertTrue(self.scan(executor=executor, workers=None).complete)
        self.assert_each_once()


if __name__ == "__main__":
    unittest.main()
