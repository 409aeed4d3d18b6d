#!/usr/bin/env python3
"""Checks that the crates build from what `cargo publish` would upload: a file outside of its crate is missing there.

Packages all crates, unpacks them below the target directory into a workspace of their own, with the profiles and the
versions of this one, and builds that, with the features that are on by default. Lints what it compiles where the
environment has the Makefile's variables of that. Exit status: 0, or that of the command that failed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
CARGO = TOP / "tools/cargo.sh"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or TOP / "target").resolve()
UNPACKED = TARGET / "unpacked-packages"


def run(*command, cwd=TOP):
    status = subprocess.run([str(CARGO), *command], cwd=cwd, stdin=subprocess.DEVNULL, check=False).returncode
    if status:
        sys.exit(status)


def unpack():
    """Unpacks the packages. Returns the directory of each by the name of its crate."""
    shutil.rmtree(UNPACKED, ignore_errors=True)
    UNPACKED.mkdir(parents=True)
    packages = {}
    for package in sorted((TARGET / "package").glob("*.crate")):
        subprocess.run(["tar", "-xzf", package, "-C", UNPACKED], check=True)
        packages[re.sub(r"-[0-9].*", "", package.stem)] = package.stem
    return packages


def workspace(packages):
    """Returns this workspace's manifest with the unpacked crates as its members."""
    manifest = (TOP / "Cargo.toml").read_text()
    members = ", ".join(f'"{directory}"' for directory in packages.values())
    manifest = re.sub(r"^members = .*$", f"members = [{members}]", manifest, flags=re.MULTILINE)
    manifest = re.sub(r"^exclude = .*$", "", manifest, flags=re.MULTILINE)
    # Only the crates' own manifests are tested, which have no path to each other.
    manifest = re.sub(r"^fathom.* = \{ path = .*$", "", manifest, flags=re.MULTILINE)
    patches = "".join(f'{name} = {{ path = "{directory}" }}\n' for name, directory in packages.items())
    return f"{manifest}\n[patch.crates-io]\n{patches}"


def main():
    for stale in (TARGET / "package").glob("*.crate"):
        stale.unlink()
    run("package", "--workspace", "--no-verify", "--allow-dirty", "--locked")
    packages = unpack()
    (UNPACKED / "Cargo.toml").write_text(workspace(packages))
    shutil.copy(TOP / "Cargo.lock", UNPACKED)
    shutil.copy(TOP / "clippy.toml", UNPACKED)
    # Not checked: the dependencies are built already.
    run("build", "--workspace", "--target-dir", str(TARGET), cwd=UNPACKED)
    print(f"packages that build: {', '.join(packages)}")


if __name__ == "__main__":
    main()
