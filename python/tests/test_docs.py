"""Runs the examples of docs/python.md in their order, and compares what they print."""

import contextlib
import importlib.util
import io
import os
import re
import shutil
import tempfile
import unittest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/python.md"
#: A block of Python, and the block of its output if there is one.
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
SIZES = {"data/2025.parquet": 5_000_000, "data/2026.parquet": 8_000_000, "logs/app.log": 1_200_000}
SIZES |= {"www/logo.png": 30_785, "www/video.mp4": 3_000_000}


class Page(unittest.TestCase):
    def setUp(self):
        temp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, temp)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(temp)
        for name, size in SIZES.items():
            path = Path("srv", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(size))
        Path("srv/www/index.html").write_text("<h1>Hello</h1>\n")

    def test_examples_print_what_the_page_says(self):
        examples = EXAMPLE.findall(PAGE.read_text())
        self.assertGreater(len(examples), 10)
        names = {}
        for code, expected in examples:
            line = code.splitlines()[0]
            with self.subTest(line):
                self.skip_without_modules(code)
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    exec(compile(code, str(PAGE), "exec"), names)
                self.assertEqual(output.getvalue(), expected)

    def skip_without_modules(self, code):
        for module in re.findall(r"^(?:from|import) ([\w.]+)", code, re.MULTILINE):
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"{module} is not installed")


if __name__ == "__main__":
    unittest.main()
