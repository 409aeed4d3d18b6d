"""The build backend of the package: maturin's, with the command ``fathom`` in addition.

maturin builds the native module. This module builds the command from the same sources and adds it to
the wheel as a script, which installers put beside Python's own commands; and it adds the sources of
the command to the source distribution. ``$FATHOMFS_BUILD_COMMAND`` may name an executable that is
already built, which the wheel then takes as it is.

Both are built in one directory by one profile of cargo, ``$FATHOMFS_BUILD_PROFILE`` or "wheel", so
that each dependency is compiled once. ``$MATURIN_PEP517_ARGS`` replaces the profile of the module.
"""

import base64
import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import maturin
from maturin import (  # noqa: F401 (hooks of PEP 517 and PEP 660)
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

TOP = Path(__file__).resolve().parents[1]
# The sources of the command that maturin does not know of, as it follows the module's dependencies.
SOURCES = ["Cargo.lock", "crates", "playground", "python/build_backend.py"]


def get_requires_for_build_wheel(config_settings=None):
    check_tools()
    return maturin.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings=None):
    check_tools()
    return maturin.get_requires_for_build_editable(config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    command = build_command(profile())
    prepare_module()
    name = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    add_command(Path(wheel_directory, name), command)
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    command = build_command(profile())
    prepare_module()
    name = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    add_command(Path(wheel_directory, name), command)
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = maturin.build_sdist(sdist_directory, config_settings)
    add_sources(Path(sdist_directory, name))
    return name


def profile():
    """The profile of cargo for builds from sources."""
    return os.environ.get("FATHOMFS_BUILD_PROFILE") or "wheel"


def target_directory():
    """The directory of what is compiled, apart from that of `make build`, whose programs stay as they are."""
    return Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"), "wheel-build")


def variables(profile):
    """The variables of both builds: with others, cargo would compile what they share once more."""
    prefix = "CARGO_PROFILE_" + re.sub(r"\W", "_", profile).upper()
    return {f"{prefix}_{key}": value for key, value in (("STRIP", "symbols"), ("DEBUG", "none"))}


def say(text):
    """Writes a line of progress. pip shows it with ``-v``."""
    print(f"fathomfs: {text}", file=sys.stderr, flush=True)


def prepare_module():
    """Has maturin build the module as the command was built, unless its options are given."""
    if "MATURIN_PEP517_ARGS" not in os.environ:
        os.environ["MATURIN_PEP517_ARGS"] = f"--profile {profile()}"
        os.environ["CARGO_TARGET_DIR"] = str(target_directory())
        os.environ.update(variables(profile()))
    say("building the Python module (2 of 2)")


def check_tools():
    """Ends the build before anything is downloaded or compiled where a program is missing, with words."""
    for program, help in (
        ("cargo", "the Rust toolchain, from https://rustup.rs"),
        # A command with words, such as `ccache gcc`.
        ((shlex.split(os.environ.get("CC", "")) or ["cc"])[0], "a C compiler, for example by `apt install gcc` or `dnf install gcc`"),
    ):
        if shutil.which(program) is None:
            sys.exit(f"fathomfs: cannot build without '{program}': install {help}")


def build_command(profile):
    """Returns the path of the command, built without debug information unless it is given."""
    given = os.environ.get("FATHOMFS_BUILD_COMMAND")
    if given:
        if not os.access(given, os.X_OK):
            sys.exit(f"fathomfs: FATHOMFS_BUILD_COMMAND names no executable file: '{given}'")
        return Path(given)
    say("building the command (1 of 2): a few minutes")
    target = target_directory()
    options = [f"--profile={profile}", "--locked", "--package", "fathomfs", "--bin", "fathom", "--target-dir", target]
    # Standard output is the installer's.
    environment = os.environ | variables(profile)
    subprocess.run(["cargo", "build", *options], cwd=TOP, env=environment, stdout=sys.stderr, check=True)
    return target / ("debug" if profile == "dev" else profile) / "fathom"


def add_command(wheel, command):
    """Adds the command to the scripts of a wheel, and to its record."""
    distribution, version = wheel.name.split("-")[:2]
    script = f"{distribution}-{version}.data/scripts/fathom"
    record = f"{distribution}-{version}.dist-info/RECORD"
    content = command.read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    with tempfile.TemporaryDirectory(dir=wheel.parent) as temp:
        changed = Path(temp, wheel.name)
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                if info.filename != record:
                    new.writestr(info, old.read(info))
            info = zipfile.ZipInfo(script)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFREG | 0o755) << 16
            new.writestr(info, content)
            # The record comes last, as the specification of wheels recommends.
            line = f"{script},sha256={digest},{len(content)}\n"
            new.writestr(old.getinfo(record), old.read(record).decode() + line)
        shutil.move(changed, wheel)


def add_sources(sdist):
    """Adds the files of the checkout that the command is built from, unless they are there."""
    listed = subprocess.run(["git", "ls-files", "-z", "--", *SOURCES], cwd=TOP, stdout=subprocess.PIPE, check=True)
    paths = [os.fsdecode(path) for path in listed.stdout.split(b"\0") if path]
    with tempfile.TemporaryDirectory(dir=sdist.parent) as temp:
        changed = Path(temp, sdist.name)
        top = sdist.name.removesuffix(".tar.gz")
        with tarfile.open(sdist) as old, tarfile.open(changed, "w:gz") as new:
            members = old.getmembers()
            for member in members:
                new.addfile(member, old.extractfile(member) if member.isreg() else None)
            present = {member.name for member in members}
            for path in paths:
                if f"{top}/{path}" not in present:
                    new.add(TOP / path, f"{top}/{path}", recursive=False, filter=without_owner)
        shutil.move(changed, sdist)


def without_owner(member):
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
