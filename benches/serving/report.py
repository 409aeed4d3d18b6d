"""What a run says: what was needed against what was measured, which model wins where, a table a case, the losses, and
the run directory.

The best of several servers is the one with the best median. Of many one is best by luck, so this choice errs against
fathom.
"""

import csv
import textwrap
from dataclasses import astuple

from runner import stats
from runner.report import LINE, Verdict, markdown
from serve_arms import AUTO, FATHOM_MODELS, model

from .cases import COLUMNS, FIGURES

# The kinds in which the models differ by speed.
SPEED = ("hot", "mixed", "random")
# Whether it is about speed -> by whom fathom, as it chooses, may be beaten.
COMPETITORS = {False: ("nginx", "threads", "rival"), True: ("nginx", "threads", "rival", "fixed")}


class Report:
    """Tables and verdicts over the results of a run; `skipped` are cases that could not run, `cases` all of them."""

    def __init__(self, cases, results, skipped, random):
        self.cases, self.skipped, self.random = cases, skipped, random
        self.results = {result.case.name: result for result in results}
        self.tables = {name: self.table(result) for name, result in self.results.items()}
        self.verdicts = [self.verdict(case, need) for case in cases for need in case.needs]

    def verdict(self, case, need):
        """PASS or FAIL by the median; says when its interval reaches across the limit."""
        result = self.results.get(case.name)
        if result is None:
            return Verdict(case.title, need.text, self.skipped.get(case.name, "-"), "not run")
        measured, interval, good = self.measure(result, need)
        if interval is None:
            return Verdict(case.title, need.text, measured, "not run")
        crosses = interval[0] < need.limit < interval[1]
        if need.kind == "not-worse" and crosses and not good:
            return Verdict(case.title, need.text, measured, "no difference")
        outcome = "PASS" if good else "FAIL"
        return Verdict(case.title, need.text, measured, outcome + " (interval crosses)" * crosses)

    def measure(self, result, need):
        """(what was measured, its interval, whether it suffices); no interval when there is nothing to compare."""
        ours = best(result, "fathom")
        if ours is None:
            return out_text(result, AUTO), None, None
        if need.kind == "at-most":
            return self.measure_own(result, need, ours)
        other = best(result, need.than)
        if other is None:
            return out_text(result, need.than), None, None
        near = need.kind == "near"
        ratio = self.ratio(result, other, ours) if near else self.ratio(result, ours, other)
        if ratio is None:
            return "-", None, None
        good = ratio.value <= need.limit if near else ratio.value >= need.limit
        return f"{ratio} ({self.raw(result, ours, other)})", (ratio.low, ratio.high), good

    def measure_own(self, result, need, ours):
        values = list(result.values(ours, need.figure).values())
        value, low, high = stats.interval(values, self.random)
        text = FIGURES[need.figure].text
        return f"{text(value)} [{text(low)}, {text(high)}]", (low, high), value <= need.limit

    def raw(self, result, ours, other):
        """Both medians, in words."""
        figure = FIGURES[result.case.figure]
        medians = [figure.text(result.median(name, result.case.figure)) for name in (ours, other)]
        return f"{medians[0]} against {medians[1]} {figure.label} of {other}"

    def ratio(self, result, name, than):
        """How many times as good one server is as another, in the case's own figure; None without a common block."""
        figure = result.case.figure
        values, others = result.values(name, figure), result.values(than, figure)
        above, below = (values, others) if FIGURES[figure].higher_wins else (others, values)
        return stats.ratio_of(above, below, self.random)

    def table(self, result):
        """One case as Markdown, best server first."""
        columns = COLUMNS[result.case.kind]
        names = in_order(result)
        if not names:
            return excluded(result) or "Nothing was measured.\n"
        labels = [FIGURES[name].label for name in columns]
        header = ["server", "runs", *labels, f"times as good as {AUTO}", "bytes of head"]
        rows = [self.row(result, name, columns) for name in names]
        details = [f"- {name}: {result.details[name]}\n" for name in names if name in result.details]
        return markdown(header, rows) + "\n" * bool(details) + "".join(details) + excluded(result)

    def row(self, result, name, columns):
        figures = [FIGURES[figure].text(result.median(name, figure)) for figure in columns]
        ratio = self.ratio(result, name, AUTO) if name != AUTO and AUTO in result.figures else None
        return [name, str(len(result.figures[name])), *figures, str(ratio or "-"), str(result.heads.get(name, "-"))]

    def models(self):
        """Which way of reading wins where, and what the choice of none costs."""
        header = ["case", "figure", "auto", *FATHOM_MODELS, "best model", "auto times as good"]
        rows = [self.model_row(result) for result in self.results.values() if result.case.kind in SPEED]
        return markdown(header, rows) if rows else "Nothing was measured.\n"

    def model_row(self, result):
        figure, winner = result.case.figure, best(result, "fixed")
        arms = [AUTO, *map(model, FATHOM_MODELS)]
        medians = [FIGURES[figure].text(result.median(arm, figure)) if arm in result.figures else "-" for arm in arms]
        ratio = self.ratio(result, AUTO, winner) if winner and AUTO in result.figures else None
        name = winner.rpartition(" ")[2] if winner else "-"
        return [result.case.title, FIGURES[figure].label, *medians, name, str(ratio or "-")]

    def losses(self):
        """Each case in which another server, or fathom told what to do, did better than fathom by itself."""
        for result in self.results.values():
            order = in_order(result)
            before = order[: order.index(AUTO)] if AUTO in order else []
            for name in before:
                if group_of(result, name) in COMPETITORS[result.case.kind in SPEED]:
                    ratio, raw = self.ratio(result, name, AUTO), self.raw(result, AUTO, name)
                    yield f"- {result.case.title}: {name}, {ratio} times as good ({raw})"

    def text(self):
        """Everything measured, as Markdown."""
        verdicts = [list(astuple(verdict)) for verdict in self.verdicts]
        parts = ["## Needed and measured\n", markdown(["case", "needed", "measured", "outcome"], verdicts, numbers=False)]
        parts += ["## Models\n", self.models()]
        parts += ["## Where fathom loses\n", "\n".join(self.losses()) or "Nowhere in this run.", ""]
        for name, result in self.results.items():
            how = f"`{name}`: {result.blocks} blocks; {result.load}.\n"
            parts += [f"## {result.case.title}\n", how, self.tables[name]]
        return "\n".join(parts)


def in_order(result):
    """The servers that were measured and stayed in, best first."""
    figure = result.case.figure
    sign = -1 if FIGURES[figure].higher_wins else 1
    names = [arm.name for arm in result.arms if arm.name in result.figures and arm.name not in result.excluded]
    return sorted(names, key=lambda name: sign * result.median(name, figure))


def best(result, wanted):
    """The best server of a group, or the one of that name; or None."""
    return next((name for name in in_order(result) if wanted in (group_of(result, name), name)), None)


def group_of(result, name):
    return next(arm.group for arm in result.arms if arm.name == name)


def out_text(result, wanted):
    """Why there is nothing to compare with."""
    reasons = [reason for name, reason in result.excluded.items() if wanted in (group_of(result, name), name)]
    return reasons[0] if reasons else "-"


def excluded(result):
    """The servers that are out of a case, each with its reason."""
    lines = [f"- out: {name}: {reason}" for name, reason in result.excluded.items()]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def write(directory, report, about, method):
    """The run directory: README.md, and raw.csv with every figure of every run."""
    directory.mkdir(parents=True)
    (directory / "README.md").write_text(readme(report, about, method))
    with open(directory / "raw.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("case", "server", "block", "figure", "value"))
        for result in report.results.values():
            for name, blocks in result.figures.items():
                for block, figures in blocks.items():
                    run = (result.case.name, name, block)
                    rows.writerows((*run, figure, f"{value:.6g}") for figure, value in figures.items())


def readme(report, about, method):
    """The page that says what was measured, on what, and how to do it again. `about` is label -> text."""
    paragraphs = [textwrap.fill(paragraph, LINE, break_on_hyphens=False) for paragraph in method.strip().split("\n\n")]
    listed = [[label, text] for label, text in about.items() if label != "command"]
    sections = [
        "# fathom serve against nginx, static-web-server and miniserve\n",
        f"    {about['command']}\n",
        markdown(["what", "which"], listed, numbers=False),
        "\n\n".join(paragraphs) + "\n",
        report.text(),
    ]
    return "\n".join(sections)
