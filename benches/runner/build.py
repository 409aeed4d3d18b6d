"""The programs of a run: compiles the floor and the timer, builds slowfs, asks all for their versions."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
REPOSITORY = HERE.parent
BIN = HERE / ".tools" / "bin"


@dataclass(frozen=True)
class Tools:
    """What a run has at hand: paths, or the words of a command."""

    baseline: tuple
    fathom: str | None
    earlier: str | None  # another fathom, which ours must not be slower than
    floor: str
    timed: str
    slowfs: str | None
    rivals: dict  # name -> {path, version, source}
    missing: dict  # rival -> why it is not there


def tools(baseline, fathom, earlier, floor, rivals, with_slowfs):
    """Builds what is ours; `rivals` are those found, and why others are missing."""
    found, missing = rivals
    return Tools(
        baseline=baseline,
        fathom=str(fathom.resolve()) if fathom else None,
        earlier=str(earlier.resolve()) if earlier else None,
        floor=compile_c(floor),
        timed=compile_c("timed"),
        slowfs=build_slowfs() if with_slowfs else None,
        rivals=found,
        missing=missing,
    )


def compile_c(name, directory=BIN):
    """One of the C programs in floor/, optimised, unless it is newer than all sources already."""
    source, binary = HERE / "floor" / f"{name}.c", Path(directory) / name
    newest = max(path.stat().st_mtime for path in source.parent.glob("*.[ch]"))
    if not binary.exists() or binary.stat().st_mtime < newest:
        binary.parent.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CC", "cc")
        flags = ["-std=gnu2x", "-O2", "-Wall", "-Wextra", "-pthread"]
        subprocess.run([compiler, *flags, "-o", binary, source], check=True)
    return str(binary)


def build_slowfs():
    """The slow filesystem, by its own lock file."""
    crate = HERE / "slowfs"
    target = Path(os.environ.get("CARGO_TARGET_DIR", crate / "target"))
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target]
    subprocess.run(command, cwd=crate, check=True)
    return str(target / "release" / "slowfs")


def versions(found, baseline):
    """Program -> version, for the report; `baseline` is that program's name."""
    listed = {baseline: first_line([*found.baseline, "--version"])}
    if found.fathom:
        listed["fathom"] = first_line([found.fathom, "--version"])
    if found.earlier:
        listed["fathom (earlier)"] = first_line([found.earlier, "--version"])
    listed.update({name: f"{tool['version']} ({tool['source']})" for name, tool in found.rivals.items()})
    listed["compiler of the floor"] = first_line([os.environ.get("CC", "cc"), "--version"])
    return listed


def first_line(command):
    """The first line a command prints, or why it cannot."""
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown: {type(error).__name__}"
    lines = done.stdout.strip().splitlines()
    return lines[0] if lines else "unknown: it printed nothing"
