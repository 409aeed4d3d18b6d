"""Executes the notebook on a small tree, in a kernel of its own."""

import importlib.util
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs/notebooks/what-fills-a-tree.ipynb"
MISSING = [name for name in ("nbclient", "ipykernel", "matplotlib") if importlib.util.find_spec(name) is None]


@unittest.skipIf(MISSING, f"not installed: {', '.join(MISSING)}")
class Notebook(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.temp)
        saved = dict(os.environ)
        self.addCleanup(os.environ.update, saved)
        self.addCleanup(os.environ.clear)
        # The kernel is this interpreter, whatever kernels the user has; its caches stay here.
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
            os.environ[name] = os.path.join(self.temp, name)
        os.environ["TREE"] = os.path.join(self.temp, "tree")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

    def test_finds_what_fills_a_tree_and_plots_it(self):
        import nbclient
        import nbformat

        for name, size in [("small/a.txt", 1000), ("large/b.bin", 3_000_000), ("large/deep/c.bin", 2_000_000)]:
            path = Path(self.temp, "tree", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(size))
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute(cwd=self.temp)
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        text = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
        self.assertRegex(text, r"7 entries, +5\.\d MB, complete: True")
        sizes = [line.split()[-1] for line in text.splitlines()[1:]]
        self.assertEqual(sizes, ["large", "large/deep", "small"])
        pictures = [output.data["image/png"] for output in outputs if "image/png" in output.get("data", {})]
        self.assertEqual(len(pictures), 3)
        self.assertEqual(len(set(pictures)), 3)


if __name__ == "__main__":
    unittest.main()
