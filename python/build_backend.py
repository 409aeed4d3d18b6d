"""The build backend of the package: maturin's, with the command ``fathom`` in addition.

maturin builds the native module. This module builds the command from the same sources and adds it to
the wheel as a script, which installers put beside Python's own commands; and it adds the sources of
the command to the source distribution. ``$FATHOMFS_BUILD_COMMAND`` may name an executable that is
already built, which the wheel then takes as it is.
"""

import base64
import hashlib
import os
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
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

TOP = Path(__file__).resolve().parents[1]
# The sources of the command that maturin does not know of, as it follows the module's dependencies.
SOURCES = ["Cargo.lock", "crates", "playground", "python/build_backend.py"]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    command = build_command()
    name = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    add_command(Path(wheel_directory, name), command)
    return name


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    command = build_command()
    name = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    add_command(Path(wheel_directory, name), command)
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = maturin.build_sdist(sdist_directory, config_settings)
    add_sources(Path(sdist_directory, name))
    return name


def build_command():
    """Returns the path of the command, built without debug information unless it is given."""
    given = os.environ.get("FATHOMFS_BUILD_COMMAND")
    if given:
        if not os.access(given, os.X_OK):
            sys.exit(f"fathomfs: FATHOMFS_BUILD_COMMAND names no executable file: '{given}'")
        return Path(given)
    # A directory of its own: the program that `make build` has made stays as it is.
    target = Path(os.environ.get("CARGO_TARGET_DIR", TOP / "target"), "wheel-command")
    options = ["--release", "--locked", "--package", "fathomfs", "--target-dir", target]
    profile = {"CARGO_PROFILE_RELEASE_STRIP": "symbols", "CARGO_PROFILE_RELEASE_DEBUG": "none"}
    # Standard output is the installer's.
    subprocess.run(["cargo", "build", *options], cwd=TOP, env=os.environ | profile, stdout=sys.stderr, check=True)
    return target / "release" / "fathom"


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
