"""The programs of a run: compiles the C programs, builds slowfs, and queries versions."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
REPOSITORY = HERE.parent
BIN = HERE / ".tools" / "bin"


@dataclass(frozen=True)
class Tools:
    """The programs of a run, as paths or words of a command."""

    baseline: tuple
    fathom: str | None
    earlier: str | None  # an earlier fathom, which the current one must not be slower than
    floor: str
    slowfs: str | None
    rivals: dict  # name -> {path, version, source}
    missing: dict  # rival -> reason why it is missing


def tools(baseline, fathom, earlier, floor, rivals, with_slowfs):
    """Builds the project's programs; `rivals` are the installed ones, and the reasons for missing
    ones.
    """
    found, missing = rivals
    return Tools(
        baseline=baseline,
        fathom=str(fathom.resolve()) if fathom else None,
        earlier=str(earlier.resolve()) if earlier else None,
        floor=compile_c(floor),
        slowfs=build_slowfs() if with_slowfs else None,
        rivals=found,
        missing=missing,
    )


def compile_c(name, directory=BIN):
    """Compiles a C program of floor/ with optimisation, unless it is newer than all sources."""
    source, binary = HERE / "floor" / f"{name}.c", Path(directory) / name
    newest = max(path.stat().st_mtime for path in source.parent.glob("*.[ch]"))
    if not binary.exists() or binary.stat().st_mtime < newest:
        binary.parent.mkdir(parents=True, exist_ok=True)
        compiler = os.environ.get("CC", "cc")
        flags = ["-std=gnu2x", "-O2", "-Wall", "-Wextra", "-pthread"]
        subprocess.run([compiler, *flags, "-o", binary, source], check=True)
    return str(binary)


def build_slowfs():
    """Builds the slow filesystem with its lock file."""
    crate = HERE / "slowfs"
    target = Path(os.environ.get("CARGO_TARGET_DIR", crate / "target"))
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target]
    subprocess.run(command, cwd=crate, check=True)
    return str(target / "release" / "slowfs")


def versions(found, baseline):
    """Returns program -> version, for the report; `baseline` is the name of that program."""
    listed = {baseline: first_line([*found.baseline, "--version"])}
    if found.fathom:
        listed["fathom"] = first_line([found.fathom, "--version"])
    if found.earlier:
        listed["fathom (earlier)"] = first_line([found.earlier, "--version"])
    listed.update({name: f"{tool['version']} ({tool['source']})" for name, tool in found.rivals.items()})
    listed["compiler of the floor"] = first_line([os.environ.get("CC", "cc"), "--version"])
    return listed


def first_line(command):
    """Returns the first line that a command prints, or the reason why it failed."""
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unknown: {type(error).__name__}"
    lines = done.stdout.strip().splitlines()
    return lines[0] if lines else "unknown: it printed nothing"
