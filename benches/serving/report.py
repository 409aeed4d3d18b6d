"""The report of a run: verdicts, the best model of each case, a table for each case, losses, and
the run directory.

The best of several servers has the best median. Among many the best is partly luck, so this choice
errs against fathom.
"""

import csv
import textwrap
from dataclasses import astuple

from runner import stats
from runner.report import LINE, Verdict, markdown
from serve_arms import AUTO, FATHOM_MODELS, model

from .cases import COLUMNS, FIGURES

# The kinds in which the models differ in speed.
SPEED = ("hot", "mixed", "random")
# Whether the case is about speed -> groups that may beat fathom with its default model.
COMPETITORS = {False: ("nginx", "threads", "rival"), True: ("nginx", "threads", "rival", "fixed")}


class Report:
    """Tables and verdicts of the results of a run. `skipped` are cases that could not run, `cases`
    all cases.
    """

    def __init__(self, cases, results, skipped, random):
        self.cases, self.skipped, self.random = cases, skipped, random
        self.results = {result.case.name: result for result in results}
        self.tables = {name: self.table(result) for name, result in self.results.items()}
        self.verdicts = [self.verdict(case, requirement) for case in cases for requirement in case.requirements]

    def verdict(self, case, requirement):
        """Decides PASS or FAIL by the median; notes if its interval contains the limit."""
        result = self.results.get(case.name)
        if result is None:
            return Verdict(case.title, requirement.text, self.skipped.get(case.name, "-"), "not run")
        measured, interval, good = self.measure(result, requirement)
        if interval is None:
            return Verdict(case.title, requirement.text, measured, "not run")
        crosses = interval[0] < requirement.limit < interval[1]
        if requirement.kind == "not-worse" and crosses and not good:
            return Verdict(case.title, requirement.text, measured, "no difference")
        outcome = "PASS" if good else "FAIL"
        return Verdict(case.title, requirement.text, measured, outcome + " (interval crosses)" * crosses)

    def measure(self, result, requirement):
        """Returns (measurement, interval, whether it suffices); no interval if there is nothing to
        compare.
        """
        ours = best(result, "fathom")
        if ours is None:
            return out_text(result, AUTO), None, None
        if requirement.kind == "at-most":
            return self.measure_own(result, requirement, ours)
        other = best(result, requirement.reference)
        if other is None:
            return out_text(result, requirement.reference), None, None
        near = requirement.kind == "near"
        ratio = self.ratio(result, other, ours) if near else self.ratio(result, ours, other)
        if ratio is None:
            return "-", None, None
        good = ratio.value <= requirement.limit if near else ratio.value >= requirement.limit
        return f"{ratio} ({self.raw(result, ours, other)})", (ratio.low, ratio.high), good

    def measure_own(self, result, requirement, ours):
        values = list(result.values(ours, requirement.figure).values())
        value, low, high = stats.interval(values, self.random)
        text = FIGURES[requirement.figure].text
        return f"{text(value)} [{text(low)}, {text(high)}]", (low, high), value <= requirement.limit

    def raw(self, result, ours, other):
        """Formats both medians."""
        figure = FIGURES[result.case.figure]
        medians = [figure.text(result.median(name, result.case.figure)) for name in (ours, other)]
        return f"{medians[0]} against {medians[1]} {figure.label} of {other}"

    def ratio(self, result, name, reference):
        """Returns how many times better one server is in the case's figure; None without a common
        block.
        """
        figure = result.case.figure
        values, others = result.values(name, figure), result.values(reference, figure)
        above, below = (values, others) if FIGURES[figure].higher_wins else (others, values)
        return stats.ratio_of(above, below, self.random)

    def table(self, result):
        """Formats a case as Markdown, best server first."""
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
        """Formats the best model of each case, and the cost of the default choice."""
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
        """Lists each case in which another server, or fathom with a fixed model, was better than
        fathom.
        """
        for result in self.results.values():
            order = in_order(result)
            before = order[: order.index(AUTO)] if AUTO in order else []
            for name in before:
                if group_of(result, name) in COMPETITORS[result.case.kind in SPEED]:
                    ratio, raw = self.ratio(result, name, AUTO), self.raw(result, AUTO, name)
                    yield f"- {result.case.title}: {name}, {ratio} times as good ({raw})"

    def text(self):
        """Formats all results as Markdown."""
        verdicts = [list(astuple(verdict)) for verdict in self.verdicts]
        parts = ["## Needed and measured\n", markdown(["case", "needed", "measured", "outcome"], verdicts, numbers=False)]
        parts += ["## Models\n", self.models()]
        parts += ["## Where fathom loses\n", "\n".join(self.losses()) or "Nowhere in this run.", ""]
        for name, result in self.results.items():
            how = f"`{name}`: {result.blocks} blocks; {result.load}.\n"
            parts += [f"## {result.case.title}\n", how, self.tables[name]]
        return "\n".join(parts)


def in_order(result):
    """Returns the measured servers that were not excluded, best first."""
    figure = result.case.figure
    sign = -1 if FIGURES[figure].higher_wins else 1
    names = [arm.name for arm in result.arms if arm.name in result.figures and arm.name not in result.excluded]
    return sorted(names, key=lambda name: sign * result.median(name, figure))


def best(result, wanted):
    """Returns the best server of a group, or the one of that name; or None."""
    return next((name for name in in_order(result) if wanted in (group_of(result, name), name)), None)


def group_of(result, name):
    return next(arm.group for arm in result.arms if arm.name == name)


def out_text(result, wanted):
    """Describes why there is nothing to compare with."""
    reasons = [reason for name, reason in result.excluded.items() if wanted in (group_of(result, name), name)]
    return reasons[0] if reasons else "-"


def excluded(result):
    """Lists the excluded servers of a case with their reasons."""
    lines = [f"- out: {name}: {reason}" for name, reason in result.excluded.items()]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def write(directory, report, about, method):
    """Writes the run directory: README.md, and raw.csv with every figure of every run."""
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
    """Formats the README: measurements, conditions, and the command for repetition. `about` is
    label -> text.
    """
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
