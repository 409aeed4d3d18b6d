#!/usr/bin/env python3
"""Installs the rivals `du.py` and `serve.py` measure into benches/.tools, finds those of `list.py`, and says which are
missing.

Owns: where a rival comes from and which version is installed (`.tools/rivals.json`).
Not here: how a rival is called; that is `du_arms.py`, `list_arms.py` and `serve_arms.py`.

GNU du is the system's own. The Rust tools come from crates.io (newest release, its own lock file), gdu from
Debian's archive, unpacked rather than installed, so nothing outside benches/ changes. What lists names is the
system's own or named by who measures. Of servers, nginx is the system's own, too; those from crates.io have one version
that is measured.
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

# crate -> the binary it installs
CRATES = {
    "diskus": "diskus",
    "parallel-disk-usage": "pdu",
    "du-dust": "dust",
    "dua-cli": "dua",
}

# What lists names -> its Debian package, the names its program goes by
LISTERS = {
    "bfs": ("bfs", ("bfs",)),
    "fd": ("fd-find", ("fdfind", "fd")),
}

# Servers: crate, which is its binary's name, too -> the version that is measured
SERVERS = {
    "static-web-server": "2.44.0",
    "miniserve": "0.35.0",
}

# What `serve.py` needs from the system -> its Debian package, the option that prints its version
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
        found, missing = (du | listers for du, listers in zip(load(), find_listers()))
    for name, tool in found.items():
        print(f"{name:17} {tool['version']} ({tool['source']})")
    for name, why in missing.items():
        print(f"{name:17} not available: {why}")


def install(update=False):
    """Installs what is not there yet and records what there is."""
    found, missing = {}, {}
    add(found, missing, "gnu", system_du)
    for crate, binary in CRATES.items():
        add(found, missing, binary, lambda: from_crates_io(crate, binary, update))
    add(found, missing, "gdu", lambda: from_debian("gdu", "usr/bin/gdu", update))
    write_index({"found": found, "missing": missing})


def load():
    """(name -> {path, version, source}, name -> why it is missing); the paths are absolute."""
    if not INDEX.exists():
        return {}, {}
    index = json.loads(INDEX.read_text())
    found = index["found"]
    for tool in found.values():
        tool["path"] = str(HERE / tool["path"])
    return found, index["missing"]


def find_listers(named=None):
    """What `load` returns, of the programs that list names; `named` are paths to take instead of what is in PATH."""
    found, missing = {}, {}
    for name, (package, programs) in LISTERS.items():
        path = (named or {}).get(name)
        source = "named" if path else "system"
        add(found, missing, name, lambda: lister(package, [path] if path else programs, source))
    # Threads came with bfs 3.
    if "bfs" in found and not works([found["bfs"]["path"], "-j1", "/", "-maxdepth", "0"]):
        missing["bfs -j"] = f"{found['bfs']['version']} has one thread: name a newer one with --bfs"
    return found, missing


def find_servers(update=False):
    """What `load` returns, of servers and of what measures them; servers from crates.io are installed if need be."""
    found, missing = {}, {}
    for name, (package, option) in SERVER_TOOLS.items():
        add(found, missing, name, lambda: system_tool(name, package, option))
    for crate, version in SERVERS.items():
        add(found, missing, crate, lambda: server(crate, version, update))
    return found, missing


def system_tool(name, package, option):
    """A program that may say its version on standard error, and fail doing so."""
    # nginx is among the programs of administrators.
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if not path:
        raise RuntimeError(f"no program {name}: apt-get install {package}")
    return {"path": path, "version": first_line(["sh", "-c", f'"$0" {option} 2>&1 || :', path]), "source": "system"}


def server(crate, version, update):
    """The version that is measured, and no other that may be there."""
    path = TOOLS / "bin" / crate
    other = path.exists() and version not in first_line([str(path), "--version"]).split()
    found = from_crates_io(f"{crate}@{version}", crate, update or other)
    return dict(found, path=str(path), version=version)


def lister(package, programs, source):
    path = next(filter(None, map(shutil.which, programs)), None)
    if not path:
        # Of a path only its end: what is missing is written into the report.
        names = " or ".join(map(os.path.basename, programs))
        raise RuntimeError(f"no program {names}: apt-get install {package}")
    return {"path": os.path.abspath(path), "version": version_of([path, "--version"]), "source": source}


def works(command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def add(found, missing, name, install):
    try:
        found[name] = install()
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        missing[name] = reason(error)


def reason(error):
    """The last line a failed command wrote, which is where cargo and apt say why."""
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
    path = TOOLS / "bin" / binary
    if update or not path.exists():
        say(f"installing {crate} from crates.io")
        # The target directory is shared and kept, so that common dependencies build once.
        environment = dict(os.environ, CARGO_TARGET_DIR=str(Path(tempfile.gettempdir()) / "fathom-rivals-target"))
        environment.pop("RUSTFLAGS", None)
        command = ["cargo", "install", "--quiet", "--locked", "--force", "--root", str(TOOLS), crate]
        # Not from inside the repository: its cargo settings and toolchain file are ours, not the rivals'.
        run(command, env=environment, cwd=tempfile.gettempdir())
    return tool(path, [str(path), "--version"], f"crates.io {crate}")


def from_debian(package, member, update):
    root = TOOLS / package
    path = root / member
    if update or not path.exists():
        say(f"downloading {package} from Debian")
        with tempfile.TemporaryDirectory() as scratch:
            download(package, scratch)
            archive = next(Path(scratch).glob("*.deb"))
            root.mkdir(parents=True, exist_ok=True)
            run(["dpkg-deb", "-x", str(archive), str(root)])
    return tool(path, [str(path), "--version"], f"Debian {package}")


def download(package, directory):
    """`apt-get download`, after `apt-get update` if the package lists are missing and we may."""
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
    """`NAME VERSION`; gdu prints a table with its version in the first row."""
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


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
