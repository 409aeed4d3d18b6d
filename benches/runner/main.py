"""The command line of a comparison: builds tools, measures cases, writes report and run directory.
"""

import argparse
import contextlib
import datetime
import json
import os
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
    preparer: type = run.Preparer


def main(comparison):
    """Prepares the cases, has them measured, and writes the run directory."""
    options = parse_arguments(comparison)
    tools = build.tools(
        baseline=baseline_command(options.baseline or comparison.command),
        fathom=None if options.no_fathom else options.fathom,
        earlier=options.earlier,
        floor=comparison.floor,
        rivals=comparison.rivals(options),
        with_slowfs=any(name.startswith("fuse") for name in options.cases),
    )
    known = {case.name: case for case in all_cases(comparison, tools)}
    directory = options.out or run_directory(comparison.suffix)
    preparer = comparison.preparer(tools, corpora, log)
    with contextlib.ExitStack() as stack:
        prepared, skipped = prepare(preparer, known, options, stack)
        if not prepared:
            sys.exit(f"no case can be measured: {'; '.join(skipped.values())}")
        directory.mkdir(parents=True)
        status, tables = measure(prepared, options, directory)
    found = json.loads((directory / "run.json").read_text())
    about = report.About(
        title=comparison.title,
        method=comparison.method,
        remark=comparison.remark,
        command=f"python3 benches/{comparison.script} {shlex.join(scrubbed(sys.argv[1:]))}".rstrip(),
        machine=machine.facts(corpora.ROOT),
        versions=build.versions(tools, comparison.baseline),
        trees={name: corpora.facts_of(name) for name in sorted({one.case.corpus for one in prepared})},
        missing=dict(tools.missing, **skipped),
    )
    (directory / "README.md").write_text(report.readme(about, prepared, found, tables))
    log(f"wrote {os.path.relpath(directory)}")
    is_missed = skipped or any(one.unmet for one in prepared) or any(row[0] == "missed" for row in report.sizes(prepared))
    sys.exit(max(status, 1) if is_missed else status)


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
    if not options.fathom.exists():
        parser.error(f"no program '{options.fathom}': build it with 'cargo build --release'")
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
    parser.add_argument("--no-fathom", action="store_true", help="measure the other programs alone")
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


def prepare(preparer, known, options, stack):
    """Returns (prepared cases, case -> reason why it is not among them)."""
    chosen = [cases.only(known[name], options.arms, options.without) for name in options.cases]
    if any(case.reload for case in chosen):
        run.reload({word for case in chosen for arm in case.arms for word in arm.command})
    prepared, skipped = [], {}
    for case in chosen:
        try:
            prepared.append(preparer.prepare(case, stack))
        except (run.Failure, OSError, subprocess.SubprocessError) as failure:
            log(f"{case.name}: not run: {failure}")
            skipped[f"case {case.name}"] = str(failure)
    return prepared, skipped


def measure(prepared, options, directory):
    """Has the cases measured. Returns (exit status, the tables as Markdown). After Ctrl-C, what was measured before
    counts.
    """
    (directory / "cases.toml").write_text("".join(one.text(options.blocks) for one in prepared))
    command = [str(options.fathom.resolve()), "bench", "run", "--cases", "cases.toml", "--markdown"]
    command += ["--json=run.json", "--html=page.html"]
    command += [] if options.seed is None else [f"--seed={options.seed}"]
    with subprocess.Popen(command, cwd=directory, env=run.ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        while True:
            try:
                tables, _ = process.communicate()
                break
            except KeyboardInterrupt:
                # The terminal has interrupted fathom as well, which ends by itself and says what it has.
                continue
    print(tables)
    if not (directory / "run.json").exists():
        shutil.rmtree(directory)
        sys.exit(process.returncode or 1)
    return process.returncode, tables


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
