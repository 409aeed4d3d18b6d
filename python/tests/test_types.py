"""Checks the installed package with pyright, as editors do. mypy and its stubtest run in tools/python-test.sh."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import fathomfs as ff


class Types(unittest.TestCase):
    def test_pyright_finds_nothing(self):
        if importlib.util.find_spec("pyright") is None:
            self.skipTest("pyright is not installed")
        # The package of PyPI fetches pyright itself from npm when it first runs.
        pyright = [sys.executable, "-m", "pyright"]
        ready = subprocess.run([*pyright, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ready.returncode != 0:
            self.skipTest(f"pyright cannot be fetched: {ready.stdout.strip()[-200:]}")
        options = ["--pythonversion", "3.10", "--pythonpath", sys.executable, "--warnings"]
        with tempfile.TemporaryDirectory() as temp:
            package = os.path.dirname(ff.__file__)
            found = subprocess.run([*pyright, *options, package], cwd=temp, stdout=subprocess.PIPE, text=True)
        self.assertEqual(found.returncode, 0, found.stdout)


if __name__ == "__main__":
    unittest.main()
