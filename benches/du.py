#!/usr/bin/env python3
"""Measures `fathom du` against GNU du, its rivals and the floor, and writes a run directory.

Owns the command line and the order of work; the parts are in dubench/, the trees in corpora.py, the rivals in
rivals.py. Run it on a machine that does nothing else.
"""

import argparse
import dataclasses
import datetime
import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import corpora
import rivals
from dubench import build, cases, machine, report, run

HERE = Path(__file__).resolve().parent
QUICK_CASES = ("real-warm", "fuse", "startup")


def main():
    options = parse_arguments()
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    chance = random.Random(seed)
    say(f"seed {seed}")
    if not rivals.INDEX.exists():
        rivals.install()
    fathom = None if options.no_fathom else options.fathom
    tools = build.tools(options.gnu, fathom, with_slowfs=any(name.startswith("fuse") for name in options.cases))
    results, skipped = measure(tools, options, chance)
    finished = report.Report(results, chance)
    print(finished.text())
    about = report.About(
        command=f"python3 benches/du.py {shlex.join(scrubbed(sys.argv[1:]))}".rstrip(),
        seed=seed,
        machine=machine.facts(corpora.ROOT),
        versions=build.versions(tools),
        trees={name: corpora.facts_of(name) for name in sorted({result.case.corpus for result in results})},
        missing=dict(tools.missing, **skipped),
    )
    directory = run_directory(options)
    report.write(directory, finished, about)
    say(f"wrote {os.path.relpath(directory)}")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=case_names, help=f"which, separated by commas, of {', '.join(cases.NAMES)}")
    parser.add_argument("--blocks", type=int, help="how often every arm runs (default: 10)")
    parser.add_argument("--quick", action="store_true", help=f"3 blocks of {', '.join(QUICK_CASES)}")
    parser.add_argument("--arms", help="only arms whose names contain one of these, separated by commas")
    parser.add_argument("--without", help="none of the arms whose names contain one of these, separated by commas")
    parser.add_argument("--fathom", type=Path, default=build.REPOSITORY / "target/release/fathom")
    parser.add_argument("--no-fathom", action="store_true", help="measure the others alone")
    parser.add_argument("--gnu", help="the command of the GNU du to measure (default: du)")
    parser.add_argument("--seed", type=int, help="of the order and the intervals (default: random, and printed)")
    parser.add_argument("--out", type=Path, help="the run directory (default: benches/runs/DATE-KIND)")
    options = parser.parse_args()
    options.cases = options.cases or list(QUICK_CASES if options.quick else cases.DEFAULT)
    options.blocks = options.blocks or (3 if options.quick else 10)
    if options.out and options.out.exists():
        parser.error(f"cannot write into '{options.out}': it is there already")
    if not options.no_fathom and not options.fathom.exists():
        parser.error(f"no program '{options.fathom}': build it with 'cargo build --release', or say --no-fathom")
    return options


def case_names(text):
    names = text.split(",")
    unknown = [name for name in names if name not in cases.NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no case '{unknown[0]}': choose from {', '.join(cases.NAMES)}")
    return names


def measure(tools, options, chance):
    """(the results, case -> why it was not run). An interrupt keeps the cases that are finished."""
    runner = run.Runner(tools, corpora.corpus, chance, say)
    known = cases.all_cases(tools)
    results, skipped = [], {}
    try:
        for name in options.cases:
            try:
                results.append(runner.run(only(known[name], options.arms, options.without), options.blocks))
            except (run.Failure, OSError, subprocess.SubprocessError) as failure:
                say(f"{name}: not run: {failure}")
                skipped[f"case {name}"] = str(failure)
    except KeyboardInterrupt:
        say("interrupted: only the finished cases are reported")
    return results, skipped


def only(case, wanted, unwanted):
    """The case with the arms that were asked for. GNU du stays: the others are compared with it."""
    wanted = wanted.split(",") if wanted else [""]
    unwanted = unwanted.split(",") if unwanted else []

    def names(arm, words):
        return any(word in arm.name for word in words)

    kept = [arm for arm in case.arms if arm.group == "gnu" or (names(arm, wanted) and not names(arm, unwanted))]
    return dataclasses.replace(case, arms=kept)


def run_directory(options):
    """A new directory; a second run on one day gets a number."""
    if options.out:
        return options.out
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    base = HERE / "runs" / f"{today}-{machine.kind(corpora.ROOT)}"
    numbered = (base.with_name(f"{base.name}-{number}") for number in range(2, 1000))
    return next(path for path in (base, *numbered) if not path.exists())


def scrubbed(words):
    """The arguments without this machine's directories: of each absolute path, its last part."""
    return [re.sub(r"(^|[= ])/(?:[^/ ]+/)*", r"\1", word) for word in words]


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
