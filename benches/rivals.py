#!/usr/bin/env python3
"""Installs the rivals that `du.py` and `serve.py` measure, and locates those of `list.py`.

Owns: the source and the installed version of each rival (`.tools/rivals.json`), and the reason if
one is missing. Does not own: their command lines (`du_arms.py`, `list_arms.py` and
`serve_arms.py`).

GNU du, bfs and nginx are the system's. The Rust tools come from crates.io (the newest release or
the version named here, with its lock file). gdu comes from Debian's archive and is unpacked, not
installed, so nothing outside benches/ changes. Options can name other programs that list names.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = HERE / ".tools"
INDEX = TOOLS / "rivals.json"

# crate, optionally with a version -> the binary that it installs
CRATES = {
    "diskus": "diskus",
    "parallel-disk-usage": "pdu",
    "du-dust": "dust",
    "dua-cli@3.0.0": "dua",
}

# The same mapping for programs that list names.
LISTER_CRATES = {
    "fd-find@10.5.0": "fd",
    "fdf@0.9.8": "fdf",
}
# program that lists names -> installation instructions
LISTERS = {
    "bfs": "apt-get install bfs",
    **{binary: f"cargo install {crate.partition('@')[0]}" for crate, binary in LISTER_CRATES.items()},
}

# Servers: crate, which is also the name of its binary -> the measured version
SERVERS = {
    "static-web-server": "2.44.0",
    "miniserve": "0.35.0",
}

# program of the system that `serve.py` requires -> its Debian package, the option that prints its
# version
SERVER_TOOLS = {
    "nginx": ("nginx-light", "-v"),
    "wrk": ("wrk", "-v"),
    "strace": ("strace", "-V"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help="install again what is already there")
    parser.add_argument("--servers", action="store_true", help="those of serve.py instead of the others")
    options = parser.parse_args()
    if options.servers:
        found, missing = find_servers(options.update)
    else:
        install(options.update)
        found, missing = (du | listers for du, listers in zip(load(), find_listers(update=options.update)))
    for name, tool in found.items():
        print(f"{name:17} {tool['version']} ({tool['source']})")
    for name, why in missing.items():
        print(f"{name:17} not available: {why}")


def install(update=False):
    """Installs missing rivals and records what is installed."""
    found, missing = {}, {}
    add(found, missing, "gnu", system_du)
    for crate, binary in CRATES.items():
        add(found, missing, binary, lambda: from_crates_io(crate, binary, update))
    add(found, missing, "gdu", lambda: from_debian("gdu", "usr/bin/gdu", update))
    write_index({"found": found, "missing": missing})


def load():
    """Returns (name -> {path, version, source}, name -> reason why it is missing), with absolute
    paths.
    """
    if not INDEX.exists():
        return {}, {}
    index = json.loads(INDEX.read_text())
    found = index["found"]
    for tool in found.values():
        tool["path"] = str(HERE / tool["path"])
    return found, index["missing"]


def find_listers(named=None, update=False):
    """Returns the same as `load` for programs that list names; `named` are paths that replace the
    usual ones.
    """
    found, missing = {}, {}
    named = {name: path for name, path in (named or {}).items() if path}
    for name, path in named.items():
        add(found, missing, name, lambda: lister(name, path, "named"))
    if "bfs" not in named:
        add(found, missing, "bfs", lambda: lister("bfs", "bfs", "system"))
    for crate, binary in LISTER_CRATES.items():
        if binary not in named:
            add(found, missing, binary, lambda: found_in_tools(crate, binary, update))
    # bfs has threads since version 3.
    if "bfs" in found and not works([found["bfs"]["path"], "-j1", "/", "-maxdepth", "0"]):
        missing["bfs -j"] = f"{found['bfs']['version']} has one thread: name a newer one with --bfs"
    return found, missing


def find_servers(update=False):
    """Returns the same as `load` for servers and load generators. Installs servers from crates.io.
    """
    found, missing = {}, {}
    for name, (package, option) in SERVER_TOOLS.items():
        add(found, missing, name, lambda: system_tool(name, package, option))
    for crate, version in SERVERS.items():
        add(found, missing, crate, lambda: found_in_tools(f"{crate}@{version}", crate, update))
    return found, missing


def system_tool(name, package, option):
    """Locates a program that may print its version to standard error, with a nonzero exit status.
    """
    # Debian installs nginx in /usr/sbin.
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if not path:
        raise RuntimeError(f"no program {name}: apt-get install {package}")
    return {"path": path, "version": first_line(["sh", "-c", f'"$0" {option} 2>&1 || :', path]), "source": "system"}


def found_in_tools(crate, binary, update):
    """Returns the same as `from_crates_io`, with an absolute path."""
    found = from_crates_io(crate, binary, update)
    return dict(found, path=str(HERE / found["path"]))


def lister(name, program, source):
    """Locates a program by its given path or in PATH."""
    path = shutil.which(program)
    if not path:
        raise RuntimeError(f"no program {name}: {LISTERS[name]}")
    return {"path": os.path.abspath(path), "version": version_of([path, "--version"]), "source": source}


def works(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def add(found, missing, name, install):
    try:
        found[name] = install()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        missing[name] = reason(error)


def reason(error):
    """Returns the last line of a failed command's output, where cargo and apt report the cause."""
    lines = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


def system_du():
    path = shutil.which("du")
    if not path:
        raise RuntimeError("no du in PATH")
    version = first_line([path, "--version"])
    if "GNU coreutils" not in version:
        raise RuntimeError(f"{path} is not GNU du: {version}")
    return {"path": path, "version": version, "source": "system"}


def from_crates_io(crate, binary, update):
    """Installs `crate`. A suffix @VERSION requires that version; otherwise any installed version
    suffices.
    """
    path, version = TOOLS / "bin" / binary, crate.partition("@")[2]
    other = path.exists() and version and version not in first_line([str(path), "--version"]).split()
    if update or other or not path.exists():
        log(f"installing {crate} from crates.io")
        # The target directory is shared and kept, so that common dependencies are built once.
        environment = dict(os.environ, CARGO_TARGET_DIR=str(Path(tempfile.gettempdir()) / "fathom-rivals-target"))
        environment.pop("RUSTFLAGS", None)
        command = ["cargo", "install", "--quiet", "--locked", "--force", "--root", str(TOOLS), crate]
        # Run outside the repository: its cargo settings and toolchain file must not apply to the
        # rivals.
        run(command, env=environment, cwd=tempfile.gettempdir())
    return tool(path, [str(path), "--version"], f"crates.io {crate}")


def from_debian(package, member, update):
    root = TOOLS / package
    path = root / member
    if update or not path.exists():
        log(f"downloading {package} from Debian")
        with tempfile.TemporaryDirectory() as scratch:
            download(package, scratch)
            archive = next(Path(scratch).glob("*.deb"))
            root.mkdir(parents=True, exist_ok=True)
            run(["dpkg-deb", "-x", str(archive), str(root)])
    return tool(path, [str(path), "--version"], f"Debian {package}")


def download(package, directory):
    """Runs `apt-get download`, after `apt-get update` if the package lists are missing and root may
    update.
    """
    command = ["apt-get", "download", "-o", "APT::Sandbox::User=root", package]
    try:
        run(command, cwd=directory)
    except subprocess.CalledProcessError:
        if os.geteuid() != 0:
            raise
        run(["apt-get", "update"])
        run(command, cwd=directory)


def tool(path, version_command, source):
    return {
        "path": os.path.relpath(path, HERE),
        "version": version_of(version_command),
        "source": source,
    }


def version_of(command):
    """Returns `NAME VERSION`; gdu prints a table with its version in the first row."""
    line = first_line(command)
    match = re.search(r"Version:\s*(\S+)", line)
    return f"gdu {match.group(1)}" if match else line


def first_line(command):
    return run(command).strip().splitlines()[0]


def run(command, **options):
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    return done.stdout


def write_index(index):
    TOOLS.mkdir(parents=True, exist_ok=True)
    scratch = INDEX.with_suffix(".tmp")
    scratch.write_text(json.dumps(index, indent=2) + "\n")
    scratch.replace(INDEX)


def log(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
