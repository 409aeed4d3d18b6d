"""Tests of the expected totals of `du.py`."""

import tempfile
import unittest
from pathlib import Path

import du_arms as arms

FACTS = arms.Facts(allocated=40_960_000 + 34_119_680, directories=1, directory_bytes=34_119_680)
OTHER = arms.Facts(allocated=40_960_512 + 34_119_680, directories=1, directory_bytes=34_119_680)


def answer(name):
    return next(arm.answer for arm, _ in arms.RIVALS if arm.name == name)


class Totals(unittest.TestCase):
    def test_each_rival_s_total_is_read_from_its_own_output(self):
        outputs = {
            "diskus": "75079680\n",
            "pdu": "75079680 ┌──wide│████████│100%\n",
            "dust": "75079680B ┌── wide\n",
            "dua": "      4096 b empty\n  75079680 b wide\n",
            "gdu": " 40964096 wide\n",
        }
        for name, output in outputs.items():
            with self.subTest(name):
                self.assertIsNone(answer(name).mismatch(output.encode(), "wide", FACTS))
                self.assertIsNotNone(answer(name).mismatch(output.encode(), "wide", OTHER))

    def test_kib_are_rounded_up(self):
        gnu = arms.KIBIBYTES
        odd = arms.Facts(allocated=1536, directories=1, directory_bytes=0)
        self.assertTrue(gnu.agrees(gnu.total("2\tx\n", "x"), odd))
        self.assertFalse(gnu.agrees(gnu.total("1\tx\n", "x"), odd))

    def test_output_without_a_total_has_none(self):
        self.assertIsNone(arms.KIBIBYTES.total("2\tother\n", "x"))

    def test_the_reference_counts_links_once_and_follows_nothing(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch) / "tree"
            (root / "inside").mkdir(parents=True)
            (root / "file").write_bytes(b"x" * 10_000)
            (root / "inside/link").hardlink_to(root / "file")
            (root / "loop").symlink_to(root)
            facts = arms.facts_of(root)
            own = sum(path.lstat().st_blocks * 512 for path in [root, root / "inside"])
            self.assertEqual(facts.directories, 2)
            self.assertEqual(facts.directory_bytes, own)
            files = [root / "file", root / "loop"]
            self.assertEqual(facts.allocated, own + sum(path.lstat().st_blocks * 512 for path in files))


if __name__ == "__main__":
    unittest.main()
