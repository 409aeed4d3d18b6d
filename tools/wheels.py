#!/usr/bin/env python3
"""Builds the three families of wheels of the Python package, and tries each in a fresh environment.

    tools/wheels.py [--zig] [--profile PROFILE] [--out DIR]

A family needs an interpreter of its kind: those in PATH and pyenv's are found. A family without one is skipped, and
counted. With --zig, the module is linked with Zig (package ziglang) for glibc 2.28, so that the wheels run on older
systems, too; otherwise the wheels are for the glibc of this machine and newer. The command is linked statically where
the machine can (crates/cli/build.rs). Needs maturin beside the Python that runs this script. $FATHOMFS_BUILD_COMMAND
may name a command that is already built. Exit status: 0 if every wheel that could be built works, else 1.
"""

import argparse
import os
import pathlib
import struct
import subprocess
import sys
import sysconfig
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or TOP / "target").resolve()
sys.path.insert(0, str(TOP / "python"))

#: Tag, options of maturin, and the interpreters that can build and try it: (version, without lock).
FAMILIES = [
    ("cp310-abi3", [], lambda version, free: version >= (3, 10) and not free),
    ("cp314-cp314t", ["--no-default-features"], lambda version, free: version == (3, 14) and free),
    ("cp315-abi3.abi3t", ["--no-default-features", "--features", "abi3t"], lambda version, free: version >= (3, 15)),
]
MANYLINUX = "manylinux_2_28"
#: Tries a wheel: a walk, a list, the server and the command.
TRIAL = """
import os, subprocess, sys, sysconfig, urllib.request
import fathomfs as ff
os.makedirs("tree")
open("tree/a.txt", "w").write("hello")
assert ff.du("tree").apparent == 5
assert [size for batch in ff.list("tree", columns=["size"]) for size in batch.column("size")] == [5]
with ff.serve("tree") as server:
    assert urllib.request.urlopen(server.url + "a.txt").read() == b"hello"
command = os.path.join(sysconfig.get_path("scripts"), "fathom")
version = subprocess.run([command, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
assert version == f"fathom {ff.__version__}\\n", version
assert not getattr(sys, "_is_gil_enabled", bool)() or not sysconfig.get_config_var("Py_GIL_DISABLED")
"""


def interpreters():
    """Returns the interpreters of this machine by their version and kind."""
    directories = os.get_exec_path()
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    directories += sorted(map(str, pyenv.glob("versions/*/bin")))
    names = [f"python3.{minor}{kind}" for minor in range(10, 20) for kind in ("", "t")]
    found = {}
    for path in (os.path.join(directory, name) for name in names for directory in directories):
        kind = interpreter_kind(path) if os.access(path, os.X_OK) else None
        if kind is not None:
            found.setdefault(kind, path)
    return found


def interpreter_kind(path):
    """Returns `((3, MINOR), without lock)`, or None if the interpreter does not run."""
    code = "import sys, sysconfig; print(sys.version_info[1], int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))"
    ran = subprocess.run([path, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if ran.returncode != 0:
        return None
    minor, free = map(int, ran.stdout.split())
    return (3, minor), bool(free)


def build(options, interpreter, args):
    """Builds a wheel with the command in it. Returns its path."""
    import build_backend

    command = build_backend.build_command(args.profile)
    if needs_loader(command):
        print(f"wheels: note: the command is linked dynamically, and needs this machine's glibc: {command}")
    maturin = [os.path.join(sysconfig.get_path("scripts"), "maturin"), "build", "--quiet", "--profile", args.profile]
    linker = ["--zig", "--compatibility", MANYLINUX] if args.zig else []
    with tempfile.TemporaryDirectory(dir=args.out) as temp:
        places = ["--out", temp, "--target-dir", str(TARGET / "python"), "--interpreter", interpreter]
        run(str(TOP / "tools/cargo.sh"), "--exec", *maturin, *linker, *options, *places)
        (built,) = pathlib.Path(temp).glob("*.whl")
        build_backend.add_command(built, command)
        return built.replace(args.out / built.name)


def needs_loader(command):
    """Whether a program of ELF has an interpreter (PT_INTERP): it is then linked dynamically (elf(5))."""
    content = command.read_bytes()
    (offset,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    return any(struct.unpack_from("<I", content, offset + at * size)[0] == 3 for at in range(count))


def try_wheel(wheel, interpreter):
    """Installs a wheel into a fresh environment and uses it."""
    with tempfile.TemporaryDirectory() as temp:
        python = os.path.join(temp, "env/bin/python")
        run(interpreter, "-m", "venv", os.path.join(temp, "env"))
        options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-index", "--no-deps"]
        run(python, "-m", "pip", "install", *options, wheel)
        environment = {name: value for name, value in os.environ.items() if name not in ("FATHOM", "PYTHONPATH")}
        subprocess.run([python, "-c", TRIAL], cwd=temp, env=environment, check=True)


def run(*command):
    subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zig", action="store_true", help=f"link with Zig, for {MANYLINUX}")
    parser.add_argument("--profile", default="release", help="cargo's profile for the module")
    parser.add_argument("--out", type=pathlib.Path, default=TARGET / "wheels", help="where the wheels go")
    args = parser.parse_args()
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    found = interpreters()
    passed = failed = skipped = 0
    for tag, options, fits in FAMILIES:
        fitting = {kind: path for kind, path in found.items() if fits(*kind)}
        if not fitting:
            print(f"skipped: {tag}: no interpreter of this kind")
            skipped += 1
            continue
        try:
            wheel = build(options, next(iter(fitting.values())), args)
            if f"-{tag}-" not in wheel.name:
                raise ValueError(f"the wheel is not {tag}: {wheel.name}")
            for (version, free), path in sorted(fitting.items()):
                try_wheel(wheel, path)
                print(f"ok: {wheel.name} with Python {version[0]}.{version[1]}{'t' if free else ''}")
                passed += 1
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"failed: {tag}: {error}")
            failed += 1
    print(f"wheels: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
