"""Ctrl-C while a walk does not go on: each reader of a stream ends, and each call."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from test_fathomfs import TemporaryTree

#: The time after which a call that was not ended is killed, in seconds: a guard, on any load.
END_S_MAX = 200

#: Calls by name, with the package that they need, of a tree and of a stream of it.
CALLS = {
    "next": ("fathomfs", "next(stream)"),
    "scandir": ("fathomfs", "[*ff.scandir(tree, recursive=True)]"),
    "du": ("fathomfs", "ff.du(tree)"),
    "polars": ("polars", "polars.DataFrame(stream)"),
    "table": ("pyarrow", "pyarrow.table(stream)"),
    "pandas": ("pandas", "pandas.DataFrame.from_arrow(stream)"),
    "duckdb": ("duckdb", "duckdb.sql('SELECT count(*) FROM stream').fetchall()"),
}

SCRIPT = """
import importlib, sys, time
import fathomfs as ff
tree, package, call = sys.argv[1:]
globals()[package] = importlib.import_module(package)
stream = ff.list(tree, columns=["path", "size"])
print("begun", flush=True)
try:
    # Some readers make an error of their own of the signal, which KeyboardInterrupt follows.
    try:
        eval(call)
        print("ended", flush=True)
    except Exception as error:
        while True:
            time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Signals(TemporaryTree):
    def switches(self, process):
        """How often the main thread of the script has waited."""
        with open(f"/proc/{process}/status") as status:
            text = status.read()
        self.assertNotIn("State:\tZ", text, "it has ended")
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.MULTILINE)[1])

    def script(self, tracer):
        """The script's process, a child of the tracer."""
        with open(f"/proc/{tracer.pid}/task/{tracer.pid}/children") as children:
            return int(children.read().split()[0])

    def test_ctrl_c_ends_every_call(self):
        if shutil.which("strace") is None or subprocess.run(["strace", "-o", os.devnull, "true"]).returncode != 0:
            self.skipTest("strace is not installed, or not allowed")
        for name, (package, call) in CALLS.items():
            if importlib.util.find_spec(package) is None:
                continue
            with self.subTest(name):
                self.interrupt(package, call)

    def interrupt(self, package, call):
        # The walk stands still at its first look at an entry, which Python does by another call. No other call is
        # stopped, as that would be a wait, too.
        trace = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", os.devnull, "-e", "trace=statx"]
        trace += ["-e", "inject=statx:delay_enter=1000s"]
        arguments = [sys.executable, "-u", "-c", SCRIPT, self.root, package, call]
        environment = os.environ | {"FATHOM_PROFILE": ""}
        # A group of their own: its threads still stand at the end, so it does not end by itself.
        tracer = subprocess.Popen(
            [*trace, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        guard = threading.Timer(END_S_MAX, os.killpg, (tracer.pid, signal.SIGKILL))
        guard.start()
        try:
            self.assertEqual(tracer.stdout.readline(), b"begun\n")
            script = self.script(tracer)
            # It waits in steps, between which it looks at signals.
            before = self.switches(script)
            while self.switches(script) < before + 3:
                time.sleep(0.01)
            os.kill(script, signal.SIGINT)
            self.assertEqual(tracer.stdout.readline(), b"interrupted\n")
        finally:
            guard.cancel()
            os.killpg(tracer.pid, signal.SIGKILL)
            tracer.stdout.close()
            tracer.wait()


if __name__ == "__main__":
    unittest.main()
