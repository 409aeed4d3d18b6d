"""The command line of a comparison: builds tools, measures cases, writes report and run directory.
"""

import argparse
import datetime
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import corpora

from . import build, cases, machine, report, run


@dataclass(frozen=True)
class Comparison:
    """The parameters of a comparison."""

    script: str  # file name of the executed script in benches/
    title: str  # of the report
    summary: str  # of --help
    method: str  # description of the verification
    baseline: str  # name of the baseline program in tables
    option: str  # option that selects another baseline program
    command: str  # default command of the baseline program
    floor: str  # name of the lower-bound program in floor/
    cases: Callable  # tools -> every case
    names: tuple  # of the cases
    default: tuple
    quick: tuple
    rivals: Callable  # options -> (available rivals, reasons why others are missing)
    remark: str = ""  # additional notes for the reader
    suffix: str = ""  # of the run directory's name
    add_options: Callable = lambda parser: None
    runner: type = run.Runner


def main(comparison):
    """Measures and reports."""
    options = parse_arguments(comparison)
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    rng = random.Random(seed)
    log(f"seed {seed}")
    tools = build.tools(
        baseline=baseline_command(options.baseline or comparison.command),
        fathom=None if options.no_fathom else options.fathom,
        earlier=options.earlier,
        floor=comparison.floor,
        rivals=comparison.rivals(options),
        with_slowfs=any(name.startswith("fuse") for name in options.cases),
    )
    known = {case.name: case for case in all_cases(comparison, tools)}
    results, skipped = measure(comparison.runner(tools, corpora, rng, log), known, options)
    finished_report = report.Report(results, rng, comparison.baseline)
    print(finished_report.text())
    about = report.About(
        title=comparison.title,
        method=comparison.method,
        remark=comparison.remark,
        command=f"python3 benches/{comparison.script} {shlex.join(scrubbed(sys.argv[1:]))}".rstrip(),
        seed=seed,
        machine=machine.facts(corpora.ROOT),
        versions=build.versions(tools, comparison.baseline),
        trees={name: corpora.facts_of(name) for name in sorted({result.case.corpus for result in results})},
        missing=dict(tools.missing, **skipped),
    )
    directory = options.out or run_directory(comparison.suffix)
    report.write(directory, finished_report, about)
    log(f"wrote {os.path.relpath(directory)}")


def all_cases(comparison, tools):
    """Returns every case; with an earlier fathom, its arms are added to each."""
    found = comparison.cases(tools)
    if not (tools.fathom and tools.earlier):
        return found
    return [cases.with_earlier(case, tools.fathom, tools.earlier) for case in found]


def parse_arguments(comparison):
    parser = parser_of(comparison)
    options = parser.parse_args()
    options.cases = options.cases or list(comparison.quick if options.quick else comparison.default)
    options.blocks = options.blocks or (3 if options.quick else 10)
    if options.out and options.out.exists():
        parser.error(f"cannot write into '{options.out}': it is there already")
    if not options.no_fathom and not options.fathom.exists():
        parser.error(f"no program '{options.fathom}': build it with 'cargo build --release', or say --no-fathom")
    if options.earlier and not options.earlier.exists():
        parser.error(f"no program '{options.earlier}'")
    return options


def parser_of(comparison):
    def names(text):
        return case_names(text, comparison.names)

    known, quick = ", ".join(comparison.names), ", ".join(comparison.quick)
    baseline = f"the command of the {comparison.baseline} to measure (default: {comparison.command})"
    out = f"the run directory (default: benches/runs/DATE-KIND{comparison.suffix})"
    parser = argparse.ArgumentParser(description=comparison.summary)
    parser.add_argument("--cases", type=names, help=f"which, separated by commas, of {known}")
    parser.add_argument("--blocks", type=int, help="how often every arm runs (default: 10)")
    parser.add_argument("--quick", action="store_true", help=f"3 blocks of {quick}")
    parser.add_argument("--arms", help="only arms whose names contain one of these, separated by commas")
    parser.add_argument("--without", help="none of the arms whose names contain one of these, separated by commas")
    parser.add_argument("--fathom", type=Path, default=build.REPOSITORY / "target/release/fathom")
    parser.add_argument("--no-fathom", action="store_true", help="measure the others alone")
    parser.add_argument("--earlier", type=Path, metavar="PROGRAM", help=EARLIER_HELP)
    parser.add_argument(comparison.option, dest="baseline", help=baseline)
    comparison.add_options(parser)
    parser.add_argument("--seed", type=int, help="of the order and the intervals (default: random, and printed)")
    parser.add_argument("--out", type=Path, help=out)
    return parser


EARLIER_HELP = "another fathom, which this one must not be slower than"


def case_names(text, known):
    names = text.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no case '{unknown[0]}': choose from {', '.join(known)}")
    return names


def baseline_command(text):
    """Returns the words of the command, the first as a path: a cold run reads that file back in."""
    program, *words = shlex.split(text)
    return (shutil.which(program) or program, *words)


def measure(runner, known, options):
    """Returns (results, case -> reason why it was not run). An interrupt keeps the finished cases.
    """
    results, skipped = [], {}
    try:
        for name in options.cases:
            try:
                case = cases.only(known[name], options.arms, options.without)
                results.append(runner.run(case, options.blocks))
            except (run.Failure, OSError, subprocess.SubprocessError) as failure:
                log(f"{name}: not run: {failure}")
                skipped[f"case {name}"] = str(failure)
    except KeyboardInterrupt:
        log("interrupted: only the finished cases are reported")
    return results, skipped


def run_directory(suffix):
    """Returns a new directory. A second run on the same day gets a number."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    base = build.HERE / "runs" / f"{today}-{machine.kind(corpora.ROOT)}{suffix}"
    numbered = (base.with_name(f"{base.name}-{number}") for number in range(2, 1000))
    return next(path for path in (base, *numbered) if not path.exists())


def scrubbed(words):
    """Returns the arguments with each absolute path reduced to its last component."""
    return [re.sub(r"(^|[= ])/(?:[^/ ]+/)*", r"\1", word) for word in words]


def log(text):
    print(text, file=sys.stderr, flush=True)
