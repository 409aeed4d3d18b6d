"""Tests of the parts that decide what a run says: totals, ratios, verdicts.

Run them with `python3 -m unittest discover benches`; they measure nothing.
"""

import random
import tempfile
import unittest
from pathlib import Path

import du
from dubench import arms, cases, report, run, stats

FACTS = arms.Facts(allocated=40_960_000 + 34_119_680, directories=1, directory_bytes=34_119_680)


def rival(name):
    return next(arm for arm, _ in arms.RIVALS if arm.name == name)


def samples(arm, *seconds, maxrss_kib=1024):
    return {block: run.Sample("case", arm, block, s, 0, 0, maxrss_kib) for block, s in enumerate(seconds)}


def result_of(needs, **seconds):
    """A result with arms named after their groups."""
    made = [arms.Arm(group, group, ("TREE",)) for group in seconds]
    result = run.Result(cases.Case("case", "a case", "real", made, needs), FACTS, blocks=3)
    result.samples = {group: samples(group, *times) for group, times in seconds.items()}
    return result


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
                self.assertTrue(rival(name).agrees(rival(name).total(output, "wide"), FACTS))

    def test_kib_are_rounded_up(self):
        gnu = arms.gnu_du(["du"], "-s")
        odd = arms.Facts(allocated=1536, directories=1, directory_bytes=0)
        self.assertTrue(gnu.agrees(gnu.total("2\tx\n", "x"), odd))
        self.assertFalse(gnu.agrees(gnu.total("1\tx\n", "x"), odd))

    def test_output_without_a_total_has_none(self):
        self.assertIsNone(arms.gnu_du(["du"], "-s").total("2\tother\n", "x"))

    def test_the_reference_counts_links_once_and_follows_nothing(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = Path(scratch) / "tree"
            (root / "inside").mkdir(parents=True)
            (root / "file").write_bytes(b"x" * 10_000)
            (root / "inside/link").hardlink_to(root / "file")
            (root / "loop").symlink_to(root)
            facts = run.facts_of(root)
            own = sum(path.lstat().st_blocks * 512 for path in [root, root / "inside"])
            self.assertEqual(facts.directories, 2)
            self.assertEqual(facts.directory_bytes, own)
            files = [root / "file", root / "loop"]
            self.assertEqual(facts.allocated, own + sum(path.lstat().st_blocks * 512 for path in files))


class Ratios(unittest.TestCase):
    def test_pairs_cancel_what_a_whole_block_suffers(self):
        slow, fast = samples("a", 2, 20, 200), samples("b", 1, 10, 100)
        ratio = stats.ratio(slow, fast, random.Random(1))
        self.assertAlmostEqual(ratio.value, 2)
        self.assertAlmostEqual(ratio.low, 2)
        self.assertAlmostEqual(ratio.high, 2)

    def test_only_common_blocks_count(self):
        many, few = samples("a", 3, 3, 9, 9, 9), samples("b", 1, 1)
        self.assertEqual(stats.ratio(many, few, random.Random(1)).pairs, 2)
        self.assertIsNone(stats.ratio(many, {}, random.Random(1)))

    def test_the_interval_holds_the_median_and_widens_with_noise(self):
        ratio = stats.ratio(samples("a", 1, 2, 3, 4, 5), samples("b", 1, 1, 1, 1, 1), random.Random(1))
        self.assertAlmostEqual(ratio.value, 3)
        self.assertTrue(1 <= ratio.low < 3 < ratio.high <= 5)


class Verdicts(unittest.TestCase):
    def outcome(self, need, **seconds):
        return report.Report([result_of((need,), **seconds)], random.Random(1)).verdicts[0].outcome

    def test_faster_means_at_least_the_limit(self):
        need = cases.Need("gnu", 1.9)
        self.assertEqual(self.outcome(need, gnu=[2, 2, 2], fathom=[1, 1, 1]), "PASS")
        self.assertEqual(self.outcome(need, gnu=[1.8, 1.8, 1.8], fathom=[1, 1, 1]), "FAIL")

    def test_within_means_at_most_the_limit(self):
        need = cases.Need("floor", 1.12)
        self.assertEqual(self.outcome(need, floor=[1, 1, 1], fathom=[1.1, 1.1, 1.1]), "PASS")
        self.assertEqual(self.outcome(need, floor=[1, 1, 1], fathom=[1.2, 1.2, 1.2]), "FAIL")

    def test_an_interval_across_the_limit_is_said(self):
        outcome = self.outcome(cases.Need("floor", 1.12), floor=[1, 1, 1], fathom=[1.0, 1.1, 1.3])
        self.assertEqual(outcome, "PASS (interval crosses)")

    def test_without_fathom_nothing_passes(self):
        self.assertEqual(self.outcome(cases.Need("gnu", 1.9), gnu=[1, 1, 1]), "not measured")

    def test_an_excluded_arm_is_nobody_s_best(self):
        result = result_of((cases.Need("rival", 1.25),), rival=[0.1, 0.1, 0.1], fathom=[1, 1, 1])
        result.excluded["rival"] = "wrong total"
        self.assertEqual(report.Report([result], random.Random(1)).verdicts[0].outcome, "not measured")

    def test_memory_is_compared_with_the_leanest_rival(self):
        result = result_of((cases.Need("memory-rival", 0),), rival=[1], fathom=[1])
        result.samples["fathom"] = samples("fathom", 1, maxrss_kib=2048)
        self.assertEqual(report.Report([result], random.Random(1)).verdicts[0].outcome, "FAIL")

    def test_a_loss_is_listed(self):
        lost = report.Report([result_of((), gnu=[1, 1, 1], fathom=[2, 2, 2])], random.Random(1)).losses()
        self.assertEqual(lost, ["- a case: gnu, 2.00 [2.00, 2.00] times as fast"])


class Blocks(unittest.TestCase):
    def test_only_a_long_and_much_slower_arm_is_cut_short(self):
        self.assertTrue(result_of((), gnu=[1], fathom=[5]).slow(arms.Arm("fathom", "fathom", ())))
        self.assertFalse(result_of((), gnu=[1], fathom=[3]).slow(arms.Arm("fathom", "fathom", ())))
        self.assertFalse(result_of((), gnu=[0.01], fathom=[0.5]).slow(arms.Arm("fathom", "fathom", ())))


class CommandLine(unittest.TestCase):
    def test_no_directory_of_this_machine_is_written_down(self):
        words = ["--gnu=/opt/new/du -x", "--fathom", "/home/me/fathom", "--cases", "fuse,pipe"]
        self.assertEqual(du.scrubbed(words), ["--gnu=du -x", "--fathom", "fathom", "--cases", "fuse,pipe"])


if __name__ == "__main__":
    unittest.main()
