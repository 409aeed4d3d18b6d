"""The report of a run: a table for each case, the verdict on each requirement, and the run
directory.

The best rival, lower bound or fixed model is the arm of its group with the lowest median. Among
many arms the lowest median is partly luck, so this choice errs against fathom.
"""

import csv
import textwrap
from dataclasses import astuple, dataclass, fields

from . import stats
from .run import SLOW_BLOCKS, SLOW_FACTOR, SLOW_S, Sample


@dataclass(frozen=True)
class Verdict:
    """A requirement of a case, and the measurement."""

    case: str
    requirement: str
    measured: str
    outcome: str  # PASS, FAIL, or another text if there is no verdict


class Report:
    """Tables and verdicts of the results of a run."""

    def __init__(self, results, random, baseline="the baseline"):
        self.results = results
        self.random = random
        self.baseline = baseline
        self.tables = {result.case.name: self.table(result) for result in results}
        self.verdicts = [self.verdict(result, one) for result in results for one in result.case.requirements]

    def table(self, result):
        """Formats a case as Markdown, fastest arm first."""
        if not result.samples:
            return excluded(result) or "Nothing was measured.\n"
        baseline, floor = best(result, "baseline"), best(result, "floor")
        faster = f"times as fast as {self.baseline}"
        header = ["arm", "runs", "median ms", "min ms", faster, "times the best floor", "peak MiB"]
        names = sorted(result.samples, key=lambda name: stats.median_s(result.samples[name]))
        rows = [self.row(result, name, baseline, floor) for name in names]
        return markdown(header, rows) + excluded(result)

    def row(self, result, name, baseline, floor):
        samples = result.samples[name]
        return [
            name,
            str(len(samples)),
            milliseconds(stats.median_s(samples)),
            milliseconds(min(sample.seconds for sample in samples.values())),
            self.ratio_text(result, baseline, name),
            self.ratio_text(result, name, floor),
            f"{peak_mib(samples):.1f}",
        ]

    def ratio_text(self, result, above, below):
        if above is None or below is None or above == below:
            return "-"
        return str(self.ratio(result, above, below) or "-")

    def ratio(self, result, above, below):
        return stats.ratio(result.samples[above], result.samples[below], self.random)

    def verdict(self, result, requirement):
        """Decides PASS or FAIL by the median of the paired ratios; notes if its interval contains
        the limit.
        """
        measured, good, certain = self.measure(result, requirement)
        outcome = {True: "PASS", False: "FAIL", None: "not measured"}[good]
        if requirement.kind == "published" and measured != "-":
            outcome = "information"
        crosses = "" if certain else " (interval crosses)"
        return Verdict(result.case.title, requirement.text, measured, outcome + crosses)

    def measure(self, result, requirement):
        """Returns (measurement, whether it suffices, whether its interval lies on one side of the
        limit).
        """
        ours = best(result, requirement.ours)
        if ours is None:
            return "-", None, True
        if requirement.kind == "published":
            return self.measure_published(result, requirement.figure, ours), None, True
        if requirement.kind.startswith("memory"):
            return measure_memory(result, requirement, ours)
        if requirement.kind == "seconds":
            seconds = stats.median_s(result.samples[ours])
            return f"{milliseconds(seconds)} ms", seconds <= requirement.limit, True
        if requirement.kind == "size":
            each = result.made[ours] / result.entries
            return f"{each:.1f} bytes", 0 < each <= requirement.limit, True
        other = best(result, requirement.reference)
        if other is None:
            return "-", None, True
        faster = requirement.kind == "faster"
        ratio = self.ratio(result, other, ours) if faster else self.ratio(result, ours, other)
        if ratio is None:
            return "-", None, True
        good = ratio.value >= requirement.limit if faster else ratio.value <= requirement.limit
        return f"{ratio} ({other})", good, not ratio.low < requirement.limit < ratio.high

    def measure_published(self, result, figure, ours):
        """Returns the ratio to a published time: raw, per entry, and scaled by the time of the
        baseline.
        """
        seconds, baseline = stats.median_s(result.samples[ours]), best(result, "baseline")
        times = figure.seconds / seconds
        said = [f"{times:.2f} as it is", f"{times * result.entries / figure.entries:.2f} an entry"]
        ratio = self.ratio(result, baseline, ours) if baseline else None
        if ratio:
            scaled = ratio.value * figure.seconds / figure.baseline_s
            said.append(f"{scaled:.2f} by the time of {baseline}, {milliseconds(figure.baseline_s)} ms there")
        return f"{', '.join(said)} ({milliseconds(seconds)} ms here)"

    def losses(self):
        """Lists each case in which another program, or fathom with fixed options, was faster than
        fathom.
        """
        lines = []
        for result in self.results:
            for group, competitors in COMPETITORS.items():
                for ours in names_of(result, group):
                    lines += self.losses_of(result, ours, competitors)
        return lines

    def losses_of(self, result, ours, competitors):
        for name in [name for group in competitors for name in names_of(result, group)]:
            if faster(result, name, ours):
                ratio = self.ratio(result, ours, name)
                yield f"- {result.case.title}: {name}, {ratio} times as fast as {ours}"

    def text(self):
        """Formats all tables and verdicts as Markdown."""
        parts = []
        for result in self.results:
            parts += [f"### {result.case.title}\n", f"{state(result)}\n", self.tables[result.case.name]]
        return "\n".join([self.verdict_table(), *parts])

    def verdict_table(self):
        """Formats the requirements with their measurements."""
        rows = [list(astuple(verdict)) for verdict in self.verdicts]
        return markdown(["case", "needed", "measured", "outcome"], rows, numbers=False) if rows else ""


# Group of fathom -> groups that may beat it. Fixed models and thread counts exist only without
# order.
PROGRAMS = ("baseline", "rival", "tuned")
COMPETITORS = {"fathom": (*PROGRAMS, "fixed"), "ordered": PROGRAMS}


def measure_memory(result, requirement, ours):
    peak = peak_mib(result.samples[ours])
    if requirement.kind == "memory":
        return f"{peak:.1f} MiB", peak <= requirement.limit, True
    peaks = {name: peak_mib(result.samples[name]) for name in names_of(result, requirement.reference)}
    if not peaks:
        return f"{peak:.1f} MiB", None, True
    least = min(peaks, key=peaks.get)
    return f"{peak:.1f} MiB, {least} {peaks[least]:.1f}", peak < peaks[least], True


def best(result, wanted):
    """Returns the name of the fastest measured arm of a group, or of the arm of that name; or None.
    """
    return min(names_of(result, wanted), key=lambda name: stats.median_s(result.samples[name]), default=None)


def names_of(result, wanted):
    """Returns the measured arms of a group, or of a name, that were not excluded."""
    names = [arm.name for arm in result.case.arms if wanted in (arm.group, arm.name)]
    return [name for name in names if name in result.samples and name not in result.excluded]


def faster(result, name, reference):
    return stats.median_s(result.samples[name]) < stats.median_s(result.samples[reference])


def peak_mib(samples):
    return max(sample.maxrss_kib for sample in samples.values()) / 1024


def milliseconds(seconds):
    return f"{seconds * 1000:.1f}" if seconds < 1 else f"{seconds * 1000:.0f}"


def state(result):
    """Describes how a case was run."""
    cache = "cache dropped before every run" if result.case.cold else "cache warm"
    slow = ", 1 ms an operation" if result.case.slow else ""
    pipe = ", standard output a pipe" if result.case.drain else ""
    answer = f" The baseline's answer: {result.answer}." if result.answer else ""
    return f"{result.blocks} blocks, {cache}{slow}{pipe}; {result.load}.{answer}"


def excluded(result):
    """Lists the excluded arms of a case with their reasons."""
    lines = [f"- out: {name}: {reason}" for name, reason in result.excluded.items()]
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def markdown(header, rows, numbers=True):
    """Formats a table; with `numbers`, all columns but the first are right-aligned."""
    rule = ["---", *["---:" if numbers else "---"] * (len(header) - 1)]
    lines = ["| " + " | ".join(row) + " |" for row in [header, rule, *rows]]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class About:
    """Information for judging or repeating a run."""

    title: str
    method: str  # description of the verification
    remark: str  # additional notes for this comparison
    command: str
    seed: int
    machine: dict
    versions: dict
    trees: dict  # corpus -> content
    missing: dict  # rival or case -> reason why it is not in the run


def write(directory, report, about):
    """Writes the run directory: README.md and raw.csv."""
    directory.mkdir(parents=True)
    (directory / "README.md").write_text(readme(report, about))
    with open(directory / "raw.csv", "w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(field.name for field in fields(Sample))
        for result in report.results:
            for samples in result.samples.values():
                rows.writerows(astuple(sample) for sample in samples.values())


def readme(report, about):
    """Formats the README: measurements, conditions, and the command for repetition."""
    arms = [arm for result in report.results for arm in result.case.arms]
    notes = {arm.name: arm.note for arm in arms if arm.note}
    trees = {f"tree `{name}`": tree_text(tree) for name, tree in about.trees.items()}
    missing = {name: f"not measured: {why}" for name, why in about.missing.items()}
    listed = {**about.machine, **about.versions, **trees, **missing}
    sections = [
        f"# {about.title}\n",
        f"    {about.command}\n",
        markdown(["what", "which"], [[label, text] for label, text in listed.items()], numbers=False),
        method(about, report.baseline),
        "".join(f"- {name} {note}.\n" for name, note in sorted(notes.items())),
        "## Needed and measured\n",
        report.text(),
        "## Where fathom loses\n",
        "\n".join(report.losses() or ["Nowhere in this run."]) + "\n",
    ]
    return "\n".join(sections)


def tree_text(tree):
    return f"{tree['entries']:,} entries in {tree['directories']:,} directories; {tree['origin']}"


def method(about, baseline):
    """Describes the method, in paragraphs."""
    slow = {"slow_factor": SLOW_FACTOR, "slow_s": SLOW_S, "slow_blocks": SLOW_BLOCKS}
    text = (METHOD + about.remark).rstrip().format(method=about.method, seed=about.seed, baseline=baseline, **slow)
    paragraphs = [textwrap.fill(paragraph, LINE, break_on_hyphens=False) for paragraph in text.split("\n\n")]
    return "\n\n".join(paragraphs) + "\n"


LINE = 119
METHOD = """\
{method} An arm that disagrees or fails is out, and listed. Then come blocks: in each, every arm runs once, in an order
shuffled with seed {seed}. An arm that took {slow_factor} times {baseline}'s time, and over {slow_s} s, in the first
block runs in the first {slow_blocks} only.

Ratios are medians of within-block ratios; in brackets their 95 % bootstrap interval over blocks. The best rival,
floor or fixed model is the one with the lowest median, which errs against fathom. Arms "(again)" are a second copy of
one command: how far their ratio is from 1 is what this machine cannot tell apart. Peak memory is the largest
resident set of any run. A cold run drops page, dentry and inode caches of this machine and then reads the program
and its libraries back in; what lies below a virtual disk may still be cached. The floor is a C program that makes
only the necessary system calls, tried with each number of threads.

"""
