#!/usr/bin/env python3
"""Lists the tests that a run ran, from the logs of its steps: a line `STEP PROGRAM TEST` each, sorted.

    tools/test-names.py [DIRECTORY...]     by default target/test-logs/test; several are put together
    diff <(tools/test-names.py target/test-logs/test) <(tools/test-names.py target/test-logs/test-all)

Examples in documentation are named without the line where they begin.
"""

import os
import pathlib
import re
import sys

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or pathlib.Path(__file__).resolve().parent.parent / "target")
RUNNING = re.compile(r"^ +(?:Running (?:unittests )?|Doc-tests )(\S+(?: \S+)*?)(?: \(.*\))?$")
RUST = re.compile(r"^test (.+?) \.\.\. (?:ok|FAILED|ignored)")
PYTHON = re.compile(r"^(test_\w+) \((?:__main__\.)?([\w.-]+?)(?:\.\1)?\)(?: \.\.\. .*)?$")


def names(log):
    step, program = log.stem.removesuffix("-alone"), ""
    for line in log.read_text(errors="replace").splitlines():
        if running := RUNNING.match(line):
            program = running[1].split()[0]
        elif test := RUST.match(line):
            yield f"{step} {program} {re.sub(r' [(]line [0-9]+[)]', '', test[1])}"
        elif test := PYTHON.match(line):
            yield f"{step} {test[2]} {test[1]}"


if __name__ == "__main__":
    directories = [pathlib.Path(word) for word in sys.argv[1:]] or [TARGET / "test-logs/test"]
    logs = [log for directory in directories for log in directory.glob("*.log")]
    if not logs:
        sys.exit(f"{', '.join(map(str, directories))}: no logs of a run of tests")
    print(*sorted({name for log in logs for name in names(log)}), sep="\n")
