"""Tests of the pictures: the chart shows the published runs, the terminal shows every character."""

import json
import pathlib
import re
import tempfile
import unittest
import xml.etree.ElementTree

import pictures
import reproduced

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return [element.text for element in xml.etree.ElementTree.fromstring(svg).iter(f"{SVG}text")]


class Chart(unittest.TestCase):
    def test_the_committed_chart_is_that_of_the_committed_runs(self):
        committed = pictures.TOP / "docs/pictures/speed.svg"
        self.assertEqual(committed.read_text(encoding="utf-8"), pictures.chart())

    def test_a_bar_is_as_long_as_its_median(self):
        panel = pictures.Panel("t", "s", "run", "case", {"fathom": "a", "rival": "b"})
        with tempfile.TemporaryDirectory() as runs:
            run = pathlib.Path(runs, "run")
            run.mkdir()
            rows = ["case,arm,block,seconds"]
            rows += [f"case,a,{block},{seconds}" for block, seconds in enumerate((1, 1, 9))]
            rows += ["case,b,0,4", "other,b,0,400"]
            (run / "raw.csv").write_text("\n".join(rows))
            drawn = pictures.chart((panel,), pathlib.Path(runs))
            lengths = re.findall(r'width="([0-9.]+)" height="14"', drawn)
            self.assertEqual(lengths, ["125.0", "500.0"])
            self.assertEqual(texts(drawn)[1:], ["fathom", "1", "rival", "4"])
            samples = [("a", 1, ""), ("a", 9, "steal"), ("b", 4, "")]
            rows = [{"cell": "case", "method": arm, "seconds": seconds, "discarded": why} for arm, seconds, why in samples]
            (run / "run.json").write_text(json.dumps({"rows": rows}))
            self.assertEqual(pictures.chart((panel,), pathlib.Path(runs)), drawn)
            with self.assertRaisesRegex(ValueError, "no runs of 'c'"):
                pictures.median(pictures.Panel("t", "s", "run", "case", {}), "c", pathlib.Path(runs))


class Reproduced(unittest.TestCase):
    def test_the_committed_charts_are_those_of_the_tables(self):
        for comparison in reproduced.COMPARISONS:
            committed = pictures.TOP / "docs/pictures" / comparison.name
            drawn = reproduced.chart(comparison, pictures.svg, pictures.SANS)
            self.assertEqual(committed.read_text(encoding="utf-8"), drawn, comparison.name)
            self.assertIn(f"pictures/{comparison.name}", reproduced.GUIDE.read_text(encoding="utf-8"))

    def test_bars_begin_at_the_base_and_are_as_long_as_the_logarithm_of_the_ratio(self):
        text = "| arm | published | here |\n|---|---|---|\n| `a` | 1:00 | 2 |\n| `b` | 4:00 | 1 |\n| `c` | | 2,000 |\n"
        comparison = reproduced.Comparison("x.svg", "t", "| arm |", "a", (("", "published", "here"),))
        self.assertEqual(list(reproduced.ratios(comparison, text)), [("b", [4, 0.5]), ("c", [None, 1000])])
        drawn = reproduced.chart(comparison, pictures.svg, pictures.SANS, text)
        bars = re.findall(r'x="([0-9.]+)" y="[0-9]+" width="([0-9.]+)" height="12" class="(published|here)"/><text', drawn)
        line = float(re.search(r'd="M([0-9.]+) ', drawn).group(1))
        double = reproduced.DOUBLE
        found = [(float(left) - line, float(width), kind) for left, width, kind in bars]
        self.assertEqual(found, [(0, 2 * double, "published"), (-double, double, "here"), (0, 6 * double, "here")])
        with self.assertRaisesRegex(ValueError, "no table with the header"):
            reproduced.table(text, "| method |")


class Terminal(unittest.TestCase):
    def test_every_word_bar_and_line_is_drawn(self):
        drawn = pictures.terminal(" 1M \x1b[32m█▌\x1b[m \x1b[2m├─ \x1b[m\x1b[1;34ma <b>\x1b[m\r\n", "du")
        self.assertEqual(texts(drawn), ["$ du", "1M", "a <b>"])
        self.assertIn('width="12.6"', drawn)
        self.assertEqual(drawn.count("<path"), 2)

    def test_styles_add_up_until_they_are_reset(self):
        drawn = pictures.terminal("\x1b[7m\x1b[38;5;3m* \x1b[1m\x1b[38;5;4mb\x1b[48;5;9m\x1b[39mc\x1b[0md\n", "x")
        classes = re.findall(r'class="([a-z ]*)"[^>]*>([*bcd])<', drawn)
        expected = [("reverse yellow", "*"), ("blue bold reverse", "b"), ("bold reverse", "c"), ("", "d")]
        self.assertEqual(classes, expected)
        self.assertEqual(drawn.count('class="bar"'), 3)

    def test_the_committed_explorer_is_whole(self):
        committed = (pictures.TOP / "docs/pictures/explore.svg").read_text(encoding="utf-8")
        shown = texts(committed)
        self.assertIn("$ fathom explore /usr/share", shown)
        self.assertEqual(shown.count("*"), 2)
        self.assertTrue(any("2 marked" in text for text in shown), shown)

    def test_the_committed_tree_is_whole(self):
        committed = (pictures.TOP / "docs/pictures/du-tree.svg").read_text(encoding="utf-8")
        self.assertIn("$ fathom du --tree /usr/share", texts(committed))
        self.assertIn("100%", " ".join(texts(committed)))


if __name__ == "__main__":
    unittest.main()
