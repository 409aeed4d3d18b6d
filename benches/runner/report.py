"""The run directory of a comparison: what `fathom bench run` wrote, and the README around it."""

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """A requirement of a case, and the measurement."""

    case: str
    requirement: str
    measured: str
    outcome: str  # PASS, FAIL, or another text if there is no verdict


# Group of fathom -> groups that may beat it. Fixed models and thread counts exist only without
# order.
PROGRAMS = ("baseline", "rival", "tuned")
COMPETITORS = {"fathom": (*PROGRAMS, "fixed"), "ordered": PROGRAMS}


def losses(prepared, run):
    """Lists each case in which another program, or fathom with fixed options, was faster than fathom, in a `run`
    of fathom's JSON.
    """
    lines = []
    for one in prepared:
        groups = {arm.name: arm.group for arm in one.case.arms}
        found = [arm for arm in run["arms"] if arm["cell"] == one.case.name and arm["runs"] > 0]
        if not found:
            lines.append(f"- {one.case.title}: nothing was measured")
        median = {arm["method"]: arm["seconds"]["median"] for arm in found}
        for group, competitors in COMPETITORS.items():
            for ours in [name for name in median if groups[name] == group]:
                faster = [name for name in median if groups[name] in competitors and median[name] < median[ours]]
                lines += [f"- {one.case.title}: {name}, {median[ours] / median[name]:.2f} times as fast as {ours}" for name in faster]
    return lines


def unmet(prepared):
    """Returns a row for each requirement on an arm that is out."""
    return [["not measured", one.case.name, f"{need.ours}: {need.kind} at most {need.limit} {need.than}".rstrip(), ""] for one in prepared for need in one.unmet]


def sizes(prepared):
    """Returns a row for each requirement on what an arm writes, and whether all are met."""
    rows = []
    for one in prepared:
        for arm in one.case.arms:
            if one.case.entry_bytes_max and arm.group == "fathom":
                each = one.made[arm.name] / one.entries
                outcome = "met" if 0 < each <= one.case.entry_bytes_max else "missed"
                rows.append([outcome, one.case.name, f"{arm.name} writes at most {one.case.entry_bytes_max} bytes an entry", f"{each:.1f}"])
    return rows


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
    machine: dict
    versions: dict
    trees: dict  # corpus -> content
    missing: dict  # rival or case -> reason why it is not in the run


def readme(about, prepared, run, tables):
    """Formats the README: conditions, the command for repetition, and the `tables` of fathom."""
    notes = {arm.name: arm.note for one in prepared for arm in one.case.arms if arm.note}
    trees = {f"tree `{name}`": tree_text(tree) for name, tree in about.trees.items()}
    missing = {name: f"not measured: {why}" for name, why in about.missing.items()}
    listed = {**about.machine, **about.versions, **trees, **missing}
    excluded = [f"- {one.case.name}: {name} is out: {why}" for one in prepared for name, why in one.excluded.items()]
    cells = [[one.case.name, one.case.title, state(one)] for one in prepared]
    own_rows = [*unmet(prepared), *sizes(prepared)]
    sections = [
        f"# {about.title}\n",
        f"    {about.command}\n",
        markdown(["what", "which"], [[label, text] for label, text in listed.items()], numbers=False),
        method(about, run),
        "".join(f"- {name} {note}.\n" for name, note in sorted(notes.items())),
        markdown(["case", "what", "how"], cells, numbers=False),
        markdown(["outcome", "case", "required", "measured"], own_rows, numbers=False) if own_rows else "",
        "## Where fathom loses\n",
        "\n".join(losses(prepared, run) or ["Nowhere in this run."]) + "\n",
        "## Measured\n",
        *(["\n".join(excluded) + "\n"] if excluded else []),
        tables,
    ]
    return "\n".join(section for section in sections if section)


def state(one):
    """Describes how a case was run."""
    cache = "caches dropped before every run" if one.case.cold else "caches warm"
    slow = ", 1 ms an operation" if one.case.slow else ""
    pipe = ", standard output a pipe" if one.case.drain else ""
    answer = f"; the baseline's answer: {one.answer}" if one.answer else ""
    return f"{cache}{slow}{pipe}{answer}"


def tree_text(tree):
    return f"{tree['entries']:,} entries in {tree['directories']:,} directories; {tree['origin']}"


def method(about, run):
    """Describes the method, in paragraphs."""
    text = (METHOD + about.remark).rstrip().format(method=about.method, seed=run["seed"])
    paragraphs = [textwrap.fill(paragraph, LINE, break_on_hyphens=False) for paragraph in text.split("\n\n")]
    return "\n\n".join(paragraphs) + "\n"


LINE = 119
METHOD = """\
{method} An arm that disagrees or fails is out, and listed. Then `fathom bench run` measures the rest: in each block,
every arm runs once, and the baseline twice, in an order shuffled with seed {seed}.

Ratios are medians of within-block ratios, of the time divided by the baseline's; in brackets their 95 % interval over
blocks. The best of a group is the one with the lowest median, which errs against fathom. Two copies of the baseline
tell what this machine cannot tell apart. A cold run drops page, dentry and inode caches of this machine and then reads
the program and its libraries back in; what lies below a virtual disk may still be cached. The floor is a C program that
makes only the necessary system calls, tried with each number of threads.

"""
